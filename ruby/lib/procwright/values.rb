# frozen_string_literal: true

module Procwright
  # How a program is ended when it has to be: a signal, a time, and whom it concerns.
  #
  #   Procwright::Stop.new(signal: "INT", grace: 1.5, scope: :group)
  class Stop
    # @return [String] `"SIGTERM"`, ...
    attr_reader :signal
    # @return [Float] seconds until SIGKILL
    attr_reader :grace
    # @return [Symbol] `:process`, `:group` or `:tree`
    attr_reader :scope

    # @param signal [String, Symbol, Integer]
    # @param grace [Numeric] 0 kills at once, Float::INFINITY never
    # @param scope [Symbol] the program alone, its process group (it then gets one of its
    #   own), or all of its descendants
    # @raise [InvalidValue]
    def initialize(signal: "TERM", grace: 5.0, scope: :tree)
      @grace = Options.seconds("grace", grace) || Float::INFINITY
      @scope = scope.to_sym
      @signal = Native.check_stop(Options.signal(signal), @grace, @scope.name)
      freeze
    end

    def to_h = { signal: @signal, grace: @grace, scope: @scope }
    def ==(other) = other.is_a?(Stop) && to_h == other.to_h
    alias eql? ==
    def hash = to_h.hash
    def inspect = "#<Procwright::Stop #{@signal}, grace #{@grace} s, #{@scope}>"

    # @private
    def parts = [@signal, @grace, @scope.name]
  end

  # How many bytes of each stream are kept.
  #
  #   Procwright::Limit.new(1 << 20)              # the first and the last half of it
  #   Procwright::Limit.new(1 << 20, beyond: :fail) # more ends the run
  class Limit
    # @return [Integer]
    attr_reader :bytes
    # @return [Symbol] `:ends` or `:fail`
    attr_reader :beyond

    def initialize(bytes, beyond: :ends)
      unless bytes.is_a?(Integer) && bytes >= 0
        raise InvalidValue, "limit is #{bytes.inspect}: pass a number of bytes, or nil"
      end
      unless %i[ends fail].include?(beyond)
        raise InvalidValue, "beyond is #{beyond.inspect}: use :ends or :fail"
      end

      @bytes = bytes
      @beyond = beyond
      freeze
    end

    def ==(other) = other.is_a?(Limit) && [bytes, beyond] == [other.bytes, other.beyond]
    alias eql? ==
    def hash = [bytes, beyond].hash

    # @private
    def parts = [@bytes, @beyond == :fail]
  end

  # What becomes of output that is not read as fast as it comes.
  #
  # - `:spill`: memory, then files without a name, then the child waits. The default.
  # - `:block`: the bare pipe, and the child waits when it is full. {Stream#to_io} works.
  # - `:drop_oldest`, `:drop_newest`: memory, then bytes are dropped and counted
  # - `:fail`: memory, then reading raises {StreamOverflow}
  class Overflow
    # How much waits in memory unless it is said otherwise.
    MEMORY = 16 * 1024 * 1024

    # @return [Symbol]
    attr_reader :policy
    # @return [Integer] bytes in memory
    attr_reader :memory
    # @return [Integer, nil] bytes on disk under `:spill`; nil for what the disk allows
    attr_reader :disk

    def initialize(policy = :spill, memory: MEMORY, disk: nil)
      unless %i[spill block drop_oldest drop_newest fail].include?(policy)
        raise InvalidValue, "overflow is #{policy.inspect}: use :spill, :block, :drop_oldest, " \
                            ":drop_newest or :fail"
      end
      unless memory.is_a?(Integer) && memory >= 0 && (disk.nil? || (disk.is_a?(Integer) && disk >= 0))
        raise InvalidValue, "overflow: memory and disk are numbers of bytes"
      end

      @policy = policy
      @memory = memory
      @disk = disk
      freeze
    end

    # @private
    def self.of(given) = given.is_a?(Overflow) ? given : new(given)

    # @private
    def parts = @policy == :block ? nil : [@policy, @memory, @disk]
  end

  # Ends runs from another thread, or from a signal handler.
  #
  #   cancel = Procwright::Cancel.new
  #   Thread.new { Procwright.run("make", cancel: cancel) }
  #   cancel.cancel
  class Cancel
    def initialize
      @native = Native::Cancel.new
    end

    # Stops every run that has this. Returns at once.
    def cancel
      @native.cancel
      nil
    end

    def cancelled? = @native.cancelled?

    # @return [Integer] a descriptor that is readable once it is cancelled. Not to be
    #   read from
    def readiness_fd = @native.readiness_fd

    # @private
    attr_reader :native
  end

  # Something that a run, or a child, tells while it goes on.
  class Event
    # @return [Symbol] `:held`, `:spilling`, `:degraded`, `:dropping`, `:overflowed`
    attr_reader :kind
    # @return [String] all of it in words
    attr_reader :message
    # @return [String] the command as a shell takes it
    attr_reader :command
    # @return [String] which stream, or streams
    attr_reader :stream
    # @return [Array<Holder>] who still holds them
    attr_reader :holders

    # @private
    def initialize(kind, message, command, stream, holders, complete)
      @kind = kind
      @message = message
      @command = command
      @stream = stream
      @holders = holders.map { |pid, name| Holder.new(pid, name) }.freeze
      @complete = complete
      freeze
    end

    # Whether every process could be asked whether it is a holder.
    def complete? = @complete
    alias to_s message
  end
end
