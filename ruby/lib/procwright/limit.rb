# frozen_string_literal: true

module Procwright
  # The number of bytes of each stream that are kept.
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

    # @return [Array, nil] the parts of a limit for the extension
    # @private
    def self.parts_of(given)
      case given
      when nil then nil
      when Limit then given.parts
      else new(given).parts
      end
    end

    # @private
    def parts = [@bytes, @beyond == :fail]
  end
end
