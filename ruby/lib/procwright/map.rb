# frozen_string_literal: true

module Procwright
  # Runs many commands, so many at a time, and gives what became of each: a {Map}, which is
  # Enumerable, or with a block an array of what the block has given.
  #
  #   Procwright.map(files.map { |file| ["gzip", file] }, parallel: 4) do |ended|
  #     warn ended.summary unless ended.success?
  #   end
  #
  # A command that fails, is stopped or cannot be started is an ordinary result. Each is run as
  # by {run}, with all that that promises.
  #
  # @param commands [#each] what to run: each an Array of words as {run} takes them, which may
  #   begin with variables to set, or a Hash of options of {run} with `argv:` among them, which
  #   come on top of the others. There may be no end of them, and they may block: they are asked
  #   for when there is a place for the next one, on a thread of the map. What they raise ends the
  #   map, and is raised where its results are taken
  # @param parallel [Integer] how many run at a time, 1 to 100000; nil for as many as there are processors
  # @param ordered [Boolean] give results in the order of the commands, and not as they end
  # @param ahead [Integer] how many results may wait to be taken before nothing more is started;
  #   nil for 100, or `parallel` if that is more
  # @param stop_after_failures [Integer] stop when so many have failed: nothing more is started,
  #   and what runs is stopped, with the failure as its {Ended#cause}. nil runs all
  # @param deadline [Numeric] seconds for all of it. Nothing is started after them, and what runs
  #   then is stopped, for the reason `:timeout`. `timeout` is that of each command
  # @param journal [String, Pathname, Journal] a file by which a later map knows what has been done
  # @param cancel [Cancel] ends the map from another thread, or from a signal handler
  # @param on_line [#call] gets each line of the captured streams while it comes, `:stdout` or
  #   `:stderr`, and the place of its command: lines are whole, and come one at a time, on a
  #   thread of the map. What it raises stops that command, and is its {Ended#error}
  # @param max_length [Integer, nil] the longest line, as of {run}; so too `too_long`
  # @param on_event [#call] gets an {Event} when there is something to tell; it is called as
  #   `on_line` is
  # @param options options of {run} for every command: `chdir:`, `env:`, `timeout:`, ...
  # @return [Map, Array]
  # @raise [InvalidValue, JournalError] before anything is started
  def self.map(commands, **options, &block)
    map = Map.new(commands, options)
    block ? map.map(&block) : map
  end

  # A map under way: {Enumerable} of {Ended}, which come as commands end, or in their order.
  # Commands are started from its making on, whether or not results are taken, as far as `ahead`
  # goes.
  #
  # The end of {each} is that of the map, however it comes (`break`, `first(3)`, an exception,
  # Ctrl-C): what runs is stopped, each by its `stop`, and then the call returns. Timeout.timeout,
  # Thread#raise, Thread#kill, Ctrl-C and a handler of Signal.trap act at once while a result is
  # waited for, and end the map as well; a second one ends the grace. A map that nobody has any
  # more is ended when the collector finds that out, or with the process; one of which nobody has
  # taken a result, and which is not over by then, is told of by a warning.
  class Map
    include Enumerable

    # Maps that may have to be ended with the process.
    OPEN = ObjectSpace::WeakMap.new
    private_constant :OPEN

    # @private
    def initialize(commands, given)
      options = Options.with_defaults("map", given, Options::MAP)
      rules = rules(options)
      common = options.slice(*Options::MAP_COMMAND.keys)
      @process = $$
      @line = Keeper.line_of_caller
      @turn = Mutex.new
      @come = []
      @cause = nil
      @input = Input.new(commands, common)
      begin
        @callbacks = Callbacks.new(options, @input.method(:encodings)) if options[:on_line] || options[:on_event]
        @input.start
        Options.telling_refusals([], options) do
          Native.map(self, rules.merge!(input: @input.native, callbacks: @callbacks&.native))
        end
        OPEN[self] = true
      ensure
        finish unless @native
      end
    end

    # Calls the block with each result, and ends the map.
    # @return [Map, Enumerator]
    def each
      return to_enum(:each) unless block_given?

      begin
        while (ended = take_next)
          yield ended
        end
      ensure
        close
      end
      self
    end

    # Waits for the next result.
    # @return [Ended]
    # @raise [StopIteration] when there is none any more
    # @raise [JournalError] if the journal cannot be written; and what the commands have raised
    def next
      take_next || raise(StopIteration, "the map is over")
    end

    # Starts nothing more, and stops what runs. Returns at once; results still come. A handler of
    # Signal.trap may call it.
    def stop
      @is_taken = true
      @native.stop if $$ == @process
      nil
    end

    # Stops what runs, and returns when it has ended. No more results come. In a callback, and
    # where the commands are asked for, it is {stop}: the end of the map waits for these.
    def close
      return if $$ != @process
      return stop if @input.current? || @callbacks&.current?

      begin
        @native.close
        # Another thread waits for a result, and gets it.
        @turn.synchronize { @native.close } unless @turn.owned? || @native.over?
      ensure
        finish if @native.over?
      end
      nil
    end

    # @return [Progress] how far it is
    def progress = Progress.new(**@native.progress)

    def inspect = "#<Procwright::Map#{' of another process' if $$ != @process}>"

    # Ends what the process leaves.
    # @private
    def self.finish_all
      OPEN.keys.each do |map|
        map.__send__(:tell_of_what_is_left)
        map.close
      end
      Native.finish_maps
    end

    private

    def take_next
      @is_taken = true
      @turn.synchronize do
        if @come.empty?
          Fibers.on_thread { CallbackThread.raising_errors_of([@input]) { @native.next(@come) } }
        end
        parts = @come.shift
        parts && ended(*parts)
      ensure
        finish if $$ == @process && @native.over?
      end
    end

    def ended(index, kind, parts, error, summary, caused_by)
      # It was taken before its turn.
      return @cause if @cause&.index == index

      cause = cause_of_others if caused_by && caused_by != index
      given = @input.take(index)
      error = @callbacks.cause(index, error) if @callbacks
      case kind
      when :ran then result = Result.new(parts, given.encodings)
      when :before, :unknown then before = past(*parts)
      end
      error = refusal(given, error) if error.is_a?(InvalidValue)
      ended = Ended.new(index, given.argv, result, error, before, summary, cause)
      @cause = ended if caused_by == index
      ended
    end

    def past(*known, status) = Past.new(*known, status && Status.new(nil, *status))

    # The failure for which others were stopped, which with `ordered` may come behind them.
    def cause_of_others
      unless @cause
        taken = []
        @native.take_cause(taken)
        taken.each { |parts| ended(*parts) }
      end
      @cause
    end

    # A refusal of the core, with the value that was given.
    def refusal(given, error)
      Options.telling_refusals(given.argv, given.options) { raise error }
    rescue InvalidValue => e
      e
    end

    # Warns at the end of the process of a map whose results nobody has asked for: it is no list of
    # things that have been done.
    def tell_of_what_is_left
      return if @is_taken || $$ != @process

      now = progress
      return if now.stopped_by || (now.all_taken && now.running.zero?)

      warn "#{@line}: warning: nobody has taken a result of this map, and it ends with the process: " \
           "#{now.taken - now.running} commands have run to their end, and #{now.running} that run are stopped. Go " \
           "through it with each, or a block, or call to_a"
    rescue StandardError
      # Such as a stderr that is a broken pipe: there is nobody to tell.
      nil
    end

    # Ends the threads. The map is over.
    def finish
      @input.finish
      @callbacks&.finish
    end

    def rules(options)
      most = "from 1 on, or nil"
      {
        parallel: whole("parallel", options[:parallel], 1..100_000, "pass how many may run at a time, #{most}"),
        ahead: whole("ahead", options[:ahead], 0..0x7fff_ffff, "pass how many results may wait, from 0 on, or nil"),
        stop_after_failures: whole("stop_after_failures", options[:stop_after_failures], 1..Arguments::MOST_BYTES, "pass a number #{most}"),
        ordered: options[:ordered] ? true : false,
        deadline: Arguments.seconds("deadline", options[:deadline]),
        journal: Journal.of(options[:journal])&.parts,
        cancel: Cancel.native_of(options[:cancel]),
        events: !Arguments.callable("on_event", options[:on_event]).nil?,
        lines: check_lines(options)
      }
    end

    def whole(name, value, range, hint) = value.nil? ? nil : Arguments.number(name, value, range, hint)

    def check_lines(options)
      OutputTap.check({ **Options::RUN, **options.slice(:on_line, :max_length, :too_long) })
      !options[:on_line].nil?
    end
  end

  at_exit { Map.finish_all }
end
