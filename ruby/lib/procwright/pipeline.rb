# frozen_string_literal: true

module Procwright
  # Runs programs of which each writes into the next one, judges each, and returns all that came
  # of them.
  #
  #   Procwright.pipeline(["yes"], ["head", "-1"]).stdout # => "y\n"
  #   Procwright.pipeline({ argv: ["zcat", "log.gz"], chdir: "/var/log" }, ["grep", "-c", "500"], timeout: 60)
  #   upcase = ->(input, output) { input.each_line { |line| output << line.upcase } }
  #   Procwright.pipeline(["printf", "pear\\napple\\n"], upcase, ["sort"]).stdout # => "APPLE\nPEAR\n"
  #
  # The pipes between are the kernel's: nothing passes through this process but by a function, a {Fan}
  # or `elastic`. All are started, or none; all have one deadline; and when one has to be stopped, all are, the last one first.
  # Threads, signals and fibers are as with {run}.
  #
  # @overload pipeline(*stages, **options)
  #   @param stages [Array<Array, Hash, String>] what to run: each an Array of words as {run} takes
  #     them, which may begin with variables to set; or a Hash of options of {run} for this stage
  #     alone with `argv:` among them, which come on top of those of all. Between two programs a
  #     function may stand, what has `call`: it is called on a thread of its own, with a {Stream} of
  #     what the first writes and a {Stream} to what the second reads, in the encodings of this call
  #     and closed when it returns. What it returns is not looked at. Its exception stops all, the
  #     second program before it sees an end, and comes through; that nobody reads its output,
  #     Errno::EPIPE, is forgiven as it is of a program. Once all are stopped its reads and writes
  #     raise Errno::ECANCELED; one that has not returned 2 s later is named by the error, and its
  #     thread killed. Stages are counted without it. A stage may be a {Fan} of programs, each of
  #     which gets all that the one before writes, and whose lines the next one gets. Each of its
  #     programs is counted as a stage
  #   @param input [String] the data that the first reads; so too `stdin`, as of {run}
  #   @param stdout [Symbol, String, IO, Integer, Array] where the last writes, as of {run}. The others of a
  #     {Fan} are captured, unless they say `stdout:` themselves: `result.stages[1].stdout`
  #   @param stderr [Symbol, String, IO, Integer, Array] where each writes its errors, as of {run};
  #     `:merged` sends both into the pipe
  #   @param limit [Integer, String, Limit] how many bytes are kept of stdout, and of each stderr
  #   @param timeout [Numeric] seconds for all
  #   @param idle_timeout [Numeric] seconds without a byte on stdout of the last or on stderr of any.
  #     What passes between two stages is not seen
  #   @param stop [Stop, String, Symbol, Hash] how all are stopped when that has to be
  #   @param success [Symbol] the rule: `:forgiving` wants 0 of each, but for one that could write no
  #     more since the next had read enough and ended well; `:strict` forgives none, as `pipefail`;
  #     `:last` asks for the last alone
  #   @param ok_codes [Hash{Integer=>Array<Integer>}] exit codes that are no failure, by stage, from
  #     0: `{ 1 => [1] }` for a grep that may find nothing
  #   @param elastic [Boolean, Overflow, Hash{Integer=>Boolean, Overflow}] a buffer behind each stage
  #     but the last, so that each ends at its own speed: what the next one has not taken yet is
  #     kept in memory, then on disk. `true`, an {Overflow} that says how much, or these by stage,
  #     from 0: `{ 0 => true }`. What is buffered passes through this process, by two threads for
  #     each buffer
  #   @param on_timeout [Symbol] `:raise`, or `:return` the result of one that came to its
  #     `timeout` or `idle_timeout`; other stops raise all the same
  #   @param cancel [Cancel] as of {run}; so too `on_event`, `encoding`, `binmode`
  #   @param options options of {run} for each stage: `chdir:`, `env:`, `rlimits:`, `until:`, ...
  # @return [PipelineResult]
  # @raise [InvalidValue] an ArgumentError
  # @raise [SpawnError] an Errno::ENOENT, Errno::EACCES, ..., whose `stage` says which one
  # @raise [TimeoutExpired, IdleTimeout, OutputLimitExceeded, Cancelled] with the {PipelineResult}
  def self.pipeline(*stages, **given)
    options = Options.with_defaults("pipeline", given, Options::PIPELINE)
    encodings = Options.encodings(options)
    pipeline = Pipeline.new(stages, options, encodings)
    StdinFeed.during(options) do
      raw = EventCaller.during(options) { pipeline.run }
      result = PipelineResult.new(raw, encodings)
      Run.raise_for(result, options[:on_timeout])
      result
    end
  end

  # {pipeline}, but raises {CommandFailed} unless it succeeds by its rule.
  #
  # @return [PipelineResult]
  def self.pipeline!(*stages, **options)
    pipeline(*stages, **options).check!
  end

  # One call of {Procwright.pipeline}: its arguments, for the extension.
  # @private
  class Pipeline
    STAGE = "pass each stage as an Array of words, or as a Hash of options with argv among them"
    OK_CODES = "pass a Hash of stages, which count from 0, to Arrays of exit codes, such as { 1 => [1] }"
    ELASTIC = "pass true, a Procwright::Overflow, or a Hash of stages but the last, from 0, to these, such as { 0 => true }"
    BUFFER_OR_FUNCTION = "leave it out for that stage, which has a function behind it"
    OWN_STDIN = "input and stdin are for one program: give those of a Fan their own, as " \
                "Fan.new({ argv: [...], stdin: ... }, ...)"
    FED = "of a Fan each reads a file or nothing: put a cat with that alone"
    TWO_STDINS = "the first program has a stdin of its own: leave one of them out"
    TWO_STDOUTS = "the last program of the Fan has a stdout of its own: leave one of them out"

    # A stage: its words, all of its options, and those that it alone has.
    Given = Struct.new(:argv, :options, :own)

    # Refuses what cannot be used, as far as that can be known before threads are started that
    # feed the first stage.
    def initialize(stages, options, encodings)
      @options = options
      @encodings = encodings
      Arguments.refuse("stages", stages, "a pipeline has one program at least; #{STAGE}") if stages.empty?
      stages, @fans = Fan.spread(stages)
      stages, @functions = StageFunctions.split(stages)
      # How many stand side by side at the start, and at the end: 0 without a Fan.
      @at_start = @fans.first && @fans.first[0].zero? ? @fans.first[1] : 0
      @at_end = @fans.last && @fans.last[0].positive? && @fans.last.sum == stages.size ? @fans.last[1] : 0
      # The place of the first that nobody reads.
      @first_of_last = stages.size - [@at_end, 1].max
      common = options.slice(*Options::STAGE.keys).except(*OF_ALL)
      # What is wrong with an option of all is not told of as that of a stage.
      Options.shell_program(common[:shell])
      Options.setup(["true"], whole(common))
      @whole = whole_setup(stages.size)
      @stdin = Options.stdin(options, encodings) unless Run.fed_by_thread?(options[:stdin])
      @stages = stages.each_with_index.map { |stage, place| Pipeline.of_stage(place) { stage(stage, common, own_ends(place)) } }
      refuse_two_ends
      @setups = setups
      refuse_shared_files
    end

    # Runs it, once what feeds it and is told of it is in the options.
    def run
      feed_first
      # The thread that feeds the first stage may have made one.
      FunctionCaller.during(@functions, @encodings) do |callers|
        options = setup(callers, events: @options[:events])
        telling_refusals { Fibers.on_thread { Native.pipeline(options) } }
      end
    end

    # Starts it, and leaves it to `kept`; `own` are the options that are for that alone.
    # @return [Array<FunctionCaller>] those of its functions
    def spawn(kept, own)
      feed_first
      FunctionCaller.beginning(@functions, @encodings) do |callers|
        telling_refusals { Native.spawn_pipeline(kept, setup(callers, own)) }
      end
    end

    # The words of each stage.
    def argvs = @stages.map { |stage| stage.argv.dup.freeze }

    # All of it as a shell would take it, if that had braces for a {Fan}.
    def command
      each = @stages.map { |stage| Shellwords.join(stage.argv) }
      @fans.reverse_each do |before, programs|
        each[before, programs] = "{#{each[before, programs].join(', ')}}" if programs > 1
      end
      each.join(" | ")
    end

    # Has what the block refuses be told of as that of a stage.
    def self.of_stage(place)
      yield
    rescue InvalidValue => e
      raise InvalidValue, "stage #{place + 1}: #{e.message}"
    end

    private

    # Options that stages have as well, and that mean all of them here.
    OF_ALL = %i[timeout idle_timeout stop ok_codes].freeze
    private_constant :OF_ALL

    # All of it, for the extension.
    def setup(callers, own)
      @whole.merge(own, stages: @setups, functions: callers.map(&:parts), cancel: Cancel.native_of(@options[:cancel]))
    end

    # Whether the first stage reads what the whole is given.
    def reads_whole? = @at_start <= 1 && !@stages.first.own.key?(:stdin)

    def feed_first
      @setups.first[:stdin] = @stdin || Options.stdin(@options, @encodings) if reads_whole?
    end

    # The ends that a stage may have of its own.
    def own_ends(place)
      return %i[stdout] if @at_end.positive? && place >= @first_of_last

      place < @at_start ? %i[stdin] : []
    end

    # Refuses what would be said twice of one end, by the whole and by a program of a {Fan}.
    def refuse_two_ends
      name = %i[input stdin].find { |one| !@options[one].nil? }
      raise InvalidValue, OWN_STDIN if name && @at_start > 1

      Arguments.refuse(name.name, @options[name], TWO_STDINS) if name && !reads_whole?
      # Those that mean this process say nothing.
      return if !@stages.last.own.key?(:stdout) || %i[capture pipe].include?(@options[:stdout])

      Arguments.refuse("stdout", @options[:stdout], TWO_STDOUTS)
    end

    def whole(options) = Options::RUN.merge(options)

    def whole_setup(count)
      Arguments.callable("on_event", @options[:on_event])
      Arguments.word("on_timeout", @options[:on_timeout], %i[raise return])
      Options.sink("stdout", @options[:stdout])
      Cancel.native_of(@options[:cancel])
      {
        timeout: Arguments.seconds("timeout", @options[:timeout]),
        idle_timeout: Arguments.seconds("idle_timeout", @options[:idle_timeout]),
        stop: @options[:stop].nil? ? nil : Stop.of(@options[:stop]).parts,
        success: Arguments.symbol("success", @options[:success], %i[forgiving strict last]).name,
        ok_codes: ok_codes(@options[:ok_codes], count),
        elastic: elastic(@options[:elastic]),
        fans: @fans
      }
    end

    def ok_codes(given, count)
      return [] if given.nil?

      Arguments.mapping("ok_codes", given, OK_CODES).map do |place, codes|
        Arguments.number("a stage in ok_codes", place, 0..(count - 1), OK_CODES)
        [place, Arguments.exit_codes("ok_codes[#{place}]", codes, OK_CODES)]
      end
    end

    # The policies of the buffers, with the stages that they are behind.
    def elastic(given)
      last_buffered = @first_of_last - 1
      has_function = @functions.to_h
      merged = @fans.flat_map { |before, programs| programs > 1 ? [*before...(before + programs)] : [] }
      free = [*0..last_buffered].reject { |place| has_function.key?(place) } - merged
      behind = Hash.try_convert(given) || free.to_h { |place| [place, given] }
      # Where there are no stages for it, too, it is one of those that can be.
      policy("elastic", given) unless Hash.try_convert(given)
      policies = behind.map do |place, one|
        Arguments.number("a stage in elastic", place, 0..last_buffered, ELASTIC)
        parts = policy("elastic[#{place}]", one)
        Arguments.refuse("elastic[#{place}]", one, BUFFER_OR_FUNCTION) if parts && has_function.key?(place)
        [place, parts]
      end
      policies.reject { |_, parts| parts.nil? }
    end

    def policy(name, given)
      case given
      when false then nil
      when true then Overflow.new.parts
      when Overflow then given.parts
      else Arguments.refuse(name, given, ELASTIC)
      end
    end

    # A stage that may have `ends` besides the options of one.
    def stage(given, common, ends)
      words, own = Options.words_and_own("it", given, STAGE)
      argv, options = Options.parse("a stage", words, { **common, **own.except(*ends) }, Options::STAGE)
      Given.new(argv, options.merge(own.slice(*ends)), own)
    end

    # The stages for the extension. The first has what the whole reads, the last what it writes,
    # unless it has that of its own.
    def setups
      @stages.first.options.merge!(@options.slice(:stdin, :input)) if reads_whole?
      @stages.last.options[:stdout] = @options[:stdout] unless @stages.last.own.key?(:stdout)
      @stages.each_with_index.map do |stage, place|
        Pipeline.of_stage(place) { Options.setup(stage.argv, whole(stage.options)).merge!(stdin: own_stdin(stage)) }
      end
    end

    # What a stage reads that is said of it alone.
    def own_stdin(stage)
      return [:null, nil] unless stage.own.key?(:stdin)

      given = stage.own[:stdin]
      Arguments.refuse("stdin", given, FED) if Run.fed_by_thread?(given)
      Options.stdin_source(given)
    end

    # Two openings of one file: the second cuts off what the first has written.
    def refuse_shared_files
      files = @setups.flat_map { |setup| setup.slice(:stdout, :stderr).to_a }.filter_map do |name, (kind, path)|
        # In bytes, as the core takes it, which refuses a NUL.
        next if kind != :file || path.b.include?("\0")

        full = File.expand_path(path.b)
        [full, name, path] if File.file?(full) || !File.exist?(full)
      end
      _, name, path = files.group_by(&:first).values.find { |all| all.size > 1 }&.last
      return if path.nil?

      Arguments.refuse(name.name, path, "two stages would open that file, each anew: pass [path, \"a\"]")
    end

    # Calls the core. An option that it refuses is told of with the value that was given, and as
    # that of a stage if the stage alone has it.
    def telling_refusals(&call)
      call.call
    rescue InvalidValue => e
      raise if e.refused.nil?

      place = e.refused.stage
      return Options.telling_refusals([], @options) { raise e } if place.nil?

      stage = @stages[place]
      name = Options.name_given(e.refused.what, stage.options)[/\A\w+/].to_sym
      tell = -> { Options.telling_refusals(stage.argv, stage.options) { raise e } }
      name == :argv || stage.own.key?(name) ? Pipeline.of_stage(place, &tell) : tell.call
    end
  end
  private_constant :Pipeline
end
