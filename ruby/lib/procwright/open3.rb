# frozen_string_literal: true

module Procwright
  # The standard library's Open3 without its deadlocks, in whatever order the streams are
  # read, and with limits for time and memory.
  # The methods have its signatures, options and results:
  #
  #   Open3 = Procwright::Open3
  #
  # Differences, and why, are in docs/guide/ruby.md. The streams are {Stream}s, the status is
  # a {Status}, and besides the options of Process.spawn there are those of {Procwright.run}
  # that it does not know: `timeout`, `idle_timeout`, `stop`, `until`, `limit`, `cancel` for
  # `capture*`, `overflow` and `stall_after` for `popen*`.
  module Open3
    module_function

    # Starts a command with pipes for all three.
    #
    #   Open3.popen3([env,] cmd... [, opts]) { |stdin, stdout, stderr, wait_thr| ... }
    #
    # @return [Array(Stream, Stream, Stream, Waiter), Object] with a block what that gives
    def popen3(*cmd, &block)
      Call.new(cmd, :popen).popen({ stdin: :pipe, stdout: :pipe, stderr: :pipe }, %i[stdin stdout stderr], &block)
    end

    # Starts a command with pipes for stdin and stdout.
    # @return [Array(Stream, Stream, Waiter), Object]
    def popen2(*cmd, &block)
      Call.new(cmd, :popen).popen({ stdin: :pipe, stdout: :pipe }, %i[stdin stdout], &block)
    end

    # Starts a command with a pipe for stdin, and one for stdout and stderr together.
    # @return [Array(Stream, Stream, Waiter), Object]
    def popen2e(*cmd, &block)
      Call.new(cmd, :popen).popen({ stdin: :pipe, stdout: :pipe, stderr: :merged }, %i[stdin stdout], &block)
    end

    # Runs a command and gives both of its outputs.
    #
    #   stdout, stderr, status = Open3.capture3([env,] cmd... [, opts])
    #
    # @return [Array(String, String, Status)]
    # @raise [TimeoutExpired] with `timeout:`; the result has what came until then
    def capture3(*cmd)
      result = Call.new(cmd, :capture).capture({ stdout: :capture, stderr: :capture })
      [result.stdout, result.stderr, result.status]
    end

    # Runs a command and gives what it writes to stdout.
    # @return [Array(String, Status)]
    def capture2(*cmd)
      result = Call.new(cmd, :capture).capture({ stdout: :capture })
      [result.stdout, result.status]
    end

    # Runs a command and gives what it writes to stdout and stderr, in its order.
    # @return [Array(String, Status)]
    def capture2e(*cmd)
      result = Call.new(cmd, :capture).capture({ stdout: :capture, stderr: :merged })
      [result.stdout, result.status]
    end

    # A stand-in for the thread that waits for the child: no thread exists, but this object
    # answers as one does. It has ended when the child has.
    class Waiter
      # @return [Child]
      attr_reader :child

      # @private
      def initialize(child)
        @child = child
      end

      # @return [Integer]
      def pid = @child.pid

      # Waits for the child.
      # @return [Status]
      # @raise [Stalled] if it cannot go on because its output is full and unread
      def value = @child.wait

      # @param limit [Numeric, nil] seconds
      # @return [self, nil] nil if the time came first
      def join(limit = nil)
        @child.wait(timeout: Arguments.seconds("limit", limit))
        self
      rescue WaitTimeout
        nil
      end

      def alive? = @child.alive?
      # @return [String, false] as Thread#status
      def status = alive? ? "sleep" : false
      def stop? = true
      # @return [Integer, nil] the pid for `:pid`
      def [](key) = key.to_sym == :pid ? pid : nil
      def inspect = "#<Procwright::Open3::Waiter #{@child.inspect}>"
    end

    # One call: its arguments, translated to those of `run` and `spawn`.
    # @private
    class Call
      POPEN = %i[overflow stall_after stop on_event].freeze
      CAPTURE = %i[timeout idle_timeout stop until limit keep_full on_timeout cancel on_event].freeze
      DESCRIPTORS = { in: 0, out: 1, err: 2 }.freeze
      STREAM_NAMES = { 0 => :stdin, 1 => :stdout, 2 => :stderr }.freeze

      def initialize(cmd, kind)
        @given = cmd.last.is_a?(Hash) && cmd.size > 1 ? cmd.pop : {}
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

      private

      # An IO is read here, and not by the command: bytes that Ruby has buffered are not in its
      # file any more.
      def rest_of(data) = data.respond_to?(:to_io) ? RestOfIO.new(data) : data

      # Takes `to_io` away from an IO.
      RestOfIO = Struct.new(:io) do
        def readpartial(*args) = io.readpartial(*args)
      end

      def start(own)
        translate_options(own.keys)
        argv = program
        options = @options.merge(own)
        begin
          yield [@env, *argv], options
        rescue Errno::ENOEXEC
          # A script without `#!`: Ruby takes it to a shell, as execvp(3) does.
          yield [@env, "/bin/sh", *argv.flatten], options
        end
      ensure
        @opened.each(&:close)
      end

      # The words of the command, as Process.spawn reads it: a single string that has something
      # for a shell in it goes to the shell.
      def program
        raise ArgumentError, "wrong number of arguments" if @cmd.empty?

        first, *rest = @cmd
        if first.is_a?(Array)
          name, zero = first
          raise NotImplementedError, "argv[0] cannot be another name than the program's: pass #{name.inspect}" unless name == zero

          return [name, *rest].map(&:to_str)
        end
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
        known = @kind == :popen ? POPEN : CAPTURE
        @given.each do |key, value|
          case key
          when :stdin_data, :binmode
            raise ArgumentError, "wrong exec option symbol: #{key}" if @kind == :popen
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
          raise NotImplementedError, "#{name} cannot be closed: a program whose first file gets its number " \
                                     "would write into that. Pass File::NULL"
        end
        return target unless target.is_a?(Array)
        return :merged if name == :stderr && target == [:child, 1]

        raise NotImplementedError, "#{name} => #{value.inspect}: only stderr can be sent to where stdout goes"
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
