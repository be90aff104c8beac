# frozen_string_literal: true

require "timeout"

module Procwright
  # Included in every exception of this library: `rescue Procwright::Error` catches all.
  # Each is also of the kind that Ruby has for it, such as IOError.
  module Error; end

  # A value that cannot be used. Nothing was done. The message says which parameter it was,
  # its value, and what would do.
  class InvalidValue < ArgumentError
    include Error

    # What the core has refused, what is wrong with it, what would do, and the place of the stage of
    # a pipeline that has it; nil if it was Ruby.
    # @private
    Refused = Struct.new(:what, :problem, :hint, :stage)
    private_constant :Refused

    # @private
    attr_reader :refused

    # @private
    def self.by_core(*parts)
      new("#{parts[0]} #{parts[1]}: #{parts[2]}").tap { |error| error.instance_variable_set(:@refused, Refused.new(*parts)) }
    end
  end

  # A mistake in this library. Please report it. The process goes on.
  class InternalError < StandardError
    include Error
  end

  # A function between two programs has raised, which the pipeline has failed for.
  # @private
  class FunctionFailed < InternalError
    # @return [Integer] the stage that it is behind, from 0
    attr_reader :stage

    def initialize(stage, words)
      super("the function behind stage #{stage + 1} has failed: #{words}")
      @stage = stage
    end
  end
  private_constant :FunctionFailed

  # Included in the exceptions of a program that could not be started, and of which nothing
  # is left. They are those of the system, as Process.spawn raises them: a program that does
  # not exist is an Errno::ENOENT.
  module SpawnError
    include Error

    # @return [Symbol] the step that failed: `:exec`, `:chdir`, ...
    attr_reader :step
    # @return [String] its object: a path, a name
    attr_reader :object
    # @return [Integer, nil] the stage of a pipeline that it is, from 0; nil without one
    attr_reader :stage
    # @return [String] the whole text
    attr_reader :message

    alias to_s message

    # A thread that a start needs.
    # @private
    def self.thread(&work)
      Thread.new(&work)
    rescue ThreadError
      # Ruby does not say why, and the system has one reason.
      reason = Errno::EAGAIN.new.message
      raise build(Errno::EAGAIN::Errno, "", :pthread_create, "pthread_create: #{reason}\n  hint: this user, or " \
                  "the container, has as many processes and threads as it may: raise RLIMIT_NPROC (ulimit -u)")
    end

    # What the block opens for a start.
    # @private
    def self.during(step)
      yield
    rescue SystemCallError => e
      raise build(e.errno, "", step, "#{step}: #{e.message}")
    end

    # @private
    def self.build(errno, object, step, message, stage = nil)
      SystemErrors.with(self, errno).new.tap do |error|
        error.instance_exec do
          @step = step.to_sym
          @object = object
          @stage = stage
          @message = message
        end
      end
    end
  end

  # A process that does not exist.
  class NoSuchProcess < Errno::ESRCH
    include Error
    # @return [Integer, nil]
    attr_reader :pid

    def initialize(pid, message)
      super()
      @pid = pid
      @message = message
    end

    def message = @message
    alias to_s message
  end

  # Included in the exceptions of a run or a pipeline that did not end as it should, with its result.
  module RunError
    include Error
    # @return [Result, PipelineResult]
    attr_reader :result

    def initialize(result, message = result.explanation)
      super(message)
      @result = result
    end
  end

  # The program failed, and `run!` or {Result#check!} was called; or a pipeline by its rule, and
  # `pipeline!` or {PipelineResult#check!}.
  class CommandFailed < StandardError
    include RunError

    # Of a command that has failed when an earlier map ran it: there is no result.
    # @private
    def self.before(status, message)
      new(nil, message).tap { |error| error.instance_variable_set(:@status, status) }
    end

    # @return [Status, nil] the way the program ended, also when an earlier map ran it; nil of a
    #   pipeline, and where the journal does not tell
    def status = @status || (@result.status if @result.respond_to?(:status))

    # @return [Integer, nil] its exit code; nil after a signal, and where `status` is nil or unknown
    def exitstatus = status&.exitstatus
  end

  # The timeout came: of a run, which was stopped, or of a wait, which ends nothing. A
  # Timeout::Error.
  class TimeoutExpired < ::Timeout::Error
    include Error
    # @return [Result, PipelineResult, nil] that of a run, whose error is a {RunError} besides; nil of a wait
    attr_reader :result

    # @private
    def self.of_run(result)
      new(result.explanation).tap do |error|
        error.instance_variable_set(:@result, result)
        error.extend(RunError)
      end
    end
  end

  # No output came for the idle timeout, and the run was stopped.
  class IdleTimeout < TimeoutExpired; end

  # More output came than the limit allows, and the run was stopped.
  class OutputLimitExceeded < StandardError
    include RunError
  end

  # The run was cancelled. Its `result` is nil if that was before it was started: then nothing was.
  class Cancelled < StandardError
    include RunError
  end

  # The timeout of a wait came first. It may be waited for again. That of a child says what its
  # processes are doing, who holds its streams, and what it wrote last to stderr, if it was waited
  # for for 0.1 s at least.
  class WaitTimeout < TimeoutExpired
    # @return [Float] the seconds that were waited
    attr_reader :timeout
    # @return [Array] the things that have not ended
    attr_reader :pending

    def initialize(what, timeout, pending = [], text = nil)
      super(text || "#{what} did not end within #{Seconds.shown(timeout)}")
      @timeout = timeout
      @pending = pending
    end

    # That of a read of a line out of `child`.
    # @private
    def self.of_a_read(stream, timeout, child)
      doing = child ? child.explain_silence(timeout) : ""
      new(stream.label, timeout, [stream], "no line from #{stream.label} within #{Seconds.shown(timeout)}; nothing is lost#{doing}")
    end
  end

  # The stream was closed in this process, before or while it was used. The message is
  # that of an IO.
  class StreamClosed < IOError
    include Error
    # @return [String] its name: `stdout of make test`
    attr_reader :stream

    # @private
    def initialize(stream, was_waiting)
      super(was_waiting ? "stream closed in another thread" : "closed stream")
      @stream = stream
    end
  end

  # The stream belongs to the process that this one was forked from.
  class StreamForked < IOError
    include Error
  end

  # More output came than may be kept.
  class StreamOverflow < IOError
    include Error
    # @return [Integer] the offset of the first byte that was too much
    attr_reader :offset

    def initialize(stream, offset)
      super("#{stream} wrote more than may be kept, from byte #{offset} on: " \
            "read it sooner, or choose another overflow")
      @offset = offset
    end
  end

  # Bytes that lay on disk cannot be read again. The stream goes on behind them.
  class StreamLost < IOError
    include Error
    # @return [Integer] their place in the stream
    attr_reader :offset, :length

    def initialize(stream, offset, length, reason)
      super("#{length} bytes of #{stream} at offset #{offset} were on disk and cannot be " \
            "read: #{reason}")
      @offset = offset
      @length = length
    end
  end

  # The child cannot go on: its output is full and unread. Nothing was ended
  # and nothing is lost; the call may be made again.
  class Stalled < StandardError
    include Error
    # @return [Array<String>] the full streams
    attr_reader :streams
    # @return [Float] seconds for which no read of it has begun
    attr_reader :after
    # @return [Boolean] true if it was a write that waited
    attr_reader :writing

    def initialize(command, streams, after, writing)
      @streams = streams.map(&:first)
      @after = after
      @writing = writing
      super(words(command, streams))
    end

    private

    def words(command, streams)
      it = streams.size == 1 ? "it" : "them"
      kept = streams.map { |name, memory, disk| "\n  #{name}: #{memory} bytes are kept in memory and #{disk} on disk" }
      "#{command} #{'reads no input and ' if @writing}cannot go on: its #{@streams.join(' and ')} " \
        "is full, and nobody has read #{it} for #{format('%g', @after)} s#{kept.join}\n  hint: read #{it}, " \
        "on another thread if this one waits; or spawn with an overflow: that keeps more or drops, " \
        "or with :null. The call may be made again"
    end
  end

  # The journal of a map cannot be used. Nothing more was started: a command that is not written
  # down could be run twice.
  class JournalError < StandardError
    include Error
    # @return [Integer, nil] the system's number, if it was the system that refused
    attr_reader :errno

    def initialize(message, errno)
      super(message)
      @errno = errno
    end
  end

  # Classes of the system's exceptions with a module of ours, by their number.
  # @private
  module SystemErrors
    @kinds = {}
    @lock = Mutex.new

    # The class for `errno` that includes `mixin`.
    def self.with(mixin, errno)
      @lock.synchronize do
        @kinds[[mixin, errno]] ||= begin
          base = SystemCallError.new(nil, errno).class
          kind = Class.new(base) { include mixin }
          name = base.name.split("::").last
          mixin.const_set(name, kind) unless mixin.const_defined?(name, false)
          kind
        end
      end
    end
  end

  # A refusal of the system: an Errno::... as always.
  module SystemFailure
    include Error
    # @return [String]
    attr_reader :message

    alias to_s message

    # @private
    def self.build(errno, message)
      SystemErrors.with(self, errno).new.tap do |error|
        error.instance_variable_set(:@message, message)
      end
    end
  end

  # The extension makes its exceptions with these.
  # @private
  module Native
    class << self
      def internal_error(words)
        InternalError.new("a mistake in procwright, please report it: #{words}")
      end

      def function_failed(stage, words) = FunctionFailed.new(stage, words)

      def invalid_value(words) = InvalidValue.new(words)

      def refused_by_core(*parts) = InvalidValue.by_core(*parts)

      def cancelled_before(words) = Cancelled.new(nil, words)

      def spawn_error(errno, object, step, words, stage) = SpawnError.build(errno, object, step, words, stage)

      def system_error(errno, words)
        errno.zero? ? IOError.new(words).extend(Error) : SystemFailure.build(errno, words)
      end

      def no_such_process(pid, words) = NoSuchProcess.new(pid, words)

      def stream_closed(name, was_waiting) = StreamClosed.new(name, was_waiting)

      def stream_forked(name)
        StreamForked.new("#{name} is of the process that was forked: a fork has none of its " \
                         "streams. Use it there, or start the child in the fork")
      end

      def line_too_long(name, length) = IOError.new("a line of #{name} is longer than #{length} bytes")

      def stream_overflow(name, offset) = StreamOverflow.new(name, offset)

      def stream_lost(name, offset, length, _errno, reason) = StreamLost.new(name, offset, length, reason)

      def journal_error(words, errno) = JournalError.new(words, errno)

      def stalled(command, streams, after, writing) = Stalled.new(command, streams, after, writing)
    end
  end
end
