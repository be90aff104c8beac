# frozen_string_literal: true

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
    # A queue as {Queue.stat} finds it.
    #
    # - `lanes`: how many senders it has room for; `taken`: those lanes that are not free, as
    #   {LaneStat}
    # - `first`, `limit`: the bytes that a lane takes at first, and at most; `memory`: what
    #   all of it takes now
    # - `epoch`: how often a receiver was made, or went on in another thread
    # - `receiver`: a {ReceiverStat}
    Stat = Struct.new(:lanes, :first, :limit, :memory, :epoch, :receiver, :taken, keyword_init: true)

    # The receiver's `state` is `:alive`, `:dead` or `:closed`; `pid` is nil where it is unknown;
    # `asleep` is `:word` or `:descriptor`, nil while it is awake.
    ReceiverStat = Struct.new(:state, :pid, :asleep, keyword_init: true)

    # A lane's `state` is `:taken`, `:left`, `:orphaned`, `:clearing` or `:damaged`; `waiting` are the
    # bytes that were sent and not received, `block` those of the block that the sender is in;
    # `blocked` says whether it waits for room.
    LaneStat = Struct.new(:number, :state, :pid, :guest, :waiting, :block, :blocked)

    # Looks at the queue of that name, without taking part in it. The parts of the result are
    # from different moments.
    # @return [Stat]
    # @raise [NoQueue]
    # @raise [InvalidValue] for what is no name
    def self.stat(name)
      found = Native.queue_stat(Arguments.queue_name(name))
      Stat.new(**found, receiver: ReceiverStat.new(**found[:receiver]).freeze,
                        taken: found[:taken].map { |parts| LaneStat.new(*parts).freeze }.freeze).freeze
    end

    # The names of all queues of this user, also of those that no process has any more.
    # @return [Array<String>]
    def self.names = Native.queue_names

    # Constructors that take a block: they give it what they have made, and close that after it.
    # @private
    module Lending
      private

      def lend(closable)
        return closable unless block_given?

        begin
          yield closable
        ensure
          closable.close
        end
      end
    end
    private_constant :Lending
  end
end
