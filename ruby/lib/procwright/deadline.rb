# frozen_string_literal: true

module Procwright
  # The moment until which a call may wait: so many seconds from now, nil for ever.
  # @private
  class Deadline
    def initialize(seconds)
      @at = seconds && (now + seconds)
    end

    # @return [Float, nil] seconds that are left, 0.0 once it has passed; nil for ever
    def remaining = @at && [@at - now, 0.0].max

    private

    # `::Process`, since {Process} is ours.
    def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
  end
  private_constant :Deadline
end
