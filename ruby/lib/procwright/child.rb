# frozen_string_literal: true

module Procwright
  # Starts a program and returns at once, with the child and its streams.
  #
  # The program reads nothing, and both of its outputs are pipes, unless said otherwise. It
  # never waits for its reader before memory and disk are used up: see {Overflow}.
  #
  # With a block, the child is given to it. When that has run to its end, stdin is closed and
  # the child waited for; when it is left in any other way (an exception, `break`, `throw`,
  # Thread#kill) the child is stopped.
  #
  #   Procwright.spawn("bc", stdin: :pipe) do |bc|
  #     bc.stdin.puts "6 * 7"
  #     bc.stdout.gets # => "42\n"
  #   end
  #
  # @overload spawn(env = {}, *argv, **options)
  #   The options of {run} that are not about its end: so no `timeout`, `idle_timeout`,
  #   `until`, `limit`, `keep_full`, `on_timeout`, `cancel`, `tee`, `on_line`.
  #   @param stdin [Symbol, ...] also `:pipe`, for {Child#stdin}
  #   @param stdout [Symbol, ...] `:pipe` (the default) for {Child#stdout}; so too `stderr`
  #   @param merged [Boolean] both outputs as one, {Child#merged}, in the order in which they
  #     came. Not with `:block` and `:drop_oldest`
  #   @param overflow [Symbol, Overflow] what becomes of output that is not read as fast as
  #     it comes
  #   @param channel [Symbol, nil] `:from_child`: the program sends to {Child#receiver};
  #     `:to_child`: it receives from {Child#sender}
  #   @param stall_after [Numeric, nil] for so many seconds nobody may have begun to read
  #     output that is full, before a wait or a write raises {Stalled}; nil for ever
  #   @param on_event [#call] gets an {Event} when output goes to disk, cannot go there, is
  #     dropped or is too much: on the thread of the next call on the child or its streams
  # @yieldparam child [Child]
  # @return [Child, Object] the child; with a block what that gives
  # @raise [InvalidValue]
  # @raise [SpawnError]
  def self.spawn(*argv, **given, &block)
    argv, options = Options.of("spawn", argv, given, Options::SPAWN)
    block ? Child.lend(argv, options, &block) : Child.new(argv, options)
  end

  # A program that was started: what {Procwright.spawn} gives.
  #
  # Forgetting it neither blocks nor kills, and leaves no zombie: the program goes on, its
  # streams are closed, and it is reaped in the background.
  class Child
    # @return [Array<String>] what was started
    attr_reader :argv
    # @return [Process]
    attr_reader :process
    # @return [Integer] its number, which is its own until it has been waited for
    attr_reader :pid
    # @return [Stream, nil] nil unless it is a pipe
    attr_reader :stdin, :stdout, :stderr
    # @return [Merged, nil] nil unless it was spawned with `merged: true`
    attr_reader :merged

    # @private
    def initialize(argv, options)
      @argv = argv.freeze
      text = Options.text(options)
      overflow = Overflow.of(options[:overflow])
      @hook = options[:on_event] && Options.hook(options[:on_event])
      Native.spawn(self, setup(options, overflow, text))
      @process = Process.of(@native.process)
      @pid = @native.pid
      make_streams(text, bare: overflow.policy == :block, terminal: options[:pty])
    end

    # How it ended, nil while it is alive. Does not wait.
    # @return [Status, nil]
    def status
      tell
      parts = @native.poll
      parts && Status.new(@pid, *parts)
    end
    alias poll status

    def alive? = status.nil?

    # @return [Integer, nil] the exit code; nil while it is alive, after a signal, and where
    #   it is unknown
    def exitstatus = status&.exitstatus

    # Waits until it has ended: for that alone, what it wrote can be read afterwards. Never
    # polls.
    # @param timeout [Numeric, nil] seconds
    # @return [Status]
    # @raise [WaitTimeout] a Timeout::Error; it may be called again
    # @raise [Stalled] if it cannot go on because nobody reads its output; it may be called again
    def wait(timeout: nil)
      seconds = Options.seconds("timeout", timeout)
      parts = ended(seconds)
      tell
      raise WaitTimeout.new(command, seconds, [self]) if parts.nil?

      Status.new(@pid, *parts)
    end

    # Writes `input`, closes stdin, reads both outputs to the end, and waits. All at once, so
    # that nobody waits for the other.
    # @param input [String, nil]
    # @param timeout [Numeric, nil] seconds
    # @return [Array(String, String)] stdout and stderr, nil for what is no pipe
    # @raise [WaitTimeout] it may be called again, without `input`, and nothing is lost
    # @raise [Stalled]
    def communicate(input = nil, timeout: nil)
      talk(input, timeout)
      data = take
      [@stdout, @stderr].zip(data).map { |stream, bytes| bytes && stream.text.mark(bytes) }
    end

    # Reads what is left of both outputs, waits, and gives a {Result} as `run` does. Its
    # `stdout` and `stderr` are what nobody had read before; its figures count all.
    # @param timeout [Numeric, nil] seconds
    # @return [Result]
    # @raise [WaitTimeout, Stalled] as {#communicate}
    def result(timeout: nil)
      @result ||= begin
        talk(nil, timeout)
        Result.new(@native.report(*take), (@stdout || @stderr)&.text || Text::BINARY)
      end
    end

    # Reads lines until one has a match: "start the server, wait until it listens". It is
    # searched in each line without its end, and in one that is not complete when nothing
    # more comes for the moment: a prompt has no newline. What was looked at is consumed.
    #
    # @param pattern [Regexp, String]
    # @param timeout [Numeric, nil] seconds
    # @param stream [Symbol, nil] `:stdout`, `:stderr`, nil for both
    # @return [MatchData]
    # @raise [MatchTimeout] a {WaitTimeout}
    # @raise [EndedBeforeMatch] if the streams end, or the child fails
    def wait_for(pattern, timeout: nil, stream: nil)
      Search.new(self, pattern, stream).run(timeout)
    end

    # Sends it a signal. Nothing if it has ended.
    # @param signal [String, Symbol, Integer]
    def signal(signal)
      # Wrong is wrong, whether it has ended or not.
      name = Native.signal_name(Options.signal(signal))
      @process.signal(name) if status.nil?
      nil
    rescue NoSuchProcess
      # It ended at this very moment.
      nil
    end

    # Asks it to end: SIGTERM.
    def terminate = signal("TERM")

    # Ends it: SIGKILL.
    def kill = signal("KILL")

    # Ends it as `stop` or its own says, with its descendants by default, and reaps it. What
    # interrupts that ends the grace, and comes through afterwards.
    # @return [Array<Survivor>] who could not be ended
    def stop(stop = nil)
      parts = stop && Options.stop(stop).parts
      survivors = Fibers.aside { @native.stop(parts) }
      survivors.map { |one| Survivor.new(*one) }
    end

    # Says how large its terminal is, if it was spawned with `pty`.
    def resize(rows, columns)
      @native.resize(*Options.size([rows, columns]))
      nil
    end

    # What it sends to, if it was spawned with `channel: :from_child`: its program calls
    # {Queue::Sender.of_parent}. Always the same. Once it has ended, and what it had sent is
    # received, that is closed.
    # @return [Queue::Receiver]
    # @raise [Queue::NoChannel]
    def receiver = @receiver ||= Queue::Receiver.of(@native.receiver)

    # Sends to it, if it was spawned with `channel: :to_child`: waits until its program has
    # called {Queue::Receiver.of_parent}. Always the same. Leaving the block of `spawn` closes
    # it, so that the program comes to the end of what it receives.
    # @param timeout [Numeric, nil] seconds
    # @return [Queue::Sender]
    # @raise [Queue::NoChannel] if there is none, or it ends before
    # @raise [Queue::TimedOut] then it can be called again
    def sender(timeout: nil)
      @sender ||= begin
        seconds = Options.seconds("timeout", timeout)
        native = Fibers.aside { @native.sender(seconds) } or raise Queue::TimedOut.new("receiver of the child", seconds)
        Queue::Sender.of(native, :block, nil)
      end
    end

    # Whether it is alive, for one load from memory. It in turn asks for us with
    # {LivenessMonitor.of_parent}, if it was spawned with `liveness: true`.
    # @return [LivenessMonitor]
    def monitor = LivenessMonitor.new(self)

    # @return [Integer] a descriptor that is readable once it has ended; this object's
    def readiness_fd = @process.pidfd

    def inspect
      status = self.status
      "#<Procwright::Child #{command}, #{status || "pid #{@pid}, alive"}>"
    end

    # @private
    def initialize_copy(_other)
      raise TypeError, "a child cannot be copied: use this one, from any thread"
    end

    # Starts one, gives it to a block, and ends it with that. What interrupts us the moment
    # after the start finds it in our hands already.
    # @private
    def self.lend(argv, options)
      child = allocate
      child.__send__(:initialize, argv, options)
      value = yield child
      child.close_inputs
      child.wait
      ended = true
      value
    ensure
      child.abandon unless ended
    end

    # Nothing more comes for it to read.
    # @private
    def close_inputs
      @stdin&.close
      @sender&.close
      @native.close_sender
    end

    # Stops it, if it was started.
    # @private
    def abandon = @native && stop

    # @private
    def command = Shellwords.join(@argv)

    # Hands out what has happened to its streams.
    # @private
    def tell
      @native.events.each { |event| @hook.call(event) } if @hook
    end

    private

    # Its status; nil if the time came first.
    def ended(seconds)
      # NaN, too, is for it to refuse.
      return @native.wait(seconds) if !Fibers.scheduled? || readiness_fd.nil? || seconds&.nan?

      # Long enough for most, without a thread. Who cannot go on because nobody reads what
      # they write ({Stalled}) is found out by a wait alone.
      deadline = seconds && (Clock.now + seconds)
      within = [seconds, @stall_after].compact.min
      return @native.wait(0) if Fibers.readable?(readiness_fd, within) || within == seconds

      Fibers.aside { @native.wait(deadline && [deadline - Clock.now, 0.0].max) }
    end

    def setup(options, overflow, text)
      input = options[:input]
      raise InvalidValue, "stdin and input are both given: input is what the program reads" if input && options[:stdin]
      raise InvalidValue, "merged: lines are cut at the byte of a newline, which #{text.source} has not" if options[:merged] && !text.newline?

      Options.setup(@argv, options).merge!(
        stdin: input ? [:bytes, text.bytes(input.to_str)] : Options.stdin(options[:stdin]),
        overflow: overflow.parts,
        channel: Options.channel(options[:channel]),
        stall_after: @stall_after = Options.seconds("stall_after", options[:stall_after])
      )
    end

    def make_streams(text, bare:, terminal:)
      tell = @hook && method(:tell)
      stdin = @native.stdin
      stdout = @native.output(1)
      stderr = @native.output(2)
      @stdin = stdin && Stream.new(stdin, text, is_pipe: !terminal, tell: tell)
      @stdout = stdout && Stream.new(stdout, text, is_pipe: bare, tell: tell)
      @stderr = stderr && Stream.new(stderr, text, is_pipe: bare, tell: tell)
      merged = @native.merged
      @merged = merged && Merged.new(merged, text, tell: tell)
    end

    def talk(input, timeout)
      raise InvalidValue, "input is given, but stdin is no pipe: spawn with stdin: :pipe" if input && @stdin.nil?
      raise InvalidValue, "both outputs are merged: read child.merged to its end" if @merged
      raise InvalidValue, "input was given before: call it without to go on" if input && @communication

      seconds = Options.seconds("timeout", timeout)
      deadline = seconds && (Clock.now + seconds)
      @communication ||= begin
        bytes = input ? @stdin.text.bytes(input.to_str) : ""
        Native::Communication.new(@stdin&.native_if_open, bytes, @stdout&.native_if_open, @stderr&.native_if_open)
      end
      done = Fibers.aside do
        @communication.go_on(seconds) && @native.wait(deadline && [deadline - Clock.now, 0.0].max)
      end
      raise WaitTimeout.new(command, seconds, [self]) unless done

      tell
    end

    def take
      data = @communication.take
      @communication = nil
      [@stdout, @stderr].each { |stream| stream&.close }
      data
    end
  end

  # @private
  module Clock
    def self.now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
  end

  # The time came before the child said what was waited for.
  class MatchTimeout < WaitTimeout
    # @return [Array<String>] the last lines that came
    attr_reader :lines

    # @private
    def initialize(command, timeout, pattern, lines)
      super(command, timeout)
      @lines = lines
      @words = "#{command} did not say #{pattern.inspect} within #{timeout} s#{Search.tail(lines)}"
    end

    def message = @words
    alias to_s message
  end

  # The child ended, or closed its output, and said nothing that matches.
  class EndedBeforeMatch < StandardError
    include Error
    # @return [Status, nil] nil if it lives on
    attr_reader :status
    # @return [Array<String>] the last lines that came
    attr_reader :lines

    # @private
    def initialize(command, status, pattern, lines)
      super("#{command} #{status ? "ended (#{status})" : 'closed its output'} before it said " \
            "#{pattern.inspect}#{Search.tail(lines)}")
      @status = status
      @lines = lines
    end
  end

  # One `wait_for`.
  # @private
  class Search
    KEPT = 20
    # How long a child that has closed its output may take to end, to be told how; and the
    # last words of one that has failed, whose output others may keep open.
    GRACE = 1.0

    def self.tail(lines)
      return "; it said nothing" if lines.empty?

      "; its last lines:\n#{lines.map { |line| "    #{line.dup.force_encoding('UTF-8').scrub}" }.join("\n")}"
    end

    def initialize(child, pattern, name)
      raise InvalidValue, "stream is #{name.inspect}: use :stdout, :stderr or nil" unless [nil, :stdout, :stderr].include?(name)

      @child = child
      @pattern = pattern.is_a?(Regexp) ? pattern : Regexp.new(Regexp.escape(pattern))
      names = name ? [name] : %i[stdout stderr]
      @open = names.filter_map { |one| child.public_send(one) }
      raise InvalidValue, "#{names.join(' and ')} of the child cannot be read: spawn with :pipe" if @open.empty?

      @looked_at = Hash.new(0)
      @lines = []
    end

    def run(timeout)
      seconds = Options.seconds("timeout", timeout)
      deadline = seconds && (Clock.now + seconds)
      loop do
        status = @child.status
        match = look
        return match if match

        give_up(status) if @open.empty?
        left = left_until(deadline)
        raise MatchTimeout.new(@child.command, seconds, @pattern, @lines) if left&.zero?

        if status.nil? || status.success?
          sleep(left, status)
        elsif !sleep([left, GRACE].compact.min, status)
          # What it has written may have been on its way; now it is here.
          give_up(status)
        end
      end
    end

    private

    def look
      @open.dup.each do |stream|
        match = look_at(stream)
        return match if match
      end
      nil
    end

    def look_at(stream)
      while (line = stream.line_now)
        @looked_at.delete(stream)
        @lines = (@lines << line).last(KEPT)
        match = @pattern.match(line)
        return match if match
      end
      line.nil? ? (@open.delete(stream) && nil) : look_at_part(stream)
    end

    def look_at_part(stream)
      part = stream.part
      return if part.nil? || part.bytesize <= @looked_at[stream]

      @looked_at[stream] = part.bytesize
      match = @pattern.match(part)
      stream.read(part.bytesize) if match
      match
    end

    def left_until(deadline) = deadline && [deadline - Clock.now, 0.0].max

    # Until there is more, it ends, or the time is up: false.
    def sleep(left, status)
      fds = @open.map(&:readiness_fd)
      fds << @child.process.native unless status
      Fibers.aside { Native.wait(fds, 0, :exited, left) }.any?
    end

    def give_up(status)
      status ||= begin
        @child.wait(timeout: GRACE)
      rescue WaitTimeout
        nil
      end
      raise EndedBeforeMatch.new(@child.command, status, @pattern, @lines)
    end
  end
end
