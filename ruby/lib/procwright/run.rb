# frozen_string_literal: true

module Procwright
  # Runs a program, waits until the run is over, and returns all that came of it.
  #
  # The program reads nothing and both of its outputs are captured, unless said
  # otherwise. No pipe can fill up and block it for good, every deadline holds, and a run
  # that has to be stopped leaves no process behind: each that could not be stopped is
  # named in {Result#survivors}.
  #
  # Other threads go on meanwhile. Timeout.timeout, Thread#raise, Thread#kill, Ctrl-C and
  # a handler of Signal.trap act at once: what they throw stops the run, as `stop:` says,
  # and comes through when nothing of it is left; a second time they end the grace. Under a
  # Fiber scheduler other fibers go on, and Fiber#raise does the same.
  #
  #   Procwright.run("git", "rev-parse", "HEAD").stdout.chomp
  #   Procwright.run({ "LC_ALL" => "C" }, "sort", input: data, timeout: 10)
  #
  # @overload run(env = {}, *argv, **options)
  #   @param env [Hash{String=>String, nil}] variables to set, or with nil to remove
  #   @param argv [Array<String>] the program and its arguments; with `shell: true` a line
  #     for /bin/sh
  #   @param shell [Boolean]
  #   @param env [Hash] as a keyword: the whole environment
  #   @param extra_env [Hash] as the first argument
  #   @param cwd [String] the directory; `chdir:` is the same
  #   @param user [String, Integer] the user to become; so too `group`, `extra_groups`
  #   @param umask [Integer]
  #   @param rlimits [Hash] `{ nofile: 100 }`; a pair is soft and hard, -1 is no limit
  #   @param nice [Integer]
  #   @param process_group [Integer, true] 0 or true for one of its own; `pgroup:` is the same
  #   @param new_session [Boolean]
  #   @param pty [Boolean, Array(Integer, Integer)] on a terminal of its own, of so many rows
  #     and columns; both outputs come as `stdout`
  #   @param die_with_parent [Boolean, String] the signal that the kernel sends it when this
  #     process ends; true is KILL
  #   @param blocked_signals [Array<String, Symbol, Integer>] signals that are blocked when it
  #     starts; so too `ignored_signals`, and `default_signals`, which have their default action
  #     whatever this process ignores
  #   @param cpu_affinity [Array<Integer>] the processors that it runs on
  #   @param sched_policy [String, Symbol] `:batch`, `:idle`, `:other`, `"fifo:10"` or `"rr:10"`, as
  #     by chrt
  #   @param ionice [String, Symbol] `:idle`, `"best-effort:7"` or `"realtime:0"`, as by ionice
  #   @param oom_score_adj [Integer] how readily the kernel kills it where memory is short, from
  #     -1000, never, to 1000
  #   @param cgroup [String, Pathname] the directory of the cgroup that it starts in
  #   @param chroot [String, Pathname] its root; `cwd` is in there, and "/" unless given
  #   @param no_new_privs [Boolean] no exec gives it more rights
  #   @param new_keyring [Boolean] an empty session keyring of its own
  #   @param liveness [Boolean] lets it watch this process: it calls {LivenessMonitor.of_parent}
  #   @param fds [Hash{Integer=>IO, Integer}, Array<IO, Integer>] descriptors that it gets, by
  #     their numbers there; those of an array keep theirs
  #   @param input [String] the data that it reads
  #   @param stdin [IO, Integer, Pathname, Symbol, #readpartial, #read, #each] the source of what it reads;
  #     `:null`, `:inherit`. What is no file of the system's is read on a thread of its own;
  #     what it raises ends the run, and is raised here
  #   @param stdout [Symbol, String, IO, Integer, Array] `:capture`, `:inherit`, `:null`, a path,
  #     `[path, "a"]`, an IO or a descriptor; so too `stderr`, for which there is `:merged`
  #   @param timeout [Numeric] seconds for the whole run; 0 has expired, nil and infinity never do
  #   @param idle_timeout [Numeric] seconds without a byte of output
  #   @param stop [Stop, String, Symbol, Hash] how it is stopped when it has to be; a signal alone,
  #     `"KILL"`, is that of a Stop
  #   @param until [Symbol, String] `:eof`: when every process that holds its pipes is gone;
  #     `:exit`: when the program itself has exited; `"silent:2s"`: when it has exited and
  #     nothing has come for so long since, or nobody holds the pipes
  #   @param limit [Integer, String, Limit] how many bytes of each stream are kept: 65536, `"64KiB"`
  #   @param keep_full [String] a file that gets everything (stderr in one with `.stderr` appended)
  #   @param ok_codes [Array<Integer>] exit codes that are no failure besides 0, `[1]` for a grep that
  #     may find nothing: {Result#success?} and `run!` go by them
  #   @param merged [Boolean] also record in which order the two streams were read
  #   @param on_line [#call] gets each line of both captured streams while it comes, with its
  #     end, and `:stdout` or `:stderr`; in the order of reading. On a thread of its own: the
  #     run's deadlines hold whatever it does. What it raises stops the run, and is raised here.
  #     After a stop it has the grace, and half a second more, to take what is left; then the
  #     thread is killed
  #   @param on_stdout_line [#call] gets each line of that stream; so too `on_stderr_line`
  #   @param max_length [Integer, nil] the longest line in bytes, with its end, that these get; nil
  #     for no limit
  #   @param too_long [Symbol] `:split`: a longer line comes in pieces; `:fail`: it stops the run,
  #     which raises an IOError
  #   @param tee [Boolean, String, Pathname, IO, Integer, #write, Hash] the place where the captured
  #     streams are shown while they come: true on our own stdout and stderr; a path, an IO, a
  #     descriptor or what has `write` for both; of one stream alone `{ stderr: true }`, with any of
  #     these for each
  #   @param on_timeout [Symbol] `:raise`, or `:return` the result of a run that came to its
  #     `timeout` or `idle_timeout`. {OutputLimitExceeded} and {Cancelled} are raised all the same
  #   @param cancel [Cancel] ends the run from another thread; one that is cancelled already
  #     starts nothing
  #   @param on_event [#call] gets an {Event} when there is something to tell; without it that
  #     is written to stderr. It is called as `on_line` is
  #   @param explain_after [Numeric] seconds after which `on_event` is told why the program has not
  #     ended, by an event `:explained`: who waits for whom, and whether it waits for input
  #   @param input_wanted [Boolean] tell `on_event` when the program, or one that it has started,
  #     begins to wait for input, by an event `:input_wanted` for each wait, with its `prompt`: on its
  #     terminal, or on a stdin that somebody holds. It is noticed when the output has paused for 0.1 s
  #   @param encoding [String, Encoding] encoding of the outputs, `"ext"` or `"ext:int"`;
  #     Encoding.default_external if not given
  #   @param binmode [Boolean] the outputs are binary
  # @return [Result]
  # @raise [InvalidValue] an ArgumentError
  # @raise [SpawnError] an Errno::ENOENT, Errno::EACCES, ...
  # @raise [TimeoutExpired, IdleTimeout] a Timeout::Error
  # @raise [OutputLimitExceeded, Cancelled]
  def self.run(*argv, **given)
    Run.refuse_block if block_given?
    argv, options = Options.parse("run", argv, given, Options::RUN)
    encodings = Options.encodings(options)
    # Before a thread is started that reads what `stdin` gives. What is left to refuse is what
    # the core alone can judge.
    setup = Options.setup(argv, options).merge!(Run.setup(options, encodings))
    StdinFeed.during(options) do
      raw = EventCaller.during(options) do
        OutputTap.during(options, encodings) do
          Run.connect(setup, options, encodings)
          Options.telling_refusals(argv, options) { Fibers.on_thread { Native.run(setup) } }
        end
      end
      result = Result.new(raw, encodings)
      Run.raise_for(result, options[:on_timeout])
      result
    end
  end

  # {run}, but raises {CommandFailed} unless the program exits with code 0.
  #
  # @return [Result]
  def self.run!(*argv, **options)
    Run.refuse_block if block_given?
    run(*argv, **options).check!
  end

  # @private
  module Run
    module_function

    # Ruby drops a block that nobody takes without a word.
    def refuse_block
      raise ArgumentError, "run takes no block: pass on_line: ->(line) { ... }, or read the streams of Procwright.spawn"
    end

    # The options of `run` alone, for the extension.
    def setup(options, encodings)
      Arguments.callable("on_event", options[:on_event])
      OutputTap.check(options)
      {
        explain_after: Arguments.seconds("explain_after", options[:explain_after]),
        input_wanted: options[:input_wanted] ? true : false,
        stdin: fed_by_thread?(options[:stdin]) ? nil : Options.stdin(options, encodings)
      }
    end

    # A source that was closed is refused before a thread reads it for a program that runs.
    def fed_by_thread?(source)
      StdinFeed.needed?(source) && Arguments.refuse_closed("stdin", source).nil?
    end

    # Adds what the threads beside the run have put into its options.
    def connect(setup, options, encodings)
      setup[:stdin] ||= Options.stdin(options, encodings)
      setup.merge!(
        # The thread that feeds stdin may have made one.
        cancel: Cancel.native_of(options[:cancel]),
        taps: options[:taps],
        events: options[:events],
        tee: options[:tee_shown],
        tee_files: options[:tee_files]
      )
    end

    def raise_for(result, on_timeout)
      error = error_for(result, on_timeout)
      raise error if error
    end

    # What that raises; nil if nothing.
    def error_for(result, on_timeout)
      case result.reason
      when :output_limit then OutputLimitExceeded.new(result)
      when :cancelled then Cancelled.new(result)
      when :timeout then TimeoutExpired.of_run(result) if on_timeout == :raise
      when :idle_timeout then IdleTimeout.of_run(result) if on_timeout == :raise
      end
    end
  end
end
