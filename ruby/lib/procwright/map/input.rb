# frozen_string_literal: true

module Procwright
  class Map
    # The commands of a map, which a thread takes from what the caller gave, when there is a place
    # for the next one.
    # @private
    class Input
      COMMANDS = "pass what has each, such as an Array, of commands: each an Array of words, or a Hash of " \
                 "options with argv among them"

      # A command that has no result yet.
      Given = Struct.new(:argv, :options, :encodings)

      # What the core asks.
      attr_reader :native

      # `common` are the options of every command.
      def initialize(commands, common)
        known = commands.respond_to?(:each) && !commands.is_a?(Hash) && !commands.is_a?(Struct)
        Arguments.refuse("commands", commands, COMMANDS) unless known
        Arguments.refuse_closed("commands", commands)
        @commands = commands
        @common = common
        @given = {}
        @next = 0
        # Found before anything runs, and not with the first command.
        Options.shell_program(common[:shell])
        translated("map", ["true"], common)
        @native = Native::MapInput.new
      end

      def start
        @thread = CallbackThread.new(ended: ->(error) { @native.end(error.nil?) }) { give_all }
      end

      # @return [Exception, nil] the exception that the commands have raised
      def error = @thread&.error

      # The command with this place, which has ended.
      def take(index) = @given.delete(index)

      # How the output of the command with this place is decoded.
      def encodings(index) = @given.fetch(index).encodings

      # True where the commands are asked for.
      def current? = @thread&.current? || false

      # Ends the thread, even where the commands still wait: the map is over.
      def finish
        @native.close
        @thread&.finish
      end

      private

      def give_all
        process = $$
        return unless @native.asked?

        @commands.each do |command|
          CallbackThread.end_in_fork_of(process)
          give(command)
          return unless @native.asked?
        end
      end

      def give(command)
        words, own = Options.words_and_own("a command", command, COMMANDS)
        argv, options = Options.parse("a command of map", words, { **@common, **own }, Options::MAP_COMMAND)
        setup, encodings = translated("a command of map", argv, options)
        @given[@next] = Given.new(argv, options, encodings)
        @next += 1
        @native.give(setup)
      end

      # The form for the extension, and the encodings.
      def translated(caller, argv, options)
        if StdinFeed.needed?(options[:stdin])
          raise InvalidValue, "stdin is #{Arguments.shown(options[:stdin])}, and #{caller} is not fed by a thread: " \
                              "pass input:, a Pathname or an IO"
        end
        options = Options::RUN.merge(options)
        encodings = Options.encodings(options)
        [Options.setup(argv, options).merge!(Run.setup(options, encodings)), encodings]
      end
    end
    private_constant :Input
  end
end
