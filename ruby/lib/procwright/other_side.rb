# frozen_string_literal: true

module Procwright
  # What a call raises whose other side is a program that was started here, and has gone: why, if
  # that is known. Of what has a `@native`, `await_end`, `being_stopped?`, `past_result` and
  # `raise_stop_reason`.
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
    # the program has failed, if it has, with the failure as its cause. Waits
    # for the end of the program as `patience` has it, for `left` seconds at most: with 0 what is
    # known now is told. Called where the error is rescued, which so is the cause of what is raised
    # in its place.
    # @private
    def other_side_gone(error, patience, left)
      patience.once(left) { await_near_end(left) } if @native.ours?
      raise_stop_reason
      result = past_result if @native.ours?
      raise error if result.nil? || result.success?

      # That of a stream begins with the command.
      how = error.is_a?(Errno::EPIPE) ? result.outcome : result.summary
      words = "#{error.message}: #{how}"
      raise OtherSide.saying(error, words), cause: CommandFailed.new(result)
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
