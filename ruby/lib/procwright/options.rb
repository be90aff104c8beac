# frozen_string_literal: true

require "shellwords"

module Procwright
  # The options of `run` and `spawn`: their names, their checks, and their translation for
  # the extension. What the core refuses is not checked here.
  # @private
  module Options
    # Options of both.
    SPEC = {
      shell: false, env: nil, extra_env: nil, cwd: nil, chdir: nil, user: nil, group: nil,
      extra_groups: nil, umask: nil, rlimits: nil, nice: nil, process_group: nil, pgroup: nil,
      new_session: false, pty: false, die_with_parent: false, liveness: false, fds: nil, stop: nil,
      stdin: nil, input: nil, stdout: :capture, stderr: :capture,
      binmode: nil, encoding: nil, external_encoding: nil, internal_encoding: nil,
      on_event: nil, timeout: nil, idle_timeout: nil, until: :eof, limit: nil, on_timeout: :raise, cancel: nil,
      keep_full: nil, tee: false, ok_codes: nil, input_wanted: false,
      **Setup::DEFAULTS
    }.freeze

    RUN = SPEC.merge(
      merged: false, on_line: nil, on_stdout_line: nil, on_stderr_line: nil,
      max_length: 16 << 20, too_long: :split, explain_after: nil
    ).freeze

    SPAWN = SPEC.merge(
      stdout: :pipe, stderr: :pipe, merged: false, overflow: :spill, stall_after: 30, channel: nil, detach: false
    ).freeze

    # Options of `map` alone, and those of `run` that are for all of its commands at once.
    MAP_ALONE = {
      parallel: nil, ordered: false, ahead: nil, stop_after_failures: nil, deadline: nil, journal: nil
    }.merge(RUN.slice(:cancel, :on_event, :on_line, :max_length, :too_long)).freeze

    # Those of one of its commands.
    MAP_COMMAND = RUN.except(:explain_after, :input_wanted, :on_timeout, :tee, :on_stdout_line, :on_stderr_line, *MAP_ALONE.keys).freeze

    MAP = MAP_COMMAND.merge(MAP_ALONE).freeze

    # Options of `pipeline` for all stages together, and what joins those to the caller.
    PIPELINE_ALONE = { success: :forgiving, ok_codes: nil, elastic: false }.merge(
      RUN.slice(
        :input, :stdin, :stdout, :binmode, :encoding, :external_encoding, :internal_encoding, :on_timeout, :cancel, :on_event
      )
    ).freeze

    # Those of a stage. A terminal has both ends of a program, and what needs code of Ruby's
    # between two stages, or for one of them, is not there.
    STAGE = RUN.except(
      :pty, :merged, :keep_full, :tee, :on_line, :on_stdout_line, :on_stderr_line, :max_length, :too_long, :explain_after,
      :input_wanted, *PIPELINE_ALONE.except(:ok_codes).keys
    ).freeze

    PIPELINE = STAGE.merge(PIPELINE_ALONE).freeze

    SPAWN_PIPELINE = PIPELINE.merge(SPAWN.slice(:stdout, :stderr, :overflow, :stall_after)).freeze

    module_function

    # Splits arguments into argv and options. `argv` may begin with variables to set, as that
    # of Process.spawn.
    def parse(caller, argv, given, known)
      options = with_defaults(caller, given, known)
      if argv.first.is_a?(Hash)
        first, *argv = argv
        options[:extra_env] = first.merge(options[:extra_env].nil? ? {} : Arguments.mapping("extra_env", options[:extra_env], VARIABLES))
      end
      [command_words(caller, argv, options[:shell]), options]
    end

    # The words of a command and the options of its own: it is given as its words, or as a Hash of
    # options with argv among them.
    def words_and_own(subject, command, hint)
      own = Hash.try_convert(command)
      if own
        raise InvalidValue, "#{subject} is #{Arguments.shown(own)}, which has no argv: #{hint}" unless own.key?(:argv)

        words, own = own[:argv], own.except(:argv)
      else
        words, own = command, {}
      end
      [words.is_a?(Array) ? words : [words], own]
    end

    # All options of the table, of which some are given.
    def with_defaults(caller, given, known)
      unknown = (given.keys - known.keys).first
      refuse_keyword(caller, unknown, given[unknown], known) unless unknown.nil?
      options = known.merge(given)
      return options if options[:input].nil? || options[:stdin].nil?

      raise InvalidValue, "stdin and input are both given: input is what the program reads"
    end

    # Keywords of Process.spawn and Open3, and what does here what they do there.
    OF_OTHERS = {
      close_others: "the program gets no descriptors but its streams and fds: leave it out",
      err: "use stderr: with the same, :null for File::NULL, :merged for [:child, :out]",
      exception: "use run!, which raises CommandFailed",
      in: "use stdin: with the same, or input: with data",
      order: "stderr: :merged has the exact order, in one pipe; merged: true tells the outputs apart",
      out: "use stdout: with the same, :null for File::NULL",
      pass_fds: "use fds:",
      start_new_session: "use new_session:",
      stdin_data: "use input:",
      text: "outputs have an encoding always: leave it out, or pass encoding: or binmode:",
      unsetenv_others: "use env: for the whole environment",
      check: "use run!, which raises CommandFailed",
      capture_output: "both outputs come to you unless said otherwise: leave it out"
    }.freeze

    OWN_SESSION = "new_session: true gives it a session of its own"
    ENDED_BY = 'use stop: "KILL", or stop: Procwright::Stop.new("TERM", grace: 5)'
    TRACED = "PROCWRIGHT_TRACE=1 in the environment shows each start and end: set it before your Ruby starts its first " \
             "program, which is when it is read"
    NOT_SHOWN = "nothing is shown unless that is asked for: leave it out"
    # Strings where symbols are meant, and what is passed in their place.
    PLACES = {
      "capture" => ":capture", "pipe" => ":pipe", "inherit" => ":inherit", "null" => ":null",
      "merged" => "stderr: :merged"
    }.freeze
    # Keywords of other libraries.
    HABITS = {
      background: "spawn returns at once", daemon: OWN_SESSION, detached: OWN_SESSION,
      directory: "use cwd:", dir: "use cwd:", echo: TRACED, environment: "use env: or extra_env:",
      dry_run: "leave the call out: Shellwords.join(argv) is the line that it would run",
      gid: "use group:", grace: "use stop: Procwright::Stop.new(grace: 5)",
      grace_period: "use stop: Procwright::Stop.new(grace: 5)", hide: NOT_SHOWN,
      kill_after: "use stop: Procwright::Stop.new(grace: 5)", kill_signal: ENDED_BY, lines: "take result.stdout.lines",
      on_cancel: "rescue Procwright::Cancelled, whose result has what came until then",
      output: "use stdout:", printer: TRACED, quiet: NOT_SHOWN, retries: "call it again",
      scope: "use stop: Procwright::Stop.new(scope: :group)", setsid: "use new_session:", signal: ENDED_BY, silent: NOT_SHOWN, tty: "use pty:",
      uid: "use user:", verbose: TRACED, workdir: "use cwd:"
    }.freeze

    AT_A_TIME = "parallel: says how many run at a time"
    IS_RESULT = "a failure is a result: look at success? of each Ended, or call its check!"
    SHOWN_LIVE = "pass on_line:, which gets each line, its stream and the place of its command"
    AGAIN = 'map what has failed once more, or have "procwright", "run", "--retry", "2" in front of the words of each'
    IN_JOURNAL = "pass journal: Procwright::Journal.new(path, resume: true), which has it"
    # Keywords of pools, of GNU parallel and of `run`, and what does in `map` what they do there.
    OF_MAP = {
      batch_size: "each command is started alone: leave it out", check: IS_RESULT, concurrency: AT_A_TIME,
      exception: IS_RESULT, fail_fast: "pass stop_after_failures: 1", halt: "pass stop_after_failures: 1",
      input_wanted: "no command of a map has somebody to answer: run or spawn it alone",
      in_processes: AT_A_TIME, in_threads: AT_A_TIME, jobs: AT_A_TIME,
      joblog: "pass journal: Procwright::Journal.new(path, joblog: path), which has it",
      keep_order: "pass ordered: true", live: SHOWN_LIVE, max_procs: AT_A_TIME, max_threads: AT_A_TIME,
      max_workers: AT_A_TIME, on_stderr_line: SHOWN_LIVE, on_stdout_line: SHOWN_LIVE,
      on_timeout: "a timeout is a result: its result.reason says so", order: "pass ordered: true",
      processes: AT_A_TIME, progress: "progress of the Map tells how far it is", resume: IN_JOURNAL,
      retries: AGAIN, retry: AGAIN, tag: SHOWN_LIVE, tee: SHOWN_LIVE, threads: AT_A_TIME,
      total_timeout: "deadline: is that of all, timeout: that of each", workers: AT_A_TIME
    }.freeze

    CHECKED = "use pipeline!, which raises CommandFailed"
    COPIED = 'a pipeline has no copies: add a stage, ["tee", path], or take stdout and stderr of the result'
    BY_LINES = "a pipeline calls back for no lines: take stdout.lines of the result"
    # Keywords of shells, of `run` and of Open3, and what does in `pipeline` what they do there.
    OF_PIPELINE = {
      check: CHECKED, exception: CHECKED, keep_full: COPIED, tee: COPIED, on_line: BY_LINES, on_stdout_line: BY_LINES,
      on_stderr_line: BY_LINES, max_length: BY_LINES, too_long: BY_LINES,
      err: "use stderr: with the same, :null for File::NULL, :merged for [:child, :out]",
      input_wanted: "no stage has somebody to answer but by the first one's stdin: leave it out",
      merged: "stderr: :merged sends both into the pipe: leave it out", ok: "pass ok_codes: { 1 => [1] }",
      overflow: "pass elastic: true, or an Overflow, for a buffer behind each stage but the last",
      pipefail: "pass success: :strict. Without it, too, each stage counts, but for one that could write no more",
      pty: "a terminal has both ends of a program, and here they are pipes: leave it out"
    }.freeze

    BY_STREAMS = "go through the lines of stdout"
    # Those that `spawn_pipeline` has other words for.
    OF_SPAWN_PIPELINE = OF_PIPELINE.merge(
      check: "call check! of the child's result", exception: "call check! of the child's result",
      on_line: BY_STREAMS, on_stdout_line: BY_STREAMS, on_stderr_line: "go through the lines of each of stderr",
      max_length: "stdout.each_line(n) has it", too_long: "stdout.each_line(n) has it",
      keep_full: 'add a stage, ["tee", path]', tee: 'add a stage, ["tee", path]',
      channel: "spawn that program alone, or pass on a descriptor by fds",
      detach: "it is ended with us: spawn a shell that runs the pipeline, with detach: true"
    ).freeze

    # Names that others have for exit codes that are no failure.
    OTHER_OK_CODES = %i[ok ok_code ok_exit_codes expected_exit_codes success_codes valid_exit_codes].freeze
    OK_CODES = "pass an Array of exit codes from 0 to 255 that are no failure, such as [1]"

    # Keywords of `run`, and what does for a child what they do there.
    OF_RUN = {
      on_line: "go through the lines of stdout and stderr, or of merged",
      on_stdout_line: "go through the lines of stdout",
      on_stderr_line: "go through the lines of stderr"
    }.freeze

    def refuse_keyword(caller, name, value, known)
      hint = own_hint(name, known) || codes_hint(name, value) || OF_OTHERS[name] || HABITS[name] ||
             other_hint(caller, name, known)
      raise InvalidValue, "#{name} is #{Arguments.shown(value)}, and #{caller} has no such keyword: #{hint}"
    end

    def own_hint(name, known)
      return OF_MAP[name] if known.equal?(MAP)
      return OF_PIPELINE[name] if known.equal?(PIPELINE)
      return OF_SPAWN_PIPELINE[name] if known.equal?(SPAWN_PIPELINE)

      "it is one of the whole: pass it to pipeline" if known.equal?(STAGE) && PIPELINE.key?(name)
    end

    # What says that exit codes are no failure.
    def codes_hint(name, value)
      return unless OTHER_OK_CODES.include?(name)

      codes = [*value].grep(Integer).uniq.sort - [0]
      "pass ok_codes: #{codes.empty? ? [1] : codes}"
    end

    def other_hint(caller, name, known)
      return "use rlimits: { #{name.to_s.delete_prefix('rlimit_')}: ... }" if name.to_s.start_with?("rlimit_")

      return OF_RUN[name] if known.equal?(SPAWN) && OF_RUN.key?(name)

      other, has = known.equal?(RUN) ? ["spawn", SPAWN] : ["run", RUN]
      return "#{other} has it" if has.key?(name)

      near = DidYouMean::SpellChecker.new(dictionary: known.keys).correct(name).first if defined?(DidYouMean::SpellChecker)
      near ? "did you mean #{near}?" : "it has #{by_likeness(name, known.keys).join(', ')}"
    end

    # The nearest name first.
    def by_likeness(name, names)
      return names unless defined?(DidYouMean::JaroWinkler)

      names.sort_by.with_index { |other, place| [-DidYouMean::JaroWinkler.distance(name.to_s, other.to_s), place] }
    end

    # Two openings of one file: the second cuts off what the first has written.
    def refuse_same_file(options)
      stdout, stderr = %i[stdout stderr].map do |name|
        target = options[name]
        next target if target.is_a?(String)

        target.to_path if target.respond_to?(:to_path) && !target.respond_to?(:to_io)
      end
      return if stdout.nil? || stderr.nil? || File.expand_path(stdout) != File.expand_path(stderr)
      return if File.exist?(stdout) && !File.file?(stdout)

      Arguments.refuse("stderr", options[:stderr], "stdout names that file too: pass :merged")
    end

    def setup(argv, options)
      refuse_same_file(options)
      Arguments.word("on_timeout", options[:on_timeout], %i[raise return])
      {
        argv: argv,
        env: options[:env].nil? ? nil : variables("env", options[:env]),
        extra_env: options[:extra_env].nil? ? [] : variables("extra_env", options[:extra_env], removes: true),
        cwd: Arguments.path(*one_of(options, :cwd, :chdir)),
        user: account("user", options[:user]), group: account("group", options[:group]),
        extra_groups: extra_groups(options[:extra_groups]),
        umask: umask(options[:umask]),
        rlimits: rlimits(options[:rlimits]),
        nice: nice(options[:nice]),
        process_group: process_group(*one_of(options, :process_group, :pgroup)),
        new_session: options[:new_session] ? true : false,
        pty: terminal_size(options[:pty]),
        die_with_parent: death_signal(options[:die_with_parent]),
        liveness: options[:liveness] ? true : false,
        fds: fds(options[:fds]),
        setup: Setup.translated(options),
        stop: options[:stop].nil? ? nil : Stop.of(options[:stop]).parts,
        timeout: Arguments.seconds("timeout", options[:timeout]),
        idle_timeout: Arguments.seconds("idle_timeout", options[:idle_timeout]),
        until: until_of(options[:until]),
        limit: Limit.parts_of(options[:limit]),
        cancel: Cancel.native_of(options[:cancel]),
        stdout: sink("stdout", options[:stdout]),
        stderr: sink("stderr", options[:stderr]),
        merged: options[:merged] ? true : false,
        ok_codes: ok_codes(options[:ok_codes]),
        keep_full: Arguments.path("keep_full", options[:keep_full])
      }
    end

    def ok_codes(codes)
      return [] if codes.nil?

      Arguments.refuse("ok_codes", codes, "codes by stage are those of a pipeline: #{OK_CODES}") if codes.is_a?(Hash)
      Arguments.exit_codes("ok_codes", codes, OK_CODES)
    end

    # When a run, or the streams of a child, are over: for the extension, which knows times.
    def until_of(value)
      return value if value.is_a?(String) && value.encoding.ascii_compatible? && value.start_with?("silent:") && value.valid_encoding?

      words = %i[eof exit]
      found = words.find { |one| one.name == value }
      (found || Arguments.word("until", value, words, ', or "silent:" and a time, as "silent:2s"')).name
    end

    # Calls the core. An option that it refuses is told of with the value that was given.
    def telling_refusals(argv, options)
      yield
    rescue InvalidValue => e
      raise if e.refused.nil?

      what, problem, hint = *e.refused
      what = name_given(what, options)
      name, place = what.match(/\A(\w+)(?:\[(\d+)\])?\z/)&.captures
      value = name == "argv" ? argv : options[name&.to_sym]
      value = value[place.to_i] if place && value.is_a?(Array)
      raise if value.nil?

      Arguments.refuse_as_core(what, value, problem, hint)
    end

    # The names of others for options of ours.
    ALIASES = { "cwd" => "chdir", "process_group" => "pgroup" }.freeze

    # The name by which an option was given that the core has refused.
    def name_given(name, options)
      other = ALIASES[name]
      other.nil? || options[other.to_sym].nil? ? name : other
    end

    # The next number, (uid_t) -1, means "no change" to the system, and is refused by the core.
    GREATEST_ID = (2**32) - 2

    def account(name, value)
      return if value.nil?

      hint = "pass a name, or a number from 0 to #{GREATEST_ID}"
      value.is_a?(String) ? Arguments.text(name, value, hint) : Arguments.number(name, value, 0..(GREATEST_ID + 1), hint)
    end

    def extra_groups(groups)
      return if groups.nil?

      hint = "pass an Array of names, or of numbers from 0 to #{GREATEST_ID}"
      Arguments.refuse("extra_groups", groups, hint) unless groups.is_a?(Array)
      groups.each_with_index.map do |group, place|
        Arguments.refuse("extra_groups[#{place}]", group, hint) if group.nil?
        account("extra_groups[#{place}]", group)
      end
    end

    def umask(value)
      value.nil? ? nil : Arguments.number("umask", value, 0..0o777, "pass permission bits from 0 to 0o777, such as 0o022")
    end

    def nice(value)
      value.nil? ? nil : Arguments.number("nice", value, (-2**31)..((2**31) - 1), "pass a number to add to ours, such as 10")
    end

    def process_group(name, value)
      return value if value.nil?

      hint = "pass 0 or true for a group of its own, or the number of a group"
      value == true ? 0 : Arguments.number(name, value, 0..((2**31) - 1), hint)
    end

    def encodings(options)
      given = options.slice(:binmode, :encoding, :external_encoding, :internal_encoding)
      given.each { |name, value| check_encoding(name, value) unless name == :binmode || value.nil? }
      Encodings.of(**given)
    end

    # A name for `encoding` may be a pair, and begin with BOM|, as for IO.
    def check_encoding(name, value)
      return if value.is_a?(Encoding)

      names = [String.try_convert(value)&.b]
      names = names.first.sub(/\ABOM\|/i, "").split(":", 2) if name == :encoding && names.first
      names.pop if names.size == 2 && names.last == "-"
      known = names.any? && names.all? { |one| one && Encoding.name_list.any? { |other| other.casecmp?(one) } }
      Arguments.refuse(name, value, "pass an Encoding, or the name of one that Ruby knows") unless known
    end

    # Shells that make the words behind a line its $0, $1, ...: others, such as fish, do not.
    TAKE_WORDS_FROM_0 = %w[sh ash bash busybox dash ksh mksh zsh].freeze
    private_constant :TAKE_WORDS_FROM_0

    def command_words(caller, argv, shell)
      words = words(argv)
      program = shell_program(shell)
      if program
        check_words(caller, words) if words.size > 1 && TAKE_WORDS_FROM_0.include?(File.basename(program.b))
        return [program, "-c", *words]
      end

      refuse_line(caller, words.first) if words.size == 1
      words
    end

    # The words of a program, which may be an Array in the Array.
    def words(argv)
      argv = argv.first if argv.size == 1 && argv.first.is_a?(Array)
      argv.each_with_index.map { |word, place| word(word, place) }
    end

    # The program that takes a line, nil for none.
    def shell_program(shell)
      return shell ? "/bin/sh" : nil if [nil, true, false].include?(shell)

      hint = 'pass true for /bin/sh, or the path of a shell that has -c, "/bin/bash"'
      path = Arguments.string("shell", shell.respond_to?(:to_path) ? shell.to_path : shell, hint)
      path.empty? || path.b.include?("\0") ? Arguments.refuse("shell", shell, hint) : path
    end

    def word(word, place)
      return word.to_s if word.is_a?(Symbol) || word.is_a?(Numeric)

      string = word.respond_to?(:to_path) ? word.to_path : word
      return string.to_str if string.respond_to?(:to_str)

      Arguments.refuse("argv[#{place}]", word, "every argument is a String, a path or a number")
    end

    # Refuses words behind a line for the shell that it would drop.
    def check_words(caller, words)
      line, *behind = words
      listed = words.map(&:inspect).join(", ")
      use = Native.shell_words(line, behind)
      if use == :unused
        raise InvalidValue, "#{caller}(#{listed}, shell: true): the shell's line is #{line.inspect}, which " \
                            "uses none of the words behind it ($0, $1, $@). Pass one line, " \
                            "#{caller}(#{Shellwords.join(words).inspect}, shell: true), or leave the shell out, " \
                            "#{caller}(#{listed})"
      end
      return unless use == :taken_for_one

      named = [line, "sh", *behind].map(&:inspect).join(", ")
      raise InvalidValue, "#{caller}(#{listed}, shell: true): the first word behind the line is $0, so that " \
                          "$#{behind.size}, which the line uses, is empty. Put a name in front of the words, " \
                          "#{caller}(#{named}, shell: true), or write ${#{behind.size}-} for one that may be missing"
    end

    # Refuses a program and its arguments in one string, unless there is a file of that name.
    def refuse_line(caller, line)
      return unless line.match?(/\s/) && !File.exist?(line)

      words = begin
        Shellwords.split(line)
      rescue ArgumentError
        [line]
      end
      if caller == "a stage"
        raise InvalidValue, "the program and its arguments are one string, #{line.inspect}. Pass #{words.inspect} for it, or say " \
                            "that it is a line for the shell, { argv: [#{line.inspect}], shell: true }"
      end

      raise InvalidValue, "#{caller}(#{line.inspect}): the program and its arguments are one string. " \
                          "Pass them apart, #{caller}(#{words.map(&:inspect).join(', ')}), or say that " \
                          "it is a line for the shell, #{caller}(#{line.inspect}, shell: true)"
    end

    def one_of(options, name, other)
      given = [name, other].reject { |one| options[one].nil? }
      return [given.first.to_s, options[given.first]] if given.size == 1
      return [name.to_s, nil] if given.empty?

      raise InvalidValue, "#{name} and #{other} are both given, and mean the same"
    end

    VARIABLES = "pass a Hash of names to Strings"

    def variables(name, env, removes: false)
      Arguments.mapping(name, env, VARIABLES).map do |key, value|
        refuse_name(name, key) unless key.is_a?(String) || key.is_a?(Symbol)
        what = "#{name}[#{Arguments.shown(key)}]"
        hint = "every value is a String#{', or nil to remove it' if removes}#{", here #{value.to_s.inspect}" if value.is_a?(Numeric)}"
        [key.to_s, value.nil? && removes ? nil : Arguments.string(what, value, hint)]
      end
    end

    def refuse_name(name, key) = Arguments.refuse("a name in #{name}", key, "every name is a String or a Symbol")

    # Inherited descriptors, as pairs of our number and the program's. Those of an array keep
    # their numbers.
    def fds(given)
      return [] if given.nil?
      return given.each_with_index.map { |fd, place| [Arguments.descriptor("fds[#{place}]", fd)] * 2 } if given.is_a?(Array)

      hint = "pass an Array of descriptors, or a Hash of the program's numbers to ours"
      Arguments.mapping("fds", given, hint).map do |theirs, ours|
        number = Arguments.number("a number in fds", theirs, 0..0x7fff_ffff, "every key is a number from 0 on")
        [Arguments.descriptor("fds[#{theirs}]", ours), number]
      end
    end

    def channel(way)
      way.nil? ? nil : Arguments.word("channel", way, %i[from_child to_child], ", or nil")
    end

    def rlimits(given)
      return [] if given.nil?

      hint = "pass a Hash of names to limits, such as { nofile: 100 }"
      Arguments.mapping("rlimits", given, hint).map { |name, value| rlimit(name, value) }
    end

    RLIMIT = "pass a number from 0 on, -1 or :infinity for no limit, or a pair of these, soft and hard"

    def rlimit(name, value)
      refuse_name("rlimits", name) unless name.is_a?(Symbol) || name.is_a?(String)
      resource = Arguments.text("a name in rlimits", name.to_s, "use the name of a resource, such as :nofile").delete_prefix("rlimit_")
      both = value.is_a?(Array) ? value : [value, value]
      infinity = (2**64) - 1
      known = both.size == 2 && both.all? { |one| one == :infinity || (one.is_a?(Integer) && (-1..infinity).cover?(one)) }
      Arguments.refuse("rlimits[#{Arguments.shown(name)}]", value, RLIMIT) unless known
      [resource, *both.map { |one| [-1, :infinity].include?(one) ? infinity : one }]
    end

    def death_signal(value)
      case value
      when false, nil then nil
      when true then "KILL"
      else Arguments.signal("die_with_parent", value)
      end
    end

    # Rows and columns, nil for no terminal.
    def terminal_size(value)
      case value
      when false, nil then return
      when true then return own_terminal_size || [24, 80]
      when Array
        rows, columns = value
        sizes = 1..65_535
        whole = [rows, columns].all? { |size| size.is_a?(Integer) && sizes.cover?(size) }
        return [rows, columns] if value.size == 2 && whole
      end
      Arguments.refuse("pty", value, "pass true, or [rows, columns], from 1 to 65535 each")
    end

    def own_terminal_size
      require "io/console"
      [$stdout, $stdin].each do |io|
        size = io.winsize if io.tty?
        return size if size&.all?(&:positive?)
      end
      nil
    rescue LoadError, SystemCallError, IOError
      nil
    end

    # A callable for the extension, which calls with the parts of an {Event}.
    def event_hook(callable)
      Arguments.callable("on_event", callable)
      ->(parts) { callable.call(Event.new(*parts)) }
    end

    # The program's stdin, from `input` or `stdin`: a kind and a value.
    def stdin(options, encodings)
      return stdin_source(options[:stdin]) if options[:input].nil?

      hint = "pass a String; what has each, an IO or a Pathname goes into stdin:"
      [:bytes, encodings.encode(Arguments.string("input", options[:input], hint))]
    end

    # The source of `stdin`: a kind and a value.
    def stdin_source(source)
      case source
      when nil, :null then [:null, nil]
      when :inherit then [:inherit, nil]
      when :pipe then [:pipe, nil]
      when Integer then [:fd, Arguments.descriptor("stdin", source)]
      when String, Hash
        hint = "pass the data itself as input:, or the name of a file as Pathname(...)"
        Arguments.refuse("stdin", source, hint)
      else
        number = Arguments.descriptor_of("stdin", source) if PlainIO.reads?(source)
        if number
          PlainIO.give_back(source)
          return [:fd, number]
        end
        return [:file, source.to_path] if source.respond_to?(:to_path)

        Arguments.refuse_closed("stdin", source)
        hint = "pass an IO, a descriptor, a Pathname, :null, :inherit, what has readpartial, read or " \
               "each, or the data as input:"
        Arguments.refuse("stdin", source, hint)
      end
    end

    def sink(name, target)
      case target
      when :capture, :pipe then [:capture, nil]
      when nil, :inherit then [:inherit, nil]
      when :null then [:null, nil]
      when :merged, :out, :stdout
        return [:merged, nil] if name == "stderr"

        Arguments.refuse("stdout", target, "stderr can be merged into stdout, not the other way")
      when Integer then [:fd, Arguments.descriptor(name, target)]
      when String
        refuse_redirection(name, target)
        place = PLACES[target] or return [:file, target]

        Arguments.refuse(name, target, "pass #{place}, or Pathname(#{target.inspect}) for a file of that name")
      when Array then file_sink(name, target)
      else
        number = Arguments.descriptor_of(name, target)
        if number
          refuse_past(name, target) unless PlainIO.writes?(target)
          # Output that Ruby has buffered stands before that of the program.
          target.flush if target.respond_to?(:flush)
          return [:fd, number]
        end
        return [:file, target.to_path] if target.respond_to?(:to_path)

        Arguments.refuse(name, target, "pass :capture, :inherit, :null, a path, an IO or a descriptor")
      end
    end

    # Refuses what changes what is written to it, as a Zlib::GzipWriter does.
    def refuse_past(name, target)
      hint = "the program would write past it, to the descriptor below: pass tee: { #{name}: it }, for which " \
             "#{name} has to be captured, or its to_io where that is what is meant"
      Arguments.refuse(name, target, hint)
    end

    # Refuses what is a shell's redirection, and would be the name of a file here.
    def refuse_redirection(name, target)
      return unless target.b.start_with?(">")

      path = target.b.sub(/\A>+\s*/, "").force_encoding(target.encoding).inspect
      does = target.b.start_with?(">>") ? "[#{path}, \"a\"]" : path
      Arguments.refuse(name, target, "it is a path, and no line of a shell: pass #{does}; a Pathname if that is its name")
    end

    # A path with a mode: `["log", "a"]`.
    def file_sink(name, parts)
      path, mode = parts
      kind = { "a" => :append, "w" => :file }[mode]
      path = path.respond_to?(:to_path) ? path.to_path : path
      return [kind, path] if parts.size == 2 && kind && path.is_a?(String)

      Arguments.refuse(name, parts, "pass a path and a mode, which is \"w\" or \"a\"")
    end
  end
end
