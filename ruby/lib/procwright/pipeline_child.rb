# frozen_string_literal: true

module Procwright
  # Starts programs of which each writes into the next one, and returns at once, with their streams.
  #
  # All are started, or none. A thread looks after them until all are over, whether or not anybody
  # waits: one for each pipeline. A block is given the child, and ends it as that of {spawn} does.
  #
  #   Procwright.spawn_pipeline(["sed", "-u", "s/a/b/"], ["cat"], stdin: :pipe) do |child|
  #     child.stdin.puts "pear"
  #     child.stdout.gets # => "pebr\n"
  #   end
  #
  # @overload spawn_pipeline(*stages, **options)
  #   The stages and options of {pipeline}, and:
  #   @param stdin [Symbol, ...] also `:pipe`, for {PipelineChild#stdin}. What needs a thread to be
  #     read, as a StringIO, is not taken: write it
  #   @param stdout [Symbol, ...] `:pipe` (the default) for {PipelineChild#stdout}. Each other of a
  #     {Fan} has to say its own, such as `{ argv: ["gzip"], stdout: "dump.gz" }`
  #   @param stderr [Symbol, ...] `:pipe` (the default) for {PipelineChild#stderr}, a stream for each
  #     stage; `:merged` sends both into the pipe
  #   @param overflow [Symbol, Overflow] the treatment of output that is not read as fast as it
  #     comes; not `:block`
  #   @param stall_after [Numeric, nil] as of {spawn}; so too `on_event`
  #   @param timeout [Numeric, nil] as of {spawn}, for all stages together; so too `idle_timeout`,
  #     `limit`, `cancel`, `on_timeout`
  # @yieldparam child [PipelineChild]
  # @return [PipelineChild, Object] the child; with a block what that gives
  # @raise [InvalidValue]
  # @raise [SpawnError] an Errno::ENOENT, Errno::EACCES, ..., whose `stage` says which one
  def self.spawn_pipeline(*stages, **given, &block)
    options = Options.with_defaults("spawn_pipeline", given, Options::SPAWN_PIPELINE)
    block ? PipelineChild.lend(stages, options, &block) : PipelineChild.new(stages, options)
  end

  # Programs joined by pipes that were started by {Procwright.spawn_pipeline}.
  #
  # It is kept by whoever has it or one of its streams. Once nobody has, and at the end of Ruby, a
  # pipeline that goes on is told of by a warning, with the line that has spawned it, and stopped as
  # its `stop` says: as a {Child} is.
  class PipelineChild
    include Waitable
    include OtherSide
    include NamesOfOthers::OfPipelineChild

    # @return [Array<Array<String>>] the program and the arguments of each stage
    attr_reader :argvs
    # @return [Array<Integer>] the numbers of the stages' processes, each its stage's own until all
    #   are over
    attr_reader :pids
    # @return [Stream, nil] stdin of the first stage, and stdout of the last; nil unless it is a pipe
    attr_reader :stdin, :stdout
    # @return [Array<Stream, nil>] stderr of each stage, nil where that is no pipe
    attr_reader :stderr

    # @private
    def initialize(stages, options)
      @encodings = Options.encodings(options)
      @event_hook = options[:on_event].nil? ? nil : Options.event_hook(options[:on_event])
      @events = []
      @on_timeout = options[:on_timeout]
      pipeline = Pipeline.new(stages, options, @encodings)
      @argvs = pipeline.argvs.freeze
      @command = pipeline.command
      setup = {
        overflow: overflow(options[:overflow]),
        stall_after: Arguments.seconds("stall_after", options[:stall_after]),
        listens: !@event_hook.nil?
      }
      @kept = Keeper.watch_pipeline(self, @command)
      @functions = pipeline.spawn(@kept, setup)
      adopt
      @pids = @native.pids.freeze
      make_streams
    end

    # True while a stage is not over. Does not wait.
    def alive? = poll.nil?

    # What came of it, without output but what {#communicate} has read; nil while it goes on. Does
    # not wait.
    # @return [PipelineResult, nil]
    def poll
      deliver_events
      return @past if @past

      is_talking = !@communication.nil?
      read = read_so_far
      past = report(read || nothing_read)
      # Else that of a later call has what another thread is reading just now.
      @past = past if read || !is_talking
      past
    end

    # @return [Integer, nil] as {PipelineResult#exitstatus}; nil while it goes on
    def exitstatus = poll&.exitstatus

    # Waits until all stages are over: what they wrote can be read afterwards. Never polls.
    # @param timeout [Numeric, nil] seconds
    # @return [PipelineResult] without output; that a stage has failed raises nothing
    # @raise [WaitTimeout] a Timeout::Error, which says which stages have not ended; it may be
    #   called again
    # @raise [Stalled] if a stage cannot go on because its output is full and unread; it may be
    #   called again
    # @raise [TimeoutExpired, IdleTimeout, OutputLimitExceeded, Cancelled] if all were stopped for a
    #   limit or by a {Cancel}, each time, with the {PipelineResult}
    def wait(timeout: nil)
      seconds = Arguments.seconds("timeout", timeout)
      raise timeout_error(seconds) unless Fibers.on_thread { @native.wait(seconds) }

      raise_if_stopped(poll)
    end

    # Writes `input`, closes stdin, reads all outputs to the end, and waits.
    # @param input [String, nil]
    # @param timeout [Numeric, nil] seconds
    # @return [Array(String, String)] stdout of the last stage, and stderr of all, one stage after the
    #   other; nil for what is no pipe
    # @raise [WaitTimeout, Stalled] it may be called again, without `input`, and nothing is lost
    # @raise [TimeoutExpired, IdleTimeout, OutputLimitExceeded, Cancelled] as {#wait}, with what was
    #   read
    def communicate(input = nil, timeout: nil)
      ended = exchanged(input, timeout)
      [ended.stdout, ended.stderr]
    end

    # Closes stdin as {#communicate} does, reads what is left of all outputs, waits, and gives a
    # {PipelineResult} as `pipeline` does. Its outputs are what was unread before.
    # @param timeout [Numeric, nil] seconds
    # @return [PipelineResult]
    # @raise [WaitTimeout, Stalled] as {#communicate}
    def result(timeout: nil) = exchanged(nil, timeout)

    # Ends all stages with all of their processes, as `stop` of the spawn says, the last stage first,
    # and reaps them. Nothing is done to one that is over. An interrupt ends the grace, and comes
    # through afterwards.
    # @return [Array<Survivor>] the processes that could not be ended
    def stop
      @stopped = true
      Fibers.on_thread { @native.stop(false) }
      past = poll
      past ? past.stages.flat_map(&:survivors) : []
    end

    # Has all stages killed, with all of their processes, and returns at once. Nothing if it is over.
    # It takes no signal.
    # @return [nil]
    # @raise [InvalidValue] for one
    def kill(signal = (is_alone = true))
      Arguments.no_signal(signal, 'kill ends all stages by SIGKILL: use stop, and spawn_pipeline(..., stop: "INT")') unless is_alone
      @stopped = true
      @native.begin_stop(true)
      nil
    end

    # @return [Integer] a descriptor that is readable once it is over; this object's
    def readiness_fd = @native.readiness_fd

    # @private
    def awaited = readiness_fd

    def inspect
      "#<Procwright::PipelineChild #{command}, #{@past ? @past.outcome : "pids #{@pids.join(', ')}"}>"
    end

    # @private
    def initialize_copy(_other)
      raise TypeError, "a pipeline cannot be copied: use this one, from any thread"
    end

    # Starts one, gives it to a block, and ends it with that: as {Child.lend}.
    # @private
    def self.lend(stages, options)
      child = allocate
      child.__send__(:initialize, stages, options)
      value = yield child
      child.finish
      ended = true
      value
    rescue StandardError => e
      child.abandon
      ended = true
      child.raise_reason(e)
      raise
    ensure
      child.abandon unless ended
    end

    # Ends its input, and waits for it. A fork has no part in it.
    # @private
    def finish
      return unless @native.ours?

      @stdin&.close
      wait
    end

    # Stops it, if it was started.
    # @private
    def abandon
      adopt if @native.nil?
      stop if @native&.ours?
    end

    # Takes the native pipeline from where its start has put it.
    # @private
    private def adopt = @native = @kept&.instance_variable_get(:@native)

    # @private
    attr_reader :command

    # As {Child#explain_silence}.
    # @private
    def explain_silence(seconds) = seconds ? Fibers.on_thread { @native.explain_silence(seconds) } : ""

    # As {Child#deliver_events}.
    # @private
    def deliver_events
      return unless @event_hook

      @events.concat(@native.events)
      while (event = @events.shift)
        @event_hook.call(event)
      end
    end

    private

    def overflow(given)
      overflow = Overflow.of(given)
      return overflow.parts unless overflow.policy == :block

      Arguments.refuse("overflow", given,
                       "the outputs of a pipeline are read ahead: use :spill, :drop_oldest, :drop_newest or :fail")
    end

    def make_streams
      @stdin = stream(@native.stdin)
      @stdout = stream(@native.stdout)
      @stderr = @argvs.each_index.map { |place| stream(@native.stderr(place)) }.freeze
    end

    # A stream, which keeps the pipeline from now on.
    def stream(native)
      return if native.nil?

      made = Stream.new(native, @encodings, before_call: @event_hook && method(:deliver_events))
      made.instance_variable_set(:@child, self)
      made.instance_variable_set(:@patience, Patience.new)
      made
    end

    def outputs = [@stdout, *@stderr]

    # Writes the input, reads all outputs and waits; goes on where an earlier call stopped.
    def exchanged(input, timeout)
      raise InvalidValue, "input is given, but stdin is no pipe: spawn with stdin: :pipe" if input && @stdin.nil?
      raise InvalidValue, "input was given before: call it without to go on" if input && (@communication || @result)

      seconds = Arguments.seconds("timeout", timeout)
      @result ||= all_read(input, seconds)
      deliver_events
      raise_if_stopped(@result)
    end

    def all_read(input, seconds)
      deadline = Deadline.new(seconds)
      @communication ||= begin
        bytes = input ? @stdin.encodings.encode(Arguments.string("input", input, "pass a String")) : ""
        Native::Communication.new(@native, bytes, @stdin&.native_if_open, outputs.map { |one| one&.native_if_open })
      end
      done = Fibers.on_thread { @communication.go_on(seconds) && @native.wait(deadline.remaining) }
      raise timeout_error(seconds) unless done

      read = @communication.take
      @communication = nil
      outputs.each { |one| one&.close }
      @past = report(read)
    end

    def nothing_read = [nil] * (1 + @argvs.size)

    # What came of it, having read so much of stdout of the last stage and of stderr of each. Raises
    # what it has failed for, once.
    def report(read)
      result = untold_report(read)
      failure = @failure
      @failure = nil
      raise failure, cause: failure.cause if failure

      result
    end

    # As {#report}, but that what it has failed for is kept for who is to raise it.
    def untold_report(read)
      stdout, *stderr = read
      begin
        raw = @native.report(stdout, stderr)
      rescue StandardError => e
        # The extension tells of a failure once, in the place of the result.
        @failure = e.is_a?(FunctionFailed) ? FunctionCaller.error_of(@functions || [], e) : e
        raw = @native.report(stdout, stderr)
      end
      return if raw.nil?

      finish_functions
      PipelineResult.new(raw, @encodings)
    end

    # Ends the threads of the functions, of which one may not have come out of a stop.
    def finish_functions = @functions&.each(&:finish)

    def timeout_error(seconds)
      WaitTimeout.new(command, seconds, [self], @native.explain_timeout(seconds))
    end

    def await_end(seconds) = Fibers.on_thread { @native.wait(seconds) }

    def being_stopped? = @native.stopping?

    # What came of it, nil while it goes on.
    def past_result = @past || untold_report(read_so_far || nothing_read)

    # What {#wait} raises of what all were stopped for; nil while they go on.
    def stop_reason
      past = past_result
      past && (@failure || error_of_stop(past))
    end

    def raise_if_stopped(result)
      reason = error_of_stop(result)
      raise reason if reason

      result
    end

    # Nil if the caller has stopped it, who needs no exception for that.
    def error_of_stop(result) = (Run.error_for(result, @on_timeout) unless @stopped && result.reason == :cancelled)
  end
end
