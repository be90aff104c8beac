# frozen_string_literal: true

module Procwright
  # What a call raises whose other side is a program that was started here, and has gone: why, if
  # that is known. Of what has a `@native`, `await_end`, `being_stopped?`, `past_result` and
  # `stop_reason`, and in `@failure` what is still to be raised of a function's.
  # @private
  module OtherSide
    # Seconds for which a program is waited for that has let go of its end of a pipe or queue: it
    # may be about to end.
    ABOUT_TO_END = 1.0
    private_constant :ABOUT_TO_END

    # For how long the calls of one end of a pipe or queue wait for the end of the program. One wait
    # does for all: who calls again and again is not held up each time by a program that has closed
    # its end and lives on.
    # @private
    class Patience
      # Calls the block once, for the first call that has seconds left, nil without a limit.
      def once(left)
        return if @has_waited || left&.zero?

        @has_waited = true
        yield
      end
    end

    # Raises what {Child#wait} raises if it was stopped for a limit; else the error, which says how
    # the program has failed, if it has, with the failure as its cause. Waits for the end of the
    # program as `patience` has it, for `left` seconds at most: with 0 what is known now is told.
    # Called where the error is rescued. Takes nothing from the child: whoever else asks, and the end
    # of a block, is told too.
    # @private
    def other_side_gone(error, patience, left)
      if @native.ours?
        patience.once(left) { await_near_end(left) }
        # By which the end of a block knows it.
        error.instance_variable_set(:@of_child, object_id)
        told = in_place_of(error)
      end
      told ? raise(told.first, cause: told.last) : raise(error)
    end

    # Raises what it was stopped for, if its block is left by the error of a call that did not know
    # yet. For the end of a block, once all is over.
    # @private
    def raise_reason(error)
      return unless error.instance_variable_get(:@of_child) == object_id

      reason = reason_if_known
      raise reason, cause: reason.equal?(@failure) ? reason.cause : error if reason
    end

    # The error with other words.
    # @private
    def self.saying(error, words)
      error.exception(words).tap do |other|
        # Those of errors whose message is an attribute.
        %i[@message @words].each { |name| other.instance_variable_set(name, words) if other.instance_variable_defined?(name) }
      end
    end

    private

    # The exception to raise for the error, and its cause; nil if there is nothing to tell.
    def in_place_of(error)
      reason = stop_reason
      # What a function of the caller's has raised is one object for all who are told.
      return [OtherSide.saying(error, "#{error.message}: #{reason.class}: #{reason.message}"), reason] if reason && reason.equal?(@failure)
      return [reason, error] if reason

      result = past_result
      return if result.nil? || result.success?

      # That of a stream begins with the command.
      how = error.is_a?(Errno::EPIPE) ? result.outcome : result.summary
      [OtherSide.saying(error, "#{error.message}: #{how}"), CommandFailed.new(result)]
    rescue StandardError
      # An error that asking raises says less than the one at hand.
      nil
    end

    # As `stop_reason`, with nothing in the place of an error that asking raises.
    def reason_if_known
      stop_reason
    rescue StandardError
      nil
    end

    # What a `communicate` that is not over has read; nil if there is none, or another thread is
    # within it, which has what was read.
    def read_so_far
      @communication&.peek
    rescue InvalidValue
      nil
    end

    # Waits for the end of a program that is about to end, or is being stopped.
    def await_near_end(left)
      deadline = Deadline.new(left)
      await_end([ABOUT_TO_END, deadline.remaining].compact.min) unless being_stopped?
      await_end(deadline.remaining) if being_stopped?
    rescue Procwright::Error
      # Such as Stalled: whoever waits next is told.
      nil
    end
  end
  private_constant :OtherSide
end
