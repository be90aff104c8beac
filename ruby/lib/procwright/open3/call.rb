# frozen_string_literal: true

module Procwright
  module Open3
    # One call: its arguments, translated to those of `run` and `spawn`.
    # @private
    class Call
      # Options that are not those of Process.spawn, by the kind of the call. A stage of `pipeline`
      # has none: what there is of them is of the whole.
      KNOWN = {
        popen: %i[overflow stall_after stop on_event],
        capture: %i[timeout idle_timeout stop until limit keep_full on_timeout cancel on_event],
        stage: []
      }.freeze
      DESCRIPTORS = { in: 0, out: 1, err: 2 }.freeze
      STREAM_NAMES = { 0 => :stdin, 1 => :stdout, 2 => :stderr }.freeze

      # `common` are options of a whole pipeline, under those of this command.
      def initialize(cmd, kind, common = {})
        @given = common.merge(cmd.last.is_a?(Hash) && cmd.size > 1 ? cmd.pop : {})
        @env = cmd.first.is_a?(Hash) ? cmd.shift : {}
        @cmd = cmd
        @kind = kind
        @opened = []
        @options = { fds: {}, rlimits: {}, stdin: :inherit, stdout: :inherit, stderr: :inherit }
      end

      def popen(own, names, &block)
        child = start(own) { |argv, options| Procwright.spawn(*argv, **options) }
        streams = names.map { |name| child.public_send(name) }
        ends = [*streams, Waiter.new(child)]
        return ends unless block

        begin
          yield(*ends)
        ensure
          streams.each(&:close)
          child.wait
        end
      end

      def capture(own)
        data = @given.key?(:stdin_data) ? @given[:stdin_data] : ""
        @options[:binmode] = true if @given[:binmode]
        source = StdinFeed.needed?(data) || data.respond_to?(:to_io) ? { stdin: rest_of(data) } : { stdin: nil, input: data.to_s }
        start(own.merge(source)) { |argv, options| Procwright.run(*argv, **options) }
      end

      # Yields words and options of the command for `run` or `spawn`, with those that are the
      # method's own. A second time if the system cannot run the file: it goes to a shell then.
      def start(own)
        words, options = translated(own)
        begin
          yield words, options
        rescue Errno::ENOEXEC
          yield Call.for_a_shell(words), options
        end
      ensure
        close
      end

      # The words and options. The files that were opened for them are open until {close}.
      def translated(own)
        translate_options(own.keys)
        [[@env, *program], @options.merge(own)]
      end

      def close = @opened.each(&:close)

      # The words of a script without `#!`, which Ruby takes to a shell, as execvp(3) does.
      def self.for_a_shell(words) = [words.first, "/bin/sh", *words.drop(1).flatten]

      private

      # An IO is read here, and not by the command: bytes that Ruby has buffered are not in its
      # file any more.
      def rest_of(data) = data.respond_to?(:to_io) ? RestOfIO.new(data) : data

      # Takes `to_io` away from an IO.
      RestOfIO = Struct.new(:io) do
        def readpartial(*args) = io.readpartial(*args)
      end

      # The words of the command, as Process.spawn reads it: a single string that has something
      # for a shell in it goes to the shell.
      def program
        raise ArgumentError, "wrong number of arguments" if @cmd.empty?

        first, *rest = @cmd
        if first.is_a?(Array)
          # A list of all words is no command of Ruby's.
          raise ArgumentError, "wrong first argument" unless first.size == 2

          name, zero = first
          raise InvalidValue, "argv[0] cannot be another name than the program's: pass #{name.inspect}" unless name == zero

          return [name, *rest].map(&:to_str)
        end
        wrong = @cmd.find { |word| !word.respond_to?(:to_str) && !word.respond_to?(:to_path) }
        raise TypeError, "no implicit conversion of #{wrong.nil? ? 'nil' : wrong.class} into String" if @cmd.any? { |word| word.equal?(wrong) }

        words = @cmd.map { |word| Arguments.path("cmd", word) }
        return words.size > 1 ? words : [words] if words.size > 1

        line = words.first
        raise ArgumentError, "string contains null byte" if line.include?("\0")
        return ["/bin/sh", "-c", line] if Shell.line?(line)

        # An array, since {Procwright.run} refuses a single string with spaces.
        split = line.split(/[ \t\n]+/).reject(&:empty?)
        raise Errno::ENOENT, line if split.empty?

        [split]
      end

      # Puts the given options into `@options`, under the names that `run` and `spawn` have.
      def translate_options(taken)
        known = KNOWN.fetch(@kind)
        @given.each do |key, value|
          case key
          when :stdin_data, :binmode
            raise ArgumentError, "wrong exec option symbol: #{key}" unless @kind == :capture
          when :chdir then @options[:cwd] = value
          when :umask then @options[:umask] = value
          when :pgroup then @options[:process_group] = value || nil
          when :unsetenv_others then @options[:env] = set_variables if value
          when :close_others then nil # Only named descriptors are inherited.
          when /\Arlimit_/ then @options[:rlimits][key] = value
          when *known then @options[key] = value
          when Symbol, Integer, IO, Array then redirect(key, value, taken)
          else raise ArgumentError, "wrong exec option: #{key.inspect}"
          end
        end
      end

      def set_variables
        variables = @env.compact
        @env = {}
        variables
      end

      def redirect(key, value, taken)
        keys = key.is_a?(Array) ? key : [key]
        numbers = keys.map { |one| descriptor(one) or raise ArgumentError, "wrong exec option symbol: #{one}" }
        target = nil
        numbers.each do |number|
          name = STREAM_NAMES[number]
          # The method's own pipes win, as in the standard library.
          next if taken.include?(name)

          target ||= redirect_target(value, reads: number.zero? || number > 2)
          if name.nil? then @options[:fds][number] = target unless target == :closed
          else @options[name] = standard_stream(name, target, value)
          end
        end
      end

      def standard_stream(name, target, value)
        if target == :closed
          raise InvalidValue, "#{name} cannot be closed: a program whose first file gets its number " \
                              "would write into that. Pass File::NULL"
        end
        return target unless target.is_a?(Array)
        return :merged if name == :stderr && target == [:child, 1]

        raise InvalidValue, "#{name} => #{value.inspect}: only stderr can be sent to where stdout goes"
      end

      def descriptor(key)
        case key
        when Symbol then DESCRIPTORS[key]
        when Integer then key
        else key.to_io.fileno
        end
      end

      def redirect_target(value, reads:)
        case value
        when :close then :closed
        when Symbol, Integer
          descriptor(value) or raise ArgumentError, "wrong exec redirect action: #{value.inspect}"
        when String then open(value, reads ? "r" : "w")
        when Array
          return [:child, descriptor(value[1])] if value.first == :child

          open(*value)
        else
          return open(value.to_path, reads ? "r" : "w") if value.respond_to?(:to_path) && !value.respond_to?(:to_io)

          value.to_io
        end
      end

      def open(path, mode = "r", permissions = 0o644)
        File.open(path, mode, permissions).tap { |file| @opened << file }
      end
    end

    # The condition under which Ruby hands a single string to a shell (`rb_exec_fillarg`).
    # @private
    module Shell
      WORDS = %w[
        ! . : break case continue do done elif else esac eval exec exit export fi for if in readonly return
        set shift then times trap unset until while
      ].freeze
      SPECIAL = /[*?{}\[\]<>()~&|\\$;'`"\n#%]/

      def self.line?(line)
        return true if line.match?(SPECIAL)

        first = line.split(/[ \t]+/).reject(&:empty?).first
        return false if first.nil?

        # A variable is set, if it stands before the command.
        first.include?("=") || WORDS.include?(first)
      end
    end
  end
end
