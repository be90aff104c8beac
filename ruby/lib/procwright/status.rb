# frozen_string_literal: true

module Procwright
  # The way a program ended. It answers what a Process::Status does, and nil, never 0, where
  # the answer is not known.
  class Status
    # @return [Integer, nil] nil of a program that an earlier map has run
    attr_reader :pid
    # @return [Integer, nil] the exit code, nil after a signal and where it is unknown
    attr_reader :exitstatus
    # @return [Integer, nil] the number of the signal
    attr_reader :termsig
    # @return [String, nil] its name: `"SIGTERM"`, ...
    attr_reader :signal_name
    # @return [Symbol, nil] the reason why it is unknown: `:reaped_elsewhere`, `:not_reaped`,
    #   `:not_told`, `:still_running`
    attr_reader :unknown

    # @private
    def initialize(pid, kind, *parts)
      @pid = pid
      case kind
      when :exited then @exitstatus = parts[0]
      when :signaled then @termsig, @signal_name, @core = parts
      else @unknown = parts[0]
      end
      freeze
    end

    # @return [Boolean, nil] true if it exited with 0; nil if it did not exit, or that is unknown
    def success? = @exitstatus && @exitstatus.zero?

    def exited? = !@exitstatus.nil?
    def signaled? = !@termsig.nil?
    def unknown? = !@unknown.nil?
    def coredump? = @core ? true : false
    # False: the program has ended.
    def stopped? = false
    def stopsig = nil

    # @return [Integer, nil] as wait(2) writes it
    def to_i
      return if unknown?

      exited? ? @exitstatus << 8 : @termsig | (coredump? ? 0x80 : 0)
    end

    def ==(other)
      case other
      when Status then [to_i, unknown] == [other.to_i, other.unknown]
      else !unknown? && to_i == other
      end
    end

    def &(other) = to_i & other
    def >>(other) = to_i >> other

    def to_s = @pid ? "pid #{@pid} #{words}" : words
    def inspect = "#<Procwright::Status: #{self}>"

    # Parts for pattern matching.
    def deconstruct_keys(_keys)
      { pid: pid, exitstatus: exitstatus, termsig: termsig, success: success?, unknown: unknown }
    end

    private

    def words
      return "exit #{@exitstatus}" if exited?
      return "unknown (#{@unknown})" if unknown?

      "#{@signal_name} (signal #{@termsig})#{' (core dumped)' if coredump?}"
    end
  end
end
