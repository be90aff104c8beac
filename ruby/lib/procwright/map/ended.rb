# frozen_string_literal: true

module Procwright
  class Map
    # A command of a map, and what became of it.
    class Ended
      include NamesOfOthers::OfResult

      # @return [Integer] its place among the commands, from 0 on
      attr_reader :index
      # @return [Array<String>] the program and its arguments
      attr_reader :argv
      # @return [Result, nil] the result of its run, nil if it was not run
      attr_reader :result
      # @return [Exception, nil] the reason why it could not be started, or was broken off; it is
      #   not raised
      attr_reader :error
      # @return [Past, nil] what the journal tells of it, if it was not run for that reason
      attr_reader :before
      # @return [Ended, nil] the command for whose failure this one was stopped
      #   (`stop_after_failures`), nil of others
      attr_reader :cause
      # @return [String] what became of it, in a line
      attr_reader :summary

      # @private
      def initialize(index, argv, result, error, before, summary, cause)
        @index = index
        @argv = argv
        @result = result
        @error = error
        @before = before
        @summary = summary
        @cause = cause
        freeze
      end

      # True if it ended by itself with code 0, now or before.
      def success?
        return @before.success? if @before

        @error.nil? && !@result.nil? && @result.success?
      end

      # True if it was started by an earlier map, and how it ended is not known.
      def unknown? = !@before.nil? && @before.outcome.nil?

      # @return [String, nil] what it wrote to stdout; nil if it was not run
      def stdout = @result&.stdout

      # @return [String, nil] what it wrote to stderr; nil if it was not run
      def stderr = @result&.stderr

      # @return [Status, nil] the way it ended, now or before; nil if it could not be started, and
      #   where the journal does not tell
      def status = @result ? @result.status : @before&.status

      # @return [Integer, nil] its exit code; nil after a signal, and where `status` is nil or unknown
      def exitstatus = status&.exitstatus

      # @return [String] what became of it, in a line without its words, whether or not it was run
      def outcome
        return "#{@error.class}: #{first_line(@error)}" if @error && @result
        return first_line(@error) if @error
        return @result.outcome if @result

        @before&.outcome || "was started, and its end is not known"
      end

      # Gives itself if it succeeded, and raises what {Procwright.run!} would. Of one that was
      # stopped for the failure of another it raises that failure. Of one that has failed before,
      # for whatever reason, and of one whose end is not known, a {CommandFailed} without a result:
      # its {CommandFailed#status} is that of the journal.
      # @raise [CommandFailed, TimeoutExpired, SpawnError, ...]
      def check!
        @cause&.check!
        raise @error if @error

        if @result
          Run.raise_for(@result, :raise)
          @result.check!
        end
        raise CommandFailed.before(status, @summary) unless success?

        self
      end

      # Parts for pattern matching.
      def deconstruct_keys(_keys)
        { index: index, argv: argv, result: result, error: error, before: before, success: success?, unknown: unknown? }
      end

      def to_s = @summary
      def inspect = "#<Procwright::Map::Ended #{@index}: #{@summary}>"

      private

      # The words of an error without the line that says what to do.
      def first_line(error) = error.message.partition("\n  hint: ").first
    end

    # What a journal tells of a command of an earlier map: seconds since 1970 at its start; true
    # if it is known to have succeeded; seconds from its start to its end and how it ended, in
    # words, both nil if that is not known; the {Status} of its program, nil as well if it could not
    # be started.
    Past = Struct.new(:started_at, :success, :duration, :outcome, :status) do
      def success? = success == true

      # @return [Integer, nil] its exit code; nil after a signal, and where `status` is nil or unknown
      def exitstatus = status&.exitstatus
    end

    # How far a map is: commands that were taken from the input, that run at this moment, that
    # were run and have succeeded or failed (or could not be started); that the end of the map has
    # stopped; that were not run since the journal tells of their success, their failure, a start
    # without an end; true if there is no more input; and `:failures`, `:deadline`, `:cancel` or
    # `:error` if that has ended it before its time.
    Progress = Struct.new(
      :taken, :running, :succeeded, :failed, :stopped, :succeeded_before, :failed_before, :unknown,
      :all_taken, :stopped_by, keyword_init: true
    )
  end
end
