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

    POLICIES = %i[spill block drop_oldest drop_newest fail].freeze
    private_constant :POLICIES

    # @return [Symbol]
    attr_reader :policy
    # @return [Integer] bytes in memory
    attr_reader :memory
    # @return [Integer, nil] bytes on disk under `:spill`; nil for what the disk allows
    attr_reader :disk

    def initialize(policy = :spill, memory: MEMORY, disk: nil)
      @policy = Arguments.word("policy", policy, POLICIES)
      @memory = Arguments.bytes("memory", memory)
      @disk = disk.nil? ? nil : Arguments.bytes("disk", disk, ", or nil for what the disk allows")
      freeze
    end

    # @private
    def self.of(given)
      return given if given.is_a?(Overflow)

      new(Arguments.word("overflow", given, POLICIES, ", or pass a Procwright::Overflow"))
    end

    # @private
    def parts = @policy == :block ? nil : [@policy, @memory, @disk]
  end
end
