# frozen_string_literal: true

module Procwright
  # The treatment of output that is not read as fast as it comes.
  #
  # - `:spill`: memory, then files without a name, then the child waits. The default.
  # - `:block`: the bare pipe, and the child waits when it is full. {Stream#to_io} works.
  # - `:drop_oldest`, `:drop_newest`: memory, then bytes are dropped and counted
  # - `:fail`: memory, then reading raises {StreamOverflow}
  class Overflow
    # Bytes that wait in memory unless another number is given.
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
end
