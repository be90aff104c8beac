# frozen_string_literal: true

module Procwright
  # The number of bytes of each stream that are kept.
  #
  #   Procwright::Limit.new("1MiB")               # the first and the last half of it
  #   Procwright::Limit.new(1 << 20, beyond: :fail) # more ends the run
  class Limit
    # @return [Integer]
    attr_reader :bytes
    # @return [Symbol] `:ends` or `:fail`
    attr_reader :beyond

    def initialize(bytes, beyond: :ends)
      @bytes = Arguments.bytes("bytes", bytes)
      @beyond = Arguments.word("beyond", beyond, %i[ends fail])
      freeze
    end

    def ==(other) = other.is_a?(Limit) && [bytes, beyond] == [other.bytes, other.beyond]
    alias eql? ==
    def hash = [bytes, beyond].hash

    # @return [Array, nil] the parts of a limit for the extension
    # @private
    def self.parts_of(given)
      case given
      when nil then nil
      when Limit then given.parts
      else new(Arguments.bytes("limit", given, ", a Procwright::Limit, or nil")).parts
      end
    end

    # @private
    def parts = [@bytes, @beyond == :fail]
  end
end
