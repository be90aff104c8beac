# frozen_string_literal: true

module Procwright
  module Queue
    # Included in every exception of a queue.
    module Error
      include Procwright::Error

      # @return [Integer, nil] how many messages a `send_many` had sent
      attr_reader :sent
    end

    # An exception of the system's (Errno::...) with a message of ours.
    # @private
    module OwnMessage
      include Error

      # @private
      def initialize(words, *)
        super(nil)
        @words = words
      end

      def message = @words
      alias to_s message
    end

    # There is no message now, for a {Receiver#pop} that does not wait. As of Thread::Queue.
    class Empty < ThreadError
      include Error
    end

    # There is no room now, for a {Sender#push} that does not wait, and for a sender with
    # `overflow: :fail`. As of Thread::SizedQueue.
    class Full < ThreadError
      include Error
    end

    # A signal handler would wait for the very call that it has interrupted.
    class Busy < ThreadError
      include Error
    end

    # The time is up. Nothing was sent or received, or no place at the queue was had. A
    # Timeout::Error.
    class TimedOut < WaitTimeout
      include Error

      # @private
      def self.of_place(words) = new("place at the queue", nil).tap { |error| error.instance_variable_set(:@words, words) }

      # @private
      def initialize(what, timeout)
        super(what, timeout)
        @words = "no #{what} within #{Seconds.shown(timeout)}"
      end

      def message = @words
      alias to_s message
    end

    # The other side has left: for a receiver, every sender is gone, no invitation is left,
    # and all that they had sent was received; for a sender, the receiver was closed. As of
    # Thread::Queue, and so it ends a `loop`.
    class Closed < ClosedQueueError
      include Error
    end

    # This end was closed in this process, before or while it was used.
    class EndClosed < IOError
      include Error
    end

    # The receiver's process has died, or runs another program. What it had not received stays
    # in the queue for as long as any process has that. Once another receiver has taken over,
    # sending goes on.
    class ReceiverDead < Errno::EOWNERDEAD
      include OwnMessage
    end

    # All lanes of the queue are taken: by senders, or by what those that left had sent. The
    # latter come free as it is received.
    class NoLane < Errno::EBUSY
      include OwnMessage
    end

    # There is no queue of that name, or no process has it any more.
    class NoQueue < Errno::ENOENT
      include OwnMessage
    end

    # There are no queues here.
    class Unsupported < Errno::ENOTSUP
      include OwnMessage
    end

    # The queue has a receiver that lives.
    class ReceiverAlive < Errno::EADDRINUSE
      include OwnMessage
      # @return [Integer, nil] its process, as far as that is known
      attr_reader :pid

      # @private
      def initialize(words, pid = nil, *)
        super
        @pid = pid
      end
    end

    # There is a queue of that name, and its receiver lives, or is about to be made.
    class NameTaken < Errno::EADDRINUSE
      include OwnMessage
      # @return [String]
      attr_reader :name
      # @return [Integer, nil] the receiver's process, as far as that is known
      attr_reader :pid

      # @private
      def initialize(words, name = nil, pid = nil)
        super
        @name = name
        @pid = pid
      end
    end

    # A message does not fit, however empty the queue is. Make it with a larger `limit`.
    class TooLarge < InvalidValue
      include Error
      # @return [Integer] bytes of the message
      attr_reader :length
      # @return [Integer] the longest that fits
      attr_reader :most

      # @private
      def initialize(words, length = nil, most = nil)
        super(words)
        @length = length
        @most = most
      end
    end

    # The memory that the other side has left makes no sense. That lane is not used any more;
    # all others are.
    class Damaged < IOError
      include Error
      # @return [Integer]
      attr_reader :lane
      # @return [Integer, nil] the process at its other end, as far as that is known
      attr_reader :peer

      # @private
      def initialize(words, lane = nil, peer = nil)
        super(words)
        @lane = lane
        @peer = peer
      end
    end

    # The queue was made by a program that uses another version of the format.
    class WrongVersion < StandardError
      include Error
    end

    # This program was not spawned with such a channel, or that was taken before.
    class NoParent < StandardError
      include Error
    end

    # A child has no such channel, or none any more.
    class NoChannel < StandardError
      include Error
    end

    # This end of the queue belongs to the process which this one was forked from. Attach
    # anew, with an invitation that was made for the fork.
    class Forked < IOError
      include Error
    end
  end

  # The extension makes exceptions of queues with these.
  # @private
  module Native
    class << self
      # @param kind [String] the name of the class
      # @param attributes [Array] of that class, nil where it has none
      def queue_error(kind, words, *attributes)
        Queue.const_get(kind).new(words, *attributes.compact)
      end

      def queue_place_error(words) = Queue::TimedOut.of_place(words)

      def queue_end_closed_error(name, was_waiting)
        words = case name
                when "invitation" then "the invitation was used up, or closed: ask the receiver for another"
                else "the #{name} was closed in this process#{' meanwhile' if was_waiting}"
                end
        Queue::EndClosed.new(words)
      end
    end
  end
end
