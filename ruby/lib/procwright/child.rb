# frozen_string_literal: true

module Procwright
  # Starts a program and returns at once, with the child and its streams.
  #
  # The program reads nothing, and both of its outputs are pipes, unless said otherwise. It
  # never waits for its reader before memory and disk are used up: see {Overflow}.
  #
  # A block is given the child. When the block has run to its end, stdin is closed and the
  # child waited for; when it is left in any other way (an exception, `break`, `throw`,
  # Thread#kill) the child is stopped.
  #
  #   Procwright.spawn("bc", stdin: :pipe) do |bc|
  #     bc.stdin.puts "6 * 7"
  #     bc.stdout.gets # => "42\n"
  #   end
  #
  # @overload spawn(env = {}, *argv, **options)
  #   The options of {run}, but the callbacks for lines: what comes is read by you.
  #   @param tee [Boolean, String, Pathname, IO, Integer, #write, Hash] as with {run}; the streams have
  #     it all the same, and {Child#wait} is for that, too. What `write` raises is told on stderr at
  #     once, ends this copy alone, and is raised by what is called next ({Child#wait},
  #     {Child#communicate}, {Child#result}, the end of the block). So too `keep_full`. Not with
  #     `overflow: :block`
  #   @param timeout [Numeric, nil] seconds until it has ended and its streams have: then it is
  #     stopped as `stop` says, with all of its processes, whether or not anybody waits. What is
  #     called next ({Child#wait}, {Child#communicate}, {Child#result}, the end of the block) raises
  #     {TimeoutExpired}, each time. So too `idle_timeout`, `cancel`, and `limit` with
  #     `beyond: :fail`
  #   @param on_timeout [Symbol] `:return`: these raise nothing for `timeout` and `idle_timeout`, and the
  #     `reason` of {Child#result} says so; `limit` and `cancel` raise all the same
  #   @param until [Symbol] `:exit`: the streams end with the program, whoever else holds them
  #   @param stdin [Symbol, ...] also `:pipe`, for {Child#stdin}
  #   @param stdout [Symbol, ...] `:pipe` (the default) for {Child#stdout}; so too `stderr`
  #   @param merged [Boolean] both outputs as one, {Child#merged}, in the order in which they
  #     came. Not with `:block` and `:drop_oldest`
  #   @param overflow [Symbol, Overflow] the treatment of output that is not read as fast as it
  #     comes
  #   @param channel [Symbol, nil] `:from_child`: the program sends to {Child#receiver};
  #     `:to_child`: it receives from {Child#sender}
  #   @param stall_after [Numeric, nil] seconds without a read of output that is full, after
  #     which a wait or a write raises {Stalled}; nil for never
  #   @param detach [Boolean] true for a program that is to live on: it leads a session of its own,
  #     and neither our end, nor that nobody has the child any more, nor leaving the block ends it.
  #     What would end with us is refused: `:pipe`, the default of both outputs, and as stdin; an
  #     `input`, `pty`, `die_with_parent`, `channel`, `timeout`, `idle_timeout`, `limit`, `cancel`,
  #     `until`, `keep_full`, `tee`
  #   @param on_event [#call] gets an {Event} when output goes to disk, cannot go there, is
  #     dropped or is too much: on the thread of the next call on the child or its streams
  #   @param input_wanted [Boolean] as with {run}. Then `on_event`, which has to be there, is called
  #     on a thread of its own as events come, until the program has ended: who holds the child may be
  #     waiting for what it says. What it raises is told on stderr at once, and raised by what is
  #     called next, as that of `tee` is. Not with `detach`
  # @yieldparam child [Child]
  # @return [Child, Object] the child; with a block what that gives
  # @raise [InvalidValue]
  # @raise [SpawnError]
  def self.spawn(*argv, **given, &block)
    argv, options = Options.parse("spawn", argv, given, Options::SPAWN)
    block ? Child.lend(argv, options, &block) : Child.new(argv, options)
  end

  # A program that was started by {Procwright.spawn}.
  #
  # It is kept by whoever has it, one of its streams, its {#receiver} or its {#sender}.
  # Once nobody has, which Ruby finds out when it collects garbage, and at the end of Ruby, a program
  # that still runs is told of by a warning, with the line that has spawned it, and stopped as its
  # `stop` says: in the background, and while its outputs are still taken. One that has been
  # killed, or has let go of all outputs that come to us, is about to end, and left to itself.
  # Spawned with `detach: true` it goes on.
  #
  # A closure that is called while the program runs (`on_event` with `input_wanted`, the `write` of a
  # `tee`), and has the child among its variables, keeps it until the program has ended.
  class Child
    include Process::Owner
    include Waitable
    include OtherSide
    include NamesOfOthers::OfChild

    # @return [Array<String>] the program and its arguments
    attr_reader :argv
    # @return [Integer] the child's number, which no other process gets until it has been waited for
    attr_reader :pid
    # @return [Stream, nil] nil unless it is a pipe
    attr_reader :stdin, :stdout, :stderr
    # @return [Merged, nil] nil unless it was spawned with `merged: true`
    attr_reader :merged

    # @private
    def initialize(argv, options)
      @argv = argv.freeze
      encodings = Options.encodings(options)
      overflow = Overflow.of(options[:overflow])
      @event_hook = options[:on_event].nil? ? nil : Options.event_hook(options[:on_event])
      @events = []
      setup = setup(options, overflow, encodings)
      @detached = setup[:detach]
      @kept = @detached ? self : Keeper.watch(self, @argv, setup[:stop])
      @failures = Thread::Queue.new
      telling(setup, options) do
        copying(setup, options, encodings) do
          Options.telling_refusals(@argv, options) { Native.spawn(@kept, setup) }
        end
      end
      adopt
      end_event_caller if @event_caller
      @pid = @native.pid
      @on_timeout = options[:on_timeout]
      make_streams(encodings, bare: overflow.policy == :block, terminal: options[:pty])
    end

    # The way it ended, nil while it is alive. Does not wait.
    # @return [Status, nil]
    def status
      deliver_events
      parts = @native.poll
      parts && Status.new(@pid, *parts)
    end
    alias poll status

    def alive? = status.nil?

    # @return [Integer, nil] the exit code; nil while it is alive, after a signal, and where
    #   it is unknown
    def exitstatus = status&.exitstatus

    # Waits until it has ended, and for nothing else: its output can be read afterwards. Never
    # polls.
    # @param timeout [Numeric, nil] seconds
    # @return [Status]
    # @raise [WaitTimeout] a Timeout::Error; it may be called again
    # @raise [Stalled] if it cannot go on because its output is full and unread; it may be called
    #   again
    # @raise [TimeoutExpired, IdleTimeout, OutputLimitExceeded, Cancelled] if it was stopped for a
    #   limit that it was spawned with, each time
    def wait(timeout: nil)
      seconds = Arguments.seconds("timeout", timeout)
      parts = wait_status(seconds)
      deliver_events
      raise_failure
      raise timeout_error(seconds) if parts.nil?

      raise_if_stopped
      Status.new(@pid, *parts)
    end

    # Writes `input`, closes stdin, reads both outputs to the end, and waits. All at once, so
    # that neither side waits for the other.
    # @param input [String, nil]
    # @param timeout [Numeric, nil] seconds
    # @return [Array(String, String)] stdout and stderr, nil where that is no pipe
    # @raise [WaitTimeout] it may be called again, without `input`, and nothing is lost
    # @raise [Stalled]
    # @raise [TimeoutExpired, IdleTimeout, OutputLimitExceeded, Cancelled] as {#wait}, with a result
    #   that has what was read
    def communicate(input = nil, timeout: nil)
      exchange(input, timeout)
      if @native.stopped_for
        ended = read_result
        Run.raise_for(ended, @on_timeout)
        return [ended.stdout, ended.stderr]
      end
      data = take_output
      [@stdout, @stderr].zip(data).map { |stream, bytes| bytes && stream.encodings.decode(bytes) }
    end

    # Closes stdin as {#communicate} does, reads what is left of both outputs, waits, and gives a
    # {Result} as `run` does. Its `stdout` and `stderr` are what was unread before; its figures
    # count everything.
    # @param timeout [Numeric, nil] seconds
    # @return [Result]
    # @raise [WaitTimeout, Stalled] as {#communicate}
    def result(timeout: nil)
      exchange(nil, timeout) if @result.nil?
      Run.raise_for(read_result, @on_timeout) if @native.stopped_for
      read_result
    end

    # Reads lines until one has a match: "start the server, wait until it listens". The
    # pattern is searched in each line without its end, and in an incomplete line when nothing
    # more comes for the moment: a prompt has no newline. All up to the end of the match is
    # read, and the line's end if nothing else is behind it; what is behind the match stays, on
    # its line too. A match of nothing takes the line. `/ready\n/` waits for the end of the line.
    #
    # A search that finds nothing has read all whole lines that came, of which its error has the
    # last; a line without its end stays for the next. So who waits for one of several things says
    # all in one pattern. Who goes on with `gets` names the end of the line, `/ready\n/`: a program
    # may write that by itself, and without it the next line is then `"\n"`, now and then.
    #
    # @param pattern [Regexp, String]
    # @param timeout [Numeric, nil] seconds
    # @param stream [Symbol, nil] `:stdout`, `:stderr`, nil for both
    # @return [MatchData]
    # @raise [MatchTimeout] a {WaitTimeout}
    # @raise [EndedBeforeMatch] if the streams end, or the child fails
    # @raise [TimeoutExpired, IdleTimeout, OutputLimitExceeded, Cancelled] as {#wait}, if it was
    #   stopped for a limit of its own
    def wait_for(pattern, timeout: nil, stream: nil)
      OutputSearch.new(self, pattern, stream).run(timeout)
    end

    # Sends a signal. Does nothing if it has ended.
    # @param signal [String, Symbol, Integer]
    def signal(signal)
      # A name that does not exist is refused for an ended child, too.
      name = Native.signal_name(Arguments.signal("signal", signal))
      if status.nil?
        @native.signal(name)
        # Whoever forgets it now has ended it.
        Keeper.leave(self) if name == "KILL"
      end
      nil
    rescue NoSuchProcess
      # The child has ended since `status`.
      nil
    end

    # Sends SIGTERM.
    def terminate = signal("TERM")

    # Sends SIGKILL. It takes no other signal: {#signal} does.
    # @raise [InvalidValue] for one
    def kill(signal = (is_alone = true))
      Arguments.no_signal(signal) unless is_alone
      signal("KILL")
    end

    # Ends it as `stop` or its own says, with its descendants by default, and reaps it. If it has
    # ended before, whether or not anybody has waited for it or asked how, what it has left
    # behind is ended, where a pipe that it holds tells of it, or the session (`new_session: true`)
    # or group (`process_group: 0`) that the program had of its own; the server of
    # `server >log 2>&1 &` goes on without these. An interrupt ends the grace, and comes through
    # afterwards.
    # @return [Array<Survivor>] the processes that could not be ended
    def stop(stop = nil)
      parts = stop.nil? ? nil : Stop.of(stop).parts
      survivors = Fibers.on_thread { @native.stop(parts) }
      survivors.map { |one| Survivor.new(*one) }
    end

    # What it waits for: input, room for its output, a child, a lock, time, somebody else, or
    # nothing that is known. Looks once at all processes of the machine, which takes some
    # milliseconds, and more where there are thousands.
    # @return [Waiting]
    # @raise [SystemCallError] where there is no /proc
    def waiting_for = Waiting.new(*Fibers.on_thread { @native.waiting_for })

    # Why it does not end: who of its tree waits for whom, whether that is a deadlock, and what to
    # do. What `procwright doctor` says of it. Looks twice at all processes of the machine, 200 ms
    # apart.
    # @return [Diagnosis]
    # @raise [NoSuchProcess] if it has ended
    # @raise [SystemCallError] where there is no /proc
    def explain = Diagnosis.new(*Fibers.on_thread { @native.explain })

    # Sets the size of its terminal, if it was spawned with `pty`.
    def resize(rows, columns)
      hint = "pass a number of rows and one of columns, from 1 to 65535 each"
      rows = Arguments.number("rows", rows, 1..65_535, hint)
      @native.resize(rows, Arguments.number("columns", columns, 1..65_535, hint))
      nil
    end

    # The receiver of what it sends, if it was spawned with `channel: :from_child`: its program
    # calls {Queue::Sender.of_parent}. Every call gives the same receiver. Once the child has
    # ended, and what it had sent was received, that is closed, and says how the child has ended. Of
    # one that was stopped for a limit that it was spawned with, {Queue::Receiver#recv} and its like
    # raise what {#wait} does; `pop` and `each` come to their end.
    # @return [Queue::Receiver]
    # @raise [Queue::NoChannel]
    def receiver = @receiver ||= kept(Queue::Receiver.of(@native.receiver))

    # The sender to it, if it was spawned with `channel: :to_child`: waits until its program has
    # called {Queue::Receiver.of_parent}. Every call gives the same sender. Leaving the block of
    # `spawn` closes it, so that the program comes to the end of what it receives.
    # @param timeout [Numeric, nil] seconds
    # @return [Queue::Sender]
    # @raise [Queue::NoChannel] if there is none, or it ends before: with how it has ended
    # @raise [TimeoutExpired, IdleTimeout, OutputLimitExceeded, Cancelled] as {#wait}, and so do the
    #   calls of the sender
    # @raise [Queue::TimedOut] then it can be called again
    def sender(timeout: nil)
      seconds = Arguments.seconds("timeout", timeout)
      deadline = Deadline.new(seconds)
      @sender ||= begin
        native = Fibers.on_thread { @native.sender(seconds) } or raise Queue::TimedOut.new("receiver of the child", seconds)
        kept(Queue::Sender.of(native, :block, nil))
      end
    rescue Queue::NoChannel => e
      other_side_gone(e, Patience.new, deadline.remaining)
    end

    # A monitor that knows for one load from memory whether it is alive. The child watches this
    # process with {LivenessMonitor.of_parent}, if it was spawned with `liveness: true`.
    # @return [LivenessMonitor]
    def monitor = LivenessMonitor.new(self)

    # The process, for all that is not the child's alone. Asked for while it lives, it keeps a
    # descriptor for as long as this object is there.
    # @return [Process]
    def process = @process ||= Process.of(@native.process)

    # @return [Integer] a descriptor that is readable once it has ended; this object's
    def readiness_fd = process.native.readiness_fd

    # @private
    def awaited = @native.awaited

    def inspect
      status = self.status
      "#<Procwright::Child #{command}, #{status || "pid #{@pid}, alive"}>"
    end

    # @private
    def initialize_copy(_other)
      raise TypeError, "a child cannot be copied: use this one, from any thread"
    end

    # Starts a child, gives it to a block, and ends it with that. The object exists before the
    # program does, and knows what is to have the native child: an interrupt right after the
    # start finds a child to stop.
    # @private
    def self.lend(argv, options)
      child = allocate
      child.__send__(:initialize, argv, options)
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

    # Ends its input, and waits for it. A fork has no part in it, nor in its end, which may wait
    # for the fork's.
    # @private
    def finish
      return if !@native.ours? || @detached

      close_inputs
      wait
    ensure
      @event_caller&.close
    end

    # Closes what it reads: stdin and its channel.
    # @private
    def close_inputs
      @stdin&.close
      @sender&.close
      @native.close_sender
    end

    # Stops it, if it was started.
    # @private
    def abandon
      adopt if @native.nil?
      stop if @native && !@detached
    ensure
      @event_caller&.close
    end

    # Takes the native child from where its start has put it.
    # @private
    private def adopt = @native = @kept&.instance_variable_get(:@native)

    # @private
    def command = Shellwords.join(@argv)

    # The lines of an error that say why it has not gone on for so many seconds, or what its
    # processes do; empty if that is no time.
    # @private
    def explain_silence(seconds) = seconds ? Fibers.on_thread { @native.explain_silence(seconds) } : ""

    # Calls `on_event` for what has happened to its streams. If it raises, what it was not
    # called with is for the next call.
    # @private
    def deliver_events
      return unless @event_hook

      @events.concat(@native.events)
      while (event = @events.shift)
        @event_hook.call(event)
      end
    end

    private

    # Has the thread of the hook end with the program. It duplicates the number, and so needs none
    # that is kept.
    def end_event_caller
      handle = @native.handle
      number = handle.readiness_fd
      @event_caller.close_with(number) if number
    end

    # The parts of its status; nil if the timeout came first.
    def wait_status(seconds)
      return @native.wait(seconds) unless Fibers.scheduled?

      # The descriptor stays for as long as it is looked at.
      handle = @native.handle
      ended = handle.readiness_fd
      return @native.wait(seconds) if ended.nil?

      # A wait is for its copies, too, and these tell of themselves in no descriptor.
      return Fibers.on_thread { @native.wait(seconds) } if @is_copied

      # Most children end within `stall_after`, and need no thread. That a child cannot go on
      # because its output is unread ({Stalled}) is found out only by the core's wait.
      deadline = Deadline.new(seconds)
      within = [seconds, @stall_after].compact.min
      has_ended = Fibers.readable?(ended, within)
      if has_ended || within == seconds
        parts = @native.wait(0)
        # One that is stopped for a limit is waited for until all of its processes are.
        return parts if parts || !has_ended
      end

      Fibers.on_thread { @native.wait(deadline.remaining) }
    end

    # The options, for the extension.
    def setup(options, overflow, encodings)
      stdin = Options.stdin(options, encodings)
      if options[:merged] && !encodings.newline?
        raise InvalidValue, "merged: lines are cut at the byte of a newline, which #{encodings.source} has not"
      end

      Options.setup(@argv, options).merge!(
        stdin: stdin,
        overflow: overflow.parts,
        channel: Options.channel(options[:channel]),
        detach: options[:detach] ? true : false,
        stall_after: @stall_after = Arguments.seconds("stall_after", options[:stall_after])
      )
    end

    # Starts it by the block, with a thread for `on_event` if that is told of waits for input.
    def telling(setup, options)
      return yield unless options[:input_wanted]

      if @event_hook.nil?
        Arguments.refuse("input_wanted", options[:input_wanted], "nobody would be told: pass on_event:, or ask the child, by waiting_for")
      end
      @event_caller = Child.event_caller(@event_hook, @failures, command)
      setup[:events] = @event_caller.handover
      yield
      started = true
    ensure
      @event_caller&.finish unless started
    end

    # Without the child, as {Child.start_taps}.
    def self.event_caller(hook, failures, command)
      EventCaller.new(hook) do |error|
        failures << error
        warn("on_event of #{command} has raised #{error.class}: #{error.message}")
      end
    end

    # Starts it by the block, with the copies of its output that `tee` and `keep_full` ask for.
    def copying(setup, options, encodings)
      refuse_copies(options, setup) if options[:tee]
      tee = Tee.plan(options)
      taps = OutputTap.writers_of(tee, encodings)
      @is_copied = setup[:keep_full] || options[:tee] ? true : false
      setup.merge!(tee: tee.shown, tee_files: tee.files, taps: tee.taps + taps.map(&:descriptors))
      Child.start_taps(taps, @failures, command)
      yield
      taps.each(&:hand_over)
      started = true
    ensure
      taps&.each(&:finish) unless started
    end

    # Without the child, which is kept by nobody but its user.
    def self.start_taps(taps, failures, command)
      taps.each do |tap|
        tap.start do |error|
          failures << error
          warn("tee of #{command} has raised #{error.class}: #{error.message}; it gets no more")
        end
      end
    end

    def refuse_copies(options, setup)
      if setup[:detach]
        Arguments.refuse("tee", options[:tee], "it is written by us, and with detach: true the program lives on: pass a file as stdout:")
      end
      return unless Overflow.of(options[:overflow]).policy == :block

      hint = "it needs output to be read ahead, and overflow: :block keeps none: use :spill, :drop_oldest, " \
             ":drop_newest or :fail"
      Arguments.refuse("tee", options[:tee], hint)
    end

    # Raises what a copy has raised, once.
    def raise_failure
      raise @failures.pop(true) unless @failures.empty?
    end

    def make_streams(encodings, bare:, terminal:)
      before_call = @event_hook && method(:deliver_events)
      stdin = @native.stdin
      stdout = @native.output(1)
      stderr = @native.output(2)
      @stdin = stdin && kept(Stream.new(stdin, encodings, is_pipe: !terminal, before_call: before_call))
      @stdout = stdout && kept(Stream.new(stdout, encodings, is_pipe: bare, before_call: before_call))
      @stderr = stderr && kept(Stream.new(stderr, encodings, is_pipe: bare, before_call: before_call))
      merged = @native.merged
      @merged = merged && kept(Merged.new(merged, encodings, before_call: before_call))
    end

    # The part, which keeps its child from now on.
    def kept(part)
      part.instance_variable_set(:@child, self)
      part.instance_variable_set(:@patience, Patience.new)
      part
    end

    # Writes the input, reads both outputs and waits; goes on where an earlier call stopped.
    def exchange(input, timeout)
      raise InvalidValue, "input is given, but stdin is no pipe: spawn with stdin: :pipe" if input && @stdin.nil?
      raise InvalidValue, "both outputs are merged: read child.merged to its end" if @merged
      raise InvalidValue, "input was given before: call it without to go on" if input && @communication

      seconds = Arguments.seconds("timeout", timeout)
      deadline = Deadline.new(seconds)
      @communication ||= begin
        bytes = input ? @stdin.encodings.encode(Arguments.string("input", input, "pass a String")) : ""
        stdin, *outputs = [@stdin, @stdout, @stderr].map { |stream| stream&.native_if_open }
        Native::Communication.new(@native, bytes, stdin, outputs)
      end
      done = Fibers.on_thread { @communication.go_on(seconds) && @native.wait(deadline.remaining) }
      raise timeout_error(seconds, @communication.peek) unless done

      deliver_events
      raise_failure
    end

    # The least seconds of a wait after whose end all processes are looked through: who asks again
    # and again does not pay for that each time.
    WORTH_A_LOOK = 0.1
    private_constant :WORTH_A_LOOK

    # The error of a wait that has come to its time, having read so much of both streams.
    def timeout_error(seconds, read = [nil, nil])
      text = @native.explain_timeout(seconds, *read) if seconds >= WORTH_A_LOOK
      WaitTimeout.new(command, seconds, [self], text)
    end

    # Raises what a limit is to raise that it was stopped for.
    def raise_if_stopped
      reason = stop_reason
      raise reason if reason
    end

    # What {#wait} raises if it was stopped for a limit; nil while the stop goes on.
    def stop_reason
      Run.error_for(@result || result_of([nil, nil]), @on_timeout) if @native.stopped_for && past_result
    end

    def await_end(seconds) = wait_status(seconds)

    def being_stopped? = @native.stopping?

    # What came of it, nil while it is alive or being stopped.
    def past_result
      return @result if @result || being_stopped? || @native.poll.nil?

      result_of(read_so_far || [nil, nil])
    end

    # The result, once all is read.
    def read_result = @result ||= result_of(take_output)

    def result_of(read)
      Result.new(@native.report(*read), (@stdout || @stderr)&.encodings || Encodings::BINARY)
    end

    def take_output
      data = @communication.take
      @communication = nil
      [@stdout, @stderr].each { |stream| stream&.close }
      data
    end
  end
end
