# frozen_string_literal: true

require "io/wait"
require_relative "queue_errors"

module Procwright
  # Messages between processes, in memory that they share: many senders, one receiver.
  #
  #   receiver = Procwright::Queue::Receiver.new
  #   sender = receiver.sender # or, in another process, Sender.attach(invitation)
  #   sender << "hello"
  #   receiver.recv            # => "hello"
  #
  # A message is a String: its bytes are what is sent, and a binary String is received.
  module Queue
    # What a queue is like now: see {Queue.stat}.
    #
    # - `lanes`: how many senders it has room for; `taken`: those lanes that are not free, as
    #   {LaneStat}
    # - `first`, `limit`: the bytes that a lane takes at first, and at most; `memory`: what
    #   all of it takes now
    # - `epoch`: how often somebody began to receive, or went on in another thread
    # - `receiver`: a {ReceiverStat}
    Stat = Struct.new(:lanes, :first, :limit, :memory, :epoch, :receiver, :taken, keyword_init: true)

    # `state` is `:alive`, `:dead` or `:closed`; `pid` nil where it is unknown; `asleep` is
    # `:word` or `:descriptor`, nil while it is awake.
    ReceiverStat = Struct.new(:state, :pid, :asleep, keyword_init: true)

    # `state` is `:taken`, `:left`, `:orphaned`, `:clearing` or `:damaged`; `waiting` are the
    # bytes that were sent and not received, `block` those of the block that the sender is in;
    # `blocked` says whether it waits for room.
    LaneStat = Struct.new(:number, :state, :pid, :guest, :waiting, :block, :blocked)

    # Looks at the queue of that name, without taking part in it. Each part of what it finds
    # is from another moment.
    # @return [Stat]
    # @raise [NoQueue]
    # @raise [InvalidValue] for what is no name
    def self.stat(name)
      found = Native.queue_stat(name)
      Stat.new(**found, receiver: ReceiverStat.new(**found[:receiver]).freeze,
                        taken: found[:taken].map { |parts| LaneStat.new(*parts).freeze }.freeze).freeze
    end

    # The names of all queues of this user, also of those that nobody has any more.
    # @return [Array<String>]
    def self.names = Native.queue_names

    # A place at a queue, for one process, as it is handed there: descriptors and a few bytes.
    #
    # {Receiver#invite} makes one, and {Sender.attach} uses it up; `dup` of that sender makes
    # more. In between it goes over a Unix socket ({#send_over}), or is inherited: pass
    # `fds: invitation.fds` to `spawn`, tell the program numbers and ticket, and put them
    # together there, with {new}.
    #
    # As long as it is there, in whatever process, the receiver takes it for one who may send:
    # once it is handed over, close it.
    class Invitation
      # @param fds [Array<Integer, IO>] what {#fds} gave. They stay the caller's
      # @param ticket [String]
      # @raise [InvalidValue]
      def initialize(fds, ticket)
        @native = Native::Invitation.of_parts(fds.map { |fd| Options.number("fds", fd) }, ticket)
      end

      # Receives one from a connected UNIXSocket: waits for it. Nothing else may have been read
      # from that socket with Ruby's own buffer.
      # @return [Invitation]
      # @raise [InvalidValue] if something else comes, or the other side closes it
      def self.receive(socket) = of(Handing.receive(Native::Invitation, socket))

      # @private
      def self.of(native)
        allocate.tap { |invitation| invitation.instance_variable_set(:@native, native) }
      end

      # Sends it over a connected UNIXSocket. It stays good here until it is closed.
      # @return [self]
      # @raise [InvalidValue] for another kind of socket
      def send_over(socket)
        Handing.hand(@native, socket)
        self
      end

      # @return [Array<Integer>] its descriptors, which stay this object's
      def fds = @native.fds

      # @return [String] what has to be told beside them
      def ticket = @native.ticket

      # Gives the place back, if nobody else has it.
      def close
        @native.close
        nil
      end

      # Whether it was used up, or closed.
      def closed? = @native.closed?

      def inspect = "#<Procwright::Queue::Invitation #{closed? ? 'used up' : ticket}>"

      # @private
      attr_reader :native

      # @private
      def initialize_copy(_other)
        raise TypeError, "an invitation cannot be copied: ask the receiver for another"
      end
    end

    # Receives what the senders of a queue send, each one's messages in their order.
    #
    # Making one makes the queue, which is there as long as its receiver is. Any thread may use
    # it at any time; each message goes to one of them. What a thread has made tells senders
    # that the receiver lives: so make it on one that stays.
    #
    # The constructors but {new} take a block, which gets the receiver; it is closed when that
    # is left.
    class Receiver
      include Enumerable

      # The bytes that a lane takes at first, the most that it takes (half of which is room for
      # messages that wait, and for one message), and how large a block it keeps when that is
      # empty.
      FIRST = 16 * 1024
      LIMIT = 64 * 1024 * 1024
      KEEP = 16 * 1024 * 1024

      # @param lanes [Integer] how many senders there may be at a time, 1 to 4,096
      # @raise [Unsupported] where there are no queues
      # @raise [InvalidValue] for a shape that no queue can have
      def initialize(lanes: 64, first: FIRST, limit: LIMIT, keep: KEEP)
        @native = Native::Receiver.make(lanes, first, limit, keep)
      end

      class << self
        # Makes a queue of that name, for this user on this machine: any process of the user's
        # may send to it, with {Sender.open}. If there is one of that name whose receiver has
        # died, and any process still has it, it is taken over as it is.
        #
        # It never says {Closed}: others may come at any time.
        #
        # @param name [String] 1 to 64 of the characters A-Z, a-z, 0-9, ".", "_" and "-", the
        #   first of which is no dot
        # @return [Receiver, Object] with a block what that gives
        # @raise [NameTaken] if the receiver of that queue lives
        def open(name, lanes: 64, first: FIRST, limit: LIMIT, keep: KEEP, &block)
          lend(Native::Receiver.of_name(name, lanes, first, limit, keep), &block)
        end

        # Receives from the process that has spawned this one with `channel: :to_child`. Once.
        # @raise [NoParent]
        def of_parent(lanes: 64, first: FIRST, limit: LIMIT, keep: KEEP, &block)
          lend(Native::Receiver.of_parent(lanes, first, limit, keep), &block)
        end

        # Receives in the place of a receiver that has died. What was not received yet is there,
        # and so are its senders. The invitation stays good.
        # @raise [ReceiverAlive]
        # @raise [Closed] if the last one was not killed but closed
        def take_over(invitation, &block)
          lend(Native::Receiver.take_over(Handing.native(invitation, Invitation)), &block)
        end

        # @private
        def of(native)
          allocate.tap { |receiver| receiver.instance_variable_set(:@native, native) }
        end

        private

        def lend(native, &block) = Handing.lend(of(native), &block)
      end

      # A place at this queue for one process, which may have any number of senders.
      # @return [Invitation]
      def invite = Invitation.of(@native.invite)

      # A sender in this process.
      # @param overflow [Symbol] see {Sender}
      # @param limit [Integer, nil] see {Sender}
      # @return [Sender]
      def sender(overflow: :block, limit: nil) = Sender.of(@native.sender, overflow, limit)

      # Receives a message: waits until there is one.
      # @param timeout [Numeric, nil] seconds
      # @return [String] binary
      # @raise [Closed] if there will be none: it ends a `loop`
      # @raise [TimedOut]
      # @raise [EndClosed] if this receiver was closed, or is meanwhile
      # @raise [Damaged] once for a lane that is not read any more
      # @raise [Forked]
      def recv(timeout: nil)
        seconds = Options.seconds("timeout", timeout)
        take(seconds) or raise TimedOut.new("message", seconds)
      end

      # Receives a message if there is one now.
      # @return [String, nil]
      # @raise [Closed] and what else {#recv} raises
      def try_recv = @native.try_recv

      # Waits for a message, and receives it and what has come besides. Each sender's are in
      # their order.
      # @return [Array<String>] one to `most`
      # @note Raises as {#recv} does
      def recv_many(most, timeout: nil)
        raise InvalidValue, "most is #{most.inspect}: pass a number from 1 on" unless most.is_a?(Integer) && most.positive?

        seconds = Options.seconds("timeout", timeout)
        many = Fibers.scheduled? ? beside_others(seconds) { @native.recv_many(most, 0.0) } : @native.recv_many(most, seconds)
        many or raise TimedOut.new("message", seconds)
      end

      # As of Thread::Queue: the next message; nil if there will be none, or after the timeout.
      # @param non_block [Boolean] whether to raise {Empty} rather than to wait
      # @return [String, nil]
      def pop(non_block = false, timeout: nil)
        return take(Options.seconds("timeout", timeout)) unless non_block
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

      # The same as an IO, for IO.select.
      # @return [IO]
      def readiness_io
        # As long as somebody has that, the descriptor is there.
        @readiness_io ||= IO.for_fd(readiness_fd, autoclose: false).tap { |io| io.instance_variable_set(:@receiver, self) }
      end

      # Closes it: senders are told so, and what was not received is lost. From any thread, any
      # number of times; returns at once. Who waits for a message is told {EndClosed}.
      def close
        @native.close
        nil
      end

      def closed? = @native.closed?

      def inspect = "#<Procwright::Queue::Receiver#{', closed' if closed?}>"

      # @private
      attr_reader :native

      # @private
      def initialize_copy(_other)
        raise TypeError, "a receiver cannot be copied, a queue has one: use this one, from any thread"
      end

      private

      # The next message; nil if the time comes first.
      def take(seconds)
        return @native.recv(seconds) unless Fibers.scheduled?

        beside_others(seconds) { @native.try_recv }
      end

      # What the block finds, under a scheduler: other fibers go on until it finds something.
      # *Not received on another thread*, where a message would be lost with who has just given
      # up waiting for it.
      def beside_others(seconds)
        deadline = seconds && (Clock.now + seconds)
        loop do
          found = yield
          return found if found

          left = deadline && [deadline - Clock.now, 0.0].max
          return if Fibers.aside { Native.wait([@native], 0, :exited, left) }.empty?
        end
      end
    end

    # Sends messages to a queue's receiver.
    #
    # What one sender sends is received in that order; between senders there is none. What was
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
      class << self
        # Takes a place at a queue. The invitation is used up if that succeeds.
        # @return [Sender, Object] with a block what that gives
        # @raise [NoLane] if there are as many senders as lanes
        # @raise [ReceiverDead]
        # @raise [Closed]
        def attach(invitation, overflow: :block, limit: nil, &block)
          lend(Native::Sender.attach(Handing.native(invitation, Invitation)), overflow, limit, &block)
        end

        # Takes a place at the queue of that name, which {Receiver.open} has made.
        # @raise [NoQueue] if there is none
        # @note Raises as {attach} does
        def open(name, overflow: :block, limit: nil, &block)
          lend(Native::Sender.of_name(name), overflow, limit, &block)
        end

        # Sends to the process that has spawned this one with `channel: :from_child`. Once: make
        # more with `dup`.
        # @raise [NoParent]
        # @note Raises as {attach} does
        def of_parent(overflow: :block, limit: nil, &block)
          lend(Native::Sender.of_parent, overflow, limit, &block)
        end

        # @private
        def of(native, overflow, limit)
          native.overflow = Handing.overflow(overflow)
          native.limit = limit if limit
          allocate.tap { |sender| sender.instance_variable_set(:@native, native) }
        end

        private :new

        private

        def lend(native, overflow, limit, &block) = Handing.lend(of(native, overflow, limit), &block)
      end

      # Sends a message. Object#send is there as `__send__` and `public_send`.
      #
      # If there is no room, `overflow` says what happens; with a timeout it waits for so many
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
        seconds = Options.seconds("timeout", timeout)
        return self if put(message, seconds)

        raise TimedOut.new("room", seconds)
      end

      # Sends a message if there is room now, whatever is to happen otherwise.
      # @return [Boolean] whether there was
      # @note Raises as {#send} does
      def try_send(message) = @native.try_send(message)

      # As of Thread::SizedQueue: sends a message.
      # @param non_block [Boolean] whether to raise {Full} rather than to wait
      # @return [self, nil] nil after the timeout
      # @note Raises as {#send} does
      def push(message, non_block = false, timeout: nil)
        return (self if put(message, Options.seconds("timeout", timeout))) unless non_block
        raise ArgumentError, "can't set a timeout if non_block is enabled" unless timeout.nil?
        raise Full, "queue full" unless @native.try_send(message)

        self
      end
      alias enq push

      # @return [self]
      def <<(message) = push(message)

      # Sends many at the price of one.
      # @param messages [Enumerable<String>]
      # @param timeout [Numeric, nil] for all of them together
      # @return [Integer] how many were sent: fewer than there are if some were thrown away
      # @note Raises as {#send} does. Messages before the one that failed were sent: how many says {Error#sent}
      def send_many(messages, timeout: nil)
        seconds = Options.seconds("timeout", timeout)
        # An array of our own, which nobody changes while we wait.
        messages = messages.map { |message| Handing.string(message) }
        sent, all = Fibers.aside { @native.send_many(messages, seconds) }
        return sent if all

        raise TimedOut.new("room", seconds).tap { |error| error.instance_variable_set(:@sent, sent) }
      end

      # @return [Symbol] what happens to a message that finds no room
      def overflow = @native.overflow.to_sym

      # @raise [InvalidValue]
      def overflow=(overflow)
        @native.overflow = Handing.overflow(overflow)
      end

      # @return [Integer] how many messages were thrown away under `:drop_newest`
      def dropped = @native.dropped

      # Closes it: what was sent will be received. From any thread, any number of times; who
      # waits for room is told {EndClosed}.
      def close
        @native.close
        nil
      end

      def closed? = @native.closed?

      def inspect = "#<Procwright::Queue::Sender#{', closed' if closed?}>"

      # Another one for the same queue: `dup` and `clone`.
      # @private
      def initialize_copy(other)
        @native = other.native.another
      end

      # @private
      attr_reader :native

      private

      # Whether there was room in time.
      def put(message, seconds)
        return @native.send_by(message, seconds) unless Fibers.scheduled?

        @native.try_send(message) || Fibers.aside { @native.send_by(message, seconds) }
      end
    end

    # How ends and invitations get to where they belong.
    # @private
    module Handing
      module_function

      # Gives it to a block, and closes it after that.
      def lend(closable)
        return closable unless block_given?

        begin
          yield closable
        ensure
          closable.close
        end
      end

      def native(invitation, kind)
        return invitation.native if invitation.is_a?(kind)

        raise InvalidValue, "#{invitation.inspect} is no #{kind}"
      end

      def overflow(name)
        raise InvalidValue, "overflow is #{name.inspect}: use :block, :fail or :drop_newest" unless name.is_a?(Symbol)

        name.name
      end

      def string(message)
        String.try_convert(message) or raise TypeError, "a message is a String, and #{message.inspect} is none"
      end

      # Over a socket, which may be full. It is waited for as Ruby waits.
      def hand(native, socket)
        fd = number(socket)
        socket.to_io.wait_writable
        native.send_over(fd)
      rescue Errno::EAGAIN
        retry
      end

      def receive(kind, socket)
        fd = number(socket)
        socket.to_io.wait_readable
        kind.receive(fd)
      rescue Errno::EAGAIN
        retry
      end

      def number(socket)
        return socket.to_io.fileno if socket.respond_to?(:to_io)

        raise InvalidValue, "#{socket.inspect} is no socket: pass a UNIXSocket"
      end
    end
  end
end
