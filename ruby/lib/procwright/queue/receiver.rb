# frozen_string_literal: true

module Procwright
  module Queue
    # The receiver of a queue: gets what its senders send, each one's messages in their order.
    #
    # Making one makes the queue, which is there as long as its receiver is. Any thread may use
    # it at any time; each message goes to one of them. What a thread has made tells senders
    # that the receiver lives: so make it on one that stays.
    #
    # The constructors but {new} take a block, which gets the receiver; it is closed when that
    # is left.
    class Receiver
      include Enumerable
      include Waitable
      extend Lending

      # The most bytes that a lane takes (half of which is room for messages that wait, and for
      # one message), and how large a block it keeps when that is empty.
      LIMIT = 64 * 1024 * 1024
      KEEP = 16 * 1024 * 1024

      # @param lanes [Integer] how many senders there may be at a time, 1 to 4,096
      # @param first [Integer, String, nil] the bytes that a lane takes at first: 16 KiB, or the
      #   limit where that is less
      # @param limit [Integer, String] the bytes that it takes at most, 4 KiB or more
      # @raise [Unsupported] where there are no queues
      # @raise [InvalidValue] for a shape that no queue can have
      def initialize(lanes: 64, first: nil, limit: LIMIT, keep: KEEP)
        @native = Native::Receiver.make(*Receiver.shape(lanes, first, limit, keep))
      end

      class << self
        # Makes a queue of that name, for this user on this machine: any process of the user's
        # may send to it, with {Sender.open}. If there is one of that name whose receiver has
        # died, and any process still has it, it is taken over as it is.
        #
        # Receiving never raises {Closed}: other senders may come at any time.
        #
        # @param name [String] 1 to 64 of the characters A-Z, a-z, 0-9, ".", "_" and "-", the
        #   first of which is no dot
        # @return [Receiver, Object] with a block what that gives
        # @raise [NameTaken] if the receiver of that queue lives
        def open(name, lanes: 64, first: nil, limit: LIMIT, keep: KEEP, &block)
          lend(Native::Receiver.of_name(Arguments.queue_name(name), *shape(lanes, first, limit, keep)), &block)
        end

        # Receives from the process that has spawned this one with `channel: :to_child`. Once.
        # @raise [NoParent]
        def of_parent(lanes: 64, first: nil, limit: LIMIT, keep: KEEP, &block)
          lend(Native::Receiver.of_parent(*shape(lanes, first, limit, keep)), &block)
        end

        # Receives in the place of a receiver that has died. What was not received yet is there,
        # and so are its senders. The invitation stays good.
        # @raise [ReceiverAlive]
        # @raise [Closed] if the last one was not killed but closed
        def take_over(invitation, &block)
          lend(Native::Receiver.take_over(Invitation.native_of(invitation)), &block)
        end

        # The numbers of a new queue, of which the core says what is too large.
        # @private
        def shape(lanes, first, limit, keep)
          [Arguments.number("lanes", lanes, 1..4096, "pass a number from 1 to 4096"),
           first.nil? ? nil : Arguments.bytes("first", first), Arguments.bytes("limit", limit), Arguments.bytes("keep", keep)]
        end

        # @private
        def of(native)
          allocate.tap { |receiver| receiver.instance_variable_set(:@native, native) }
        end

        private

        def lend(native, &block) = super(of(native), &block)
      end

      # Makes a place at this queue for one process, which may have any number of senders.
      # @return [Invitation]
      def invite = Invitation.of(@native.invite)

      # Makes a sender in this process. Garbage is collected first if all lanes are taken.
      # @param overflow [Symbol] see {Sender}
      # @param limit [Integer, nil] see {Sender}
      # @return [Sender]
      # @raise [NoLane] if all lanes are taken
      def sender(overflow: :block, limit: nil)
        Sender.check(overflow, limit)
        native = Garbage.retried(NoLane.method(:===)) { @native.sender }
        Sender.of(native, overflow, limit)
      end

      # Receives a message: waits until there is one.
      # @param timeout [Numeric, nil] seconds
      # @return [String] binary
      # @raise [Closed] if there will be none: it ends a `loop`
      # @raise [TimedOut]
      # @raise [EndClosed] if this receiver was closed, or is meanwhile
      # @raise [Damaged] once for a lane that is not read any more
      # @raise [Forked]
      def recv(timeout: nil)
        seconds = Arguments.seconds("timeout", timeout)
        deadline = Deadline.new(seconds)
        receive(seconds) or raise TimedOut.new("message", seconds)
      rescue Closed => e
        gone(e, deadline.remaining)
      end

      # Receives a message if there is one now. Never waits, also not for why a child has closed its
      # end: the error says what is known then.
      # @return [String, nil]
      # @raise [Closed] and what else {#recv} raises
      def try_recv
        @native.try_recv
      rescue Closed => e
        gone(e, 0)
      end

      # Waits for a message, and receives it and what has come besides. Each sender's are in
      # their order.
      # @return [Array<String>] one to `most`
      # @note Raises as {#recv} does
      def recv_many(most, timeout: nil)
        Arguments.number("most", most, 1..Arguments::MOST_BYTES, "pass a number from 1 on")

        seconds = Arguments.seconds("timeout", timeout)
        deadline = Deadline.new(seconds)
        many = if Fibers.scheduled?
                 Fibers.until_found(@native, seconds) { @native.recv_many(most, 0.0) }
               else
                 @native.recv_many(most, seconds)
               end
        many or raise TimedOut.new("message", seconds)
      rescue Closed => e
        gone(e, deadline.remaining)
      end

      # Thread::Queue#pop: the next message; nil if there will be none, or after the timeout.
      # @param non_block [Boolean] true to raise {Empty} rather than to wait
      # @return [String, nil]
      def pop(non_block = false, timeout: nil)
        return receive(Arguments.seconds("timeout", timeout)) unless non_block
        raise ArgumentError, "can't set a timeout if non_block is enabled" unless timeout.nil?

        @native.try_recv or raise Empty, "queue empty"
      rescue Closed
        raise Empty, "queue empty" if non_block

        nil
      end
      alias shift pop
      alias deq pop

      # Receives until every sender is gone.
      # @yieldparam message [String]
      # @return [self, Enumerator]
      def each
        return to_enum(:each) unless block_given?

        while (message = pop)
          yield message
        end
        self
      end

      # @return [Integer] a descriptor for event loops, which stays this object's: readable when
      #   there may be something. Whenever it is, call {#try_recv} until that gives nil, or
      #   raises; from then on it tells of the next message
      def readiness_fd = @native.readiness_fd

      # An IO of {#readiness_fd}, for IO.select.
      # @return [IO]
      def readiness_io
        # The IO keeps this object, and so the descriptor, alive.
        @readiness_io ||= IO.for_fd(readiness_fd, autoclose: false).tap { |io| io.instance_variable_set(:@receiver, self) }
      end

      # Closes it: senders are told so, and what was not received is lost. From any thread, any
      # number of times; returns at once. In a thread that waits for a message it raises
      # {EndClosed}.
      def close
        @native.close
        nil
      end

      def closed? = @native.closed?

      def inspect = "#<Procwright::Queue::Receiver#{', closed' if closed?}>"

      # @private
      attr_reader :native
      # @private
      alias awaited native

      # @private
      def initialize_copy(_other)
        raise TypeError, "a receiver cannot be copied, a queue has one: use this one, from any thread"
      end

      private

      # Raises the error of a queue whose senders have gone, within so many seconds: of a child's,
      # why.
      def gone(error, left) = @child ? @child.other_side_gone(error, @patience, left) : raise(error)

      # The next message; nil if the timeout comes first.
      def receive(seconds)
        return @native.recv(seconds) unless Fibers.scheduled?

        Fibers.until_found(@native, seconds) { @native.try_recv }
      end
    end
  end
end
