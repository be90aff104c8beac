# frozen_string_literal: true

module Procwright
  # Figures of one pipe.
  class StreamInfo
    # @return [Integer] read, kept, and left out by a limit
    attr_reader :bytes, :kept_bytes, :dropped_bytes
    # @return [Integer, nil] the place in the kept bytes where the dropped ones would stand
    attr_reader :dropped_at
    # @return [Float, nil] seconds, at most, for which the program could not write because the
    #   pipe was full
    attr_reader :blocked
    # @return [Array<Holder>] the processes that could still have written when the run was over
    attr_reader :held_by
    # @return [String, nil] the file that has all bytes, if one was asked for
    attr_reader :kept_at
    # @return [String, nil] the reason why that file has not all
    attr_reader :kept_error
    # @return [Integer] bytes that a callback had not taken when the run was over
    attr_reader :undelivered_bytes

    # @private
    def initialize(raw)
      @bytes, @kept_bytes, @dropped_bytes = raw.values_at(:bytes, :kept_bytes, :dropped_bytes)
      @dropped_at, @blocked, @complete = raw.values_at(:dropped_at, :blocked, :complete)
      @held_by = raw[:held_by].map { |parts| Holder.seen(*parts) }.freeze
      @held_by_complete, @kept_at, @kept_error = raw.values_at(:held_by_complete, :kept_at, :kept_error)
      @undelivered_bytes = raw[:undelivered_bytes]
      freeze
    end

    alias blocked_s blocked

    # True if all is here that the program itself wrote.
    def complete? = @complete

    # True if every process could be asked whether it is a holder.
    def held_by_complete? = @held_by_complete

    # @return [Hash]
    def to_h
      { bytes: bytes, kept_bytes: kept_bytes, dropped_bytes: dropped_bytes, dropped_at: dropped_at,
        blocked_s: blocked, complete: complete?, held_by: held_by.map(&:to_h),
        held_by_complete: held_by_complete?, kept_at: kept_at, kept_error: kept_error,
        undelivered_bytes: undelivered_bytes }
    end
  end

  # The outcome of a run, whether it went well or not.
  class Result
    include NamesOfOthers::OfResult

    # @return [Array<String>] the program and its arguments
    attr_reader :argv
    # @return [Integer] the program's number while it ran
    attr_reader :pid
    # @return [Status] the way it ended
    attr_reader :status
    # @return [Symbol] `:finished`, `:timeout`, `:idle_timeout`, `:cancelled`, `:output_limit`
    attr_reader :reason
    # @return [Array<Integer>] the exit codes that were to be no failure, besides 0
    attr_reader :ok_codes
    # @return [Float] seconds from its start to the end of the run
    attr_reader :duration
    # @return [Float, nil] seconds of processor time; nil if another process reaped it
    attr_reader :cpu_user, :cpu_system
    # @return [Integer, nil] peak resident memory
    attr_reader :max_rss_bytes
    # @return [Array<Survivor>] the processes that could not be ended
    attr_reader :survivors
    # @return [Array<String>] the activity of its processes when it had to be stopped
    attr_reader :processes
    # @return [StreamInfo, nil] nil for a stream without a pipe of ours
    attr_reader :stdout_info, :stderr_info
    # @return [String, nil] the captured output; nil where nothing was captured
    attr_reader :stdout, :stderr
    # @return [Array<Piece>, nil] both streams in the order of reading,
    #   as `[:stdout, "..."]`, if `merged: true` was asked for
    attr_reader :merged
    # @return [String] the outcome without the command: `exited with code 3`, `killed by SIGSEGV
    #   (core dumped)`, `timed out after 2 s (stopped in 0.011 s)`
    attr_reader :outcome
    # @return [String, nil] why it did not end by itself before its timeout or idle timeout, such
    #   as `cat (7) waits for input on stdin`; nil if that is not known
    attr_reader :why
    # @return [String] the command and its outcome, in a line
    attr_reader :summary
    # @return [String] the outcome in full: the reason, the processes, the last lines of stderr
    attr_reader :explanation

    # @private
    def initialize(raw, encodings = Encodings::BINARY)
      @argv = raw[:argv].each(&:freeze).freeze
      @pid = raw[:pid]
      @status = Status.new(@pid, *raw[:status])
      @reason, @duration, @cpu_user, @cpu_system, @max_rss_bytes, @processes,
        @outcome, @why, @summary, @explanation =
        raw.values_at(:reason, :duration, :cpu_user, :cpu_system, :max_rss_bytes, :processes,
                      :outcome, :why, :summary, :explanation)
      @ok_codes = raw[:ok_codes].freeze
      @survivors = raw[:survivors].map { |parts| Survivor.new(*parts) }.freeze
      @stdout_info = raw[:stdout_info] && StreamInfo.new(raw[:stdout_info])
      @stderr_info = raw[:stderr_info] && StreamInfo.new(raw[:stderr_info])
      @merged = raw[:merged] && Piece.all(raw, encodings)
      @stdout = encodings.decode_lossy(raw[:stdout])
      @stderr = encodings.decode_lossy(raw[:stderr])
    end

    alias duration_s duration

    # True if it ended by itself, with code 0 or one of {ok_codes}.
    def success? = @reason == :finished && [0, *@ok_codes].include?(exitstatus)

    # @return [Integer, nil] the exit code, nil after a signal and where it is unknown
    def exitstatus = @status.exitstatus

    # @return [Integer, nil] the number of the signal that ended it
    def termsig = @status.termsig

    # True if a timeout ended it.
    def timed_out? = %i[timeout idle_timeout].include?(@reason)

    # Gives itself if the run succeeded.
    # @raise [CommandFailed]
    def check!
      raise CommandFailed, self unless success?

      self
    end

    # Everything, under the names that the result has as JSON.
    # @return [Hash]
    def to_h
      { argv: argv, pid: pid, status: status.deconstruct_keys(nil), reason: reason, outcome: outcome,
        why: why, duration_s: duration,
        cpu_user_s: cpu_user, cpu_system_s: cpu_system, max_rss_bytes: max_rss_bytes,
        survivors: survivors.map(&:to_h), stdout: stdout, stderr: stderr,
        stdout_info: stdout_info&.to_h, stderr_info: stderr_info&.to_h }
    end

    # Parts for pattern matching.
    def deconstruct_keys(_keys)
      { argv: argv, pid: pid, status: status, reason: reason, success: success?, exitstatus: exitstatus,
        termsig: termsig, stdout: stdout, stderr: stderr, duration: duration, survivors: survivors }
    end

    def inspect = "#<Procwright::Result #{summary}>"
  end
end
