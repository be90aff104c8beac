# frozen_string_literal: true

module Procwright
  module Queue
    # A sender of messages to a queue's receiver.
    #
    # Messages of one sender are received in their order; between senders there is none. What was
    # sent is received, even if this process is killed then. Any thread may use it; one that
    # waits for room holds up the others, which a sender of its own (`dup`) does not.
    #
    # `overflow` is what happens to a message that finds no room when its lane may not grow
    # further: `:block`, {#send} waits; `:fail`, it raises {Full}; `:drop_newest`, the message is
    # thrown away and counted in {#dropped}. With a `limit` this lane grows no further than to
    # blocks of so many bytes.
    #
    # The constructors take a block, which gets the sender; it is closed when that is left.
    class Sender
      extend Lending

      class << self
        # Takes a place at a queue. The invitation is used up if that succeeds.
        # @param wait [Numeric, nil] seconds to wait for a lane, nil for ever
        # @return [Sender, Object] with a block what that gives
        # @raise [NoLane] if all lanes are taken
        # @raise [TimedOut] if they still are after the wait
        # @raise [ReceiverDead]
        # @raise [Closed]
        def attach(invitation, overflow: :block, limit: nil, wait: 0, &block)
          place = Invitation.native_of(invitation)
          check(overflow, limit)
          lend(waiting(wait) { |seconds| Native::Sender.attach(place, seconds) }, overflow, limit, &block)
        end

        # Takes a place at the queue of that name, which {Receiver.open} has made.
        # @param wait [Numeric, nil] seconds to wait until there is one and it has a lane, nil for
        #   ever
        # @raise [NoQueue] if there is none: it names the directory where it looked
        # @raise [TimedOut] after a wait in vain: it says what there was not
        # @note Raises as {attach} does
        def open(name, overflow: :block, limit: nil, wait: 0, &block)
          check(overflow, limit)
          name = Arguments.queue_name(name)
          lend(waiting(wait) { |seconds| Native::Sender.of_name(name, seconds) }, overflow, limit, &block)
        end

        # Sends to the process that has spawned this one with `channel: :from_child`. Once: make
        # more with `dup`.
        # @raise [NoParent]
        # @note Raises as {attach} does
        def of_parent(overflow: :block, limit: nil, &block)
          check(overflow, limit)
          lend(Native::Sender.of_parent, overflow, limit, &block)
        end

        # @private
        def of(native, overflow, limit)
          native.overflow = overflow_name(overflow)
          native.limit = Arguments.bytes("limit", limit) if limit
          allocate.tap { |sender| sender.instance_variable_set(:@native, native) }
        end

        # @private
        def overflow_name(overflow) = Arguments.word("overflow", overflow, %i[block fail drop_newest]).name

        # Refuses what cannot be used before a place at the queue is taken.
        # @private
        def check(overflow, limit)
          overflow_name(overflow)
          Arguments.bytes("limit", limit, ", or nil") unless limit.nil?
        end

        # The block's native sender: at once, or else after a wait of so many seconds.
        # @private
        def waiting(wait)
          seconds = Arguments.seconds("wait", wait)
          Garbage.retried(NoLane.method(:===)) { yield 0.0 }
        rescue NoLane, NoQueue, ReceiverDead, Closed
          raise if seconds && seconds <= 0

          Fibers.on_thread { yield seconds }
        end

        private :new

        private

        def lend(native, overflow, limit, &block) = super(of(native, overflow, limit), &block)
      end

      # Sends a message. Object#send is there as `__send__` and `public_send`.
      #
      # Without room, `overflow` says what happens; with a timeout the call waits for so many
      # seconds in any case.
      #
      # @param message [String]
      # @param timeout [Numeric, nil]
      # @return [self]
      # @raise [TimedOut]
      # @raise [Closed] if the receiver was closed
      # @raise [ReceiverDead] if it has died: an Errno::EOWNERDEAD
      # @raise [TooLarge]
      # @raise [Full]
      # @raise [EndClosed] if this sender was closed, or is meanwhile
      # @raise [Damaged]
      # @raise [Forked]
      def send(message, timeout: nil)
        seconds = Arguments.seconds("timeout", timeout)
        deadline = Deadline.new(seconds)
        return self if sent_within?(message, seconds)

        raise TimedOut.new("room", seconds)
      rescue Closed, ReceiverDead => e
        gone(e, patient_for(deadline))
      end

      # Sends a message if there is room now, whatever is to happen otherwise. Never waits, also not
      # for why a child has closed its end: the error says what is known then.
      # @return [Boolean] true if there was
      # @note Raises as {#send} does
      def try_send(message)
        @native.try_send(bytes_of("message", message))
      rescue Closed, ReceiverDead => e
        gone(e, 0)
      end

      # Thread::SizedQueue#push: sends a message.
      # @param non_block [Boolean] true to raise {Full} rather than to wait
      # @return [self, nil] nil after the timeout
      # @note Raises as {#send} does
      def push(message, non_block = false, timeout: nil)
        seconds = Arguments.seconds("timeout", timeout)
        deadline = Deadline.new(seconds)
        return (self if sent_within?(message, seconds)) unless non_block
        raise ArgumentError, "can't set a timeout if non_block is enabled" unless timeout.nil?
        raise Full, "queue full" unless @native.try_send(bytes_of("message", message))

        self
      rescue Closed, ReceiverDead => e
        gone(e, non_block ? 0 : patient_for(deadline))
      end
      alias enq push

      # @return [self]
      def <<(message) = push(message)

      # Sends many at the price of one.
      # @param messages [Enumerable<String>]
      # @param timeout [Numeric, nil] for all of them together
      # @return [Integer] how many were sent: fewer than there are if some were thrown away
      # @note Raises as {#send} does. Messages before the one that failed were sent: {Error#sent}
      #   is their number; that of a child's sender which raises {TimeoutExpired} and its like, since the
      #   child was stopped, is `error.cause.sent`
      def send_many(messages, timeout: nil)
        seconds = Arguments.seconds("timeout", timeout)
        deadline = Deadline.new(seconds)
        # An array of our own, which no other thread changes while this one waits.
        Arguments.refuse("messages", messages, "pass a list of Strings") unless messages.respond_to?(:each_with_index)
        Arguments.refuse_closed("messages", messages)
        messages = messages.each_with_index.map { |message, place| bytes_of("messages[#{place}]", message) }
        sent, all = Fibers.on_thread { @native.send_many(messages, seconds) }
        return sent if all

        raise TimedOut.new("room", seconds).tap { |error| error.instance_variable_set(:@sent, sent) }
      rescue Closed, ReceiverDead => e
        gone(e, patient_for(deadline))
      end

      # @return [Symbol] the treatment of a message that finds no room
      def overflow = @native.overflow.to_sym

      # @raise [InvalidValue]
      def overflow=(overflow)
        @native.overflow = Sender.overflow_name(overflow)
      end

      # @return [Integer] the number of messages that were thrown away under `:drop_newest`
      def dropped = @native.dropped

      # Closes it: what was sent will be received. From any thread, any number of times. In a
      # thread that waits for room it raises {EndClosed}.
      def close
        @native.close
        nil
      end

      def closed? = @native.closed?

      def inspect = "#<Procwright::Queue::Sender#{', closed' if closed?}>"

      # Makes another sender to this queue, in this process. `clone` does as well, without a wait.
      # @param wait [Numeric, nil] seconds to wait for a lane, nil for ever
      # @return [Sender]
      # @note Raises as {Sender.attach} does
      def dup(wait: 0)
        deadline = Deadline.new(Arguments.seconds("wait", wait))
        native = Sender.waiting(wait) { |seconds| @native.another(seconds) }
        self.class.allocate.tap do |sender|
          sender.instance_variable_set(:@native, native)
          sender.instance_variable_set(:@child, @child)
          sender.instance_variable_set(:@patience, @patience)
        end
      rescue Closed, ReceiverDead => e
        gone(e, deadline.remaining)
      end

      # @private
      def initialize_copy(other)
        @native = Sender.waiting(0) { other.native.another(0.0) }
      end

      # @private
      attr_reader :native

      private

      # Raises the error of a queue whose receiver has gone, within so many seconds: of a child's,
      # why.
      def gone(error, left) = @child ? @child.other_side_gone(error, @patience, left) : raise(error)

      # The seconds that a call has left: none if it does not wait for room either.
      def patient_for(deadline)
        left = deadline.remaining
        left.nil? && overflow != :block ? 0 : left
      end

      def bytes_of(name, message) = Arguments.string(name, message, "a message is a String, such as Marshal.dump(object)")

      # False if the timeout came before there was room.
      def sent_within?(message, seconds)
        message = bytes_of("message", message)
        return @native.send_by(message, seconds) unless Fibers.scheduled?

        @native.try_send(message) || Fibers.on_thread { @native.send_by(message, seconds) }
      end
    end
  end
end
