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
      on_event: nil
    }.freeze

    RUN = SPEC.merge(
      timeout: nil, idle_timeout: nil, until: :eof, limit: nil, keep_full: nil, merged: false,
      on_timeout: :raise, cancel: nil, tee: false, on_line: nil, on_stdout_line: nil, on_stderr_line: nil,
      max_length: 16 << 20, too_long: :split
    ).freeze

    SPAWN = SPEC.merge(
      stdout: :pipe, stderr: :pipe, merged: false, overflow: :spill, stall_after: 30, channel: nil
    ).freeze

    module_function

    # Splits arguments into argv and options. `argv` may begin with variables to set, as that
    # of Process.spawn.
    def parse(caller, argv, given, known)
      unknown = given.keys - known.keys
      unless unknown.empty?
        raise InvalidValue, "#{caller}: unknown keyword #{unknown.map(&:inspect).join(', ')}; " \
                            "known are #{known.keys.join(', ')}"
      end
      options = known.merge(given)
      if argv.first.is_a?(Hash)
        variables, *argv = argv
        options[:extra_env] = variables.merge(options[:extra_env] || {})
      end
      [command_words(caller, argv, options[:shell]), options]
    end

    def setup(argv, options)
      {
        argv: argv,
        env: options[:env] && variables("env", options[:env]),
        extra_env: variables("extra_env", options[:extra_env] || {}, removes: true),
        cwd: Arguments.path(one_of(options, :cwd, :chdir)),
        user: options[:user], group: options[:group], extra_groups: options[:extra_groups]&.to_a,
        umask: options[:umask],
        rlimits: (options[:rlimits] || {}).map { |name, value| rlimit(name, value) },
        nice: options[:nice],
        process_group: group(one_of(options, :process_group, :pgroup)),
        new_session: options[:new_session] ? true : false,
        pty: terminal_size(options[:pty]),
        die_with_parent: death_signal(options[:die_with_parent]),
        liveness: options[:liveness] ? true : false,
        fds: fds(options[:fds]),
        stop: options[:stop] && Stop.of(options[:stop]).parts,
        stdout: sink("stdout", options[:stdout]),
        stderr: sink("stderr", options[:stderr]),
        merged: options[:merged] ? true : false
      }
    end

    def encodings(options)
      Encodings.of(**options.slice(:binmode, :encoding, :external_encoding, :internal_encoding))
    end

    def command_words(caller, argv, shell)
      argv = argv.first if argv.size == 1 && argv.first.is_a?(Array)
      words = argv.each_with_index.map { |word, place| word(word, place) }
      if shell
        refuse_words(caller, words) if words.size > 1 && !words.first.b.match?(ARGUMENT)
        return ["/bin/sh", "-c", *words]
      end

      refuse_line(caller, words.first) if words.size == 1
      words
    end

    def word(word, place)
      return word.to_s if word.is_a?(Symbol) || word.is_a?(Numeric)

      string = word.respond_to?(:to_path) ? word.to_path : word
      return string.to_str if string.respond_to?(:to_str)

      raise InvalidValue, "argument #{place} is #{word.inspect}: every argument is a String, a path or a number"
    end

    # Any of $0, $1, $@, $*, $#, or ${1}.
    ARGUMENT = /\$\{?[#!]?[0-9@*#]/n

    # Refuses words that the line in front of them does not use: they would be dropped.
    def refuse_words(caller, words)
      listed = words.map(&:inspect).join(", ")
      raise InvalidValue, "#{caller}(#{listed}, shell: true): the shell's line is #{words.first.inspect}, which " \
                          "uses none of the words behind it ($0, $1, $@). Pass one line, " \
                          "#{caller}(#{Shellwords.join(words).inspect}, shell: true), or leave the shell out, " \
                          "#{caller}(#{listed})"
    end

    # Refuses a program and its arguments in one string, unless there is a file of that name.
    def refuse_line(caller, line)
      return unless line.match?(/\s/) && !File.exist?(line)

      words = begin
        Shellwords.split(line)
      rescue ArgumentError
        [line]
      end
      raise InvalidValue, "#{caller}(#{line.inspect}): the program and its arguments are one string. " \
                          "Pass them apart, #{caller}(#{words.map(&:inspect).join(', ')}), or say that " \
                          "it is a line for the shell, #{caller}(#{line.inspect}, shell: true)"
    end

    def one_of(options, name, other)
      values = [options[name], options[other]].compact
      return values.first if values.size < 2

      raise InvalidValue, "#{name} and #{other} are both given, and mean the same"
    end

    def variables(name, env, removes: false)
      env.to_h.map do |key, value|
        [key.to_s, value.nil? && removes ? nil : value.to_str]
      rescue NoMethodError
        raise InvalidValue, "#{name}: the value of #{key} is #{value.inspect}, which is no String"
      end
    end

    # Inherited descriptors, as pairs of our number and the program's. Those of an array keep
    # their numbers.
    def fds(given)
      return given.map { |fd| [Arguments.descriptor("fds", fd)] * 2 } if given.is_a?(Array)

      (given || {}).map { |theirs, ours| [Arguments.descriptor("fds", ours), theirs] }
    end

    def channel(way)
      return way if [nil, :from_child, :to_child].include?(way)

      raise InvalidValue, "channel is #{way.inspect}: use :from_child, :to_child or nil"
    end

    def group(value) = value == true ? 0 : value

    def rlimit(name, value)
      soft, hard = value.is_a?(Array) ? value : [value, value]
      [name.to_s.delete_prefix("rlimit_"), *[soft, hard].map { |n| n == -1 || n == :infinity ? (2**64) - 1 : n }]
    end

    def death_signal(value)
      case value
      when false, nil then nil
      when true then "KILL"
      else Arguments.signal(value)
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
        return [rows, columns] if value.size == 2 && sizes.cover?(rows) && sizes.cover?(columns)
      end
      raise InvalidValue, "pty is #{value.inspect}: pass true, or [rows, columns]"
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
      unless callable.respond_to?(:call)
        raise InvalidValue, "on_event is #{callable.inspect}, which cannot be called"
      end

      ->(parts) { callable.call(Event.new(*parts)) }
    end

    # The program's stdin, from `input` or `stdin`: a kind and a value.
    def stdin(options, encodings)
      return stdin_source(options[:stdin]) if options[:input].nil?
      raise InvalidValue, "stdin and input are both given: input is what the program reads" unless options[:stdin].nil?

      [:bytes, encodings.encode(options[:input].to_str)]
    end

    # The source of `stdin`: a kind and a value.
    def stdin_source(source)
      case source
      when nil, :null then [:null, nil]
      when :inherit then [:inherit, nil]
      when :pipe then [:pipe, nil]
      when Integer then [:fd, source]
      when String
        raise InvalidValue, "stdin is a String: pass the data itself as input:, or the name of a file " \
                            "as Pathname(...)"
      else
        number = Arguments.descriptor_of(source)
        return [:fd, number] if number
        return [:file, source.to_path] if source.respond_to?(:to_path)

        raise InvalidValue, "stdin is #{source.inspect}: pass an IO, a descriptor, a Pathname, :null, " \
                            ":inherit, what has readpartial, read or each, or the data as input:"
      end
    end

    def sink(name, target)
      case target
      when :capture, :pipe then [:capture, nil]
      when nil, :inherit then [:inherit, nil]
      when :null then [:null, nil]
      when :merged, :out, :stdout
        return [:merged, nil] if name == "stderr"

        raise InvalidValue, "stdout is #{target.inspect}: stderr can be merged into stdout, not the other way"
      when Integer then [:fd, target]
      when String then [:file, target]
      when Array then file_sink(name, target)
      else
        number = Arguments.descriptor_of(target)
        if number
          # Output that Ruby has buffered stands before that of the program.
          target.flush if target.respond_to?(:flush)
          return [:fd, number]
        end
        return [:file, target.to_path] if target.respond_to?(:to_path)

        raise InvalidValue, "#{name} is #{target.inspect}: pass :capture, :inherit, :null, a path, an IO or " \
                            "a descriptor"
      end
    end

    # A path with a mode: `["log", "a"]`.
    def file_sink(name, (path, mode))
      case mode
      when "a" then [:append, Arguments.path(path)]
      when "w" then [:file, Arguments.path(path)]
      else raise InvalidValue, "#{name} is [#{path.inspect}, #{mode.inspect}]: the mode is \"w\" or \"a\""
      end
    end
  end
end
