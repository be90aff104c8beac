# frozen_string_literal: true

module Procwright
  module Open3
    # One call of a `pipeline*` method: commands of which each writes into the next one.
    # @private
    class Chain
      # Options of `pipeline` that are of the whole.
      WHOLE = %i[timeout idle_timeout stop on_timeout cancel on_event].freeze

      # `reads` and `writes` say whether the caller has a stream from the last, and to the first.
      def initialize(cmds, kind, reads: false, writes: false)
        given = cmds.last.is_a?(Hash) ? cmds.last : {}
        cmds = cmds[..-2] if cmds.last.is_a?(Hash)
        raise ArgumentError, "no commands" if cmds.empty?

        @reads = reads
        @writes = writes
        @whole = kind == :stage ? given.slice(*WHOLE) : {}
        common = given.except(:in, :out, *@whole.keys)
        @calls = cmds.each_with_index.map do |cmd, place|
          Call.new(with_ends(cmd, given, is_first: place.zero?, is_last: place == cmds.size - 1), kind, common)
        end
      end

      # Runs all to their ends. All are started, or none.
      # @return [Array<Status>]
      def run
        stages = @calls.each_with_index.map { |call, place| call.translated(joined(place)) }
        whole = @whole.merge(stdin: stages.first.last[:stdin], stdout: stages.last.last[:stdout])
        stages.map! { |words, options| { argv: words, **options.except(:stdin, :stdout) } }
        begin
          Procwright.pipeline(*stages, **whole).stages.map(&:status)
        rescue Errno::ENOEXEC => e
          stages[e.stage] = { **stages[e.stage], argv: Call.for_a_shell(stages[e.stage][:argv]) }
          retry
        end
      ensure
        @calls.each(&:close)
      end

      # Starts all, and gives what the caller has of them; with a block that ends with them.
      def start
        children = spawn_all
        streams = [(children.first.stdin if @writes), (children.last.stdout if @reads)].compact
        ends = [*streams, children.map { |child| Waiter.new(child) }]
        return streams.empty? ? ends.first : ends unless block_given?

        begin
          yield(*ends)
        ensure
          streams.each(&:close)
          children.each(&:wait)
        end
      end

      private

      # The command with what is said of its ends: by the whole for the first and the last, and by
      # nobody where the next command is.
      def with_ends(cmd, given, is_first:, is_last:)
        cmd = Array.try_convert(cmd)&.dup || [cmd]
        own = cmd.last.is_a?(Hash) ? cmd.pop : {}
        { in: [is_first, @writes], out: [is_last, @reads] }.each do |name, (is_end, is_ours)|
          if is_end && is_ours && own.key?(name)
            raise ArgumentError, "#{name} of the #{is_first ? 'first' : 'last'} command is the stream that you are given: leave it out"
          end

          own = is_end && !is_ours ? { **given.slice(name), **own } : own.except(name)
        end
        [*cmd, own]
      end

      # What of a stage is joined to the others. Of `run` the core joins them.
      def joined(place)
        own = {}
        own[:stdin] = :null unless place.zero?
        own[:stdout] = :capture unless place == @calls.size - 1
        own
      end

      # Starts the last one first, and none if one cannot be started: one that reads is killed
      # before it can take the end of its pipe for the end of its input.
      def spawn_all
        last = @calls.size - 1
        pipes = Array.new(last) { SpawnError.during(:pipe) { PipeEnd.pair } }
        children = []
        last.downto(0) do |place|
          own = {}
          own[:stdin] = pipes[place - 1].first.io if place.positive?
          own[:stdin] = :pipe if place.zero? && @writes
          own[:stdout] = pipes[place].last.io if place < last
          own[:stdout] = :pipe if place == last && @reads
          children.unshift(@calls[place].start(own) { |words, options| Procwright.spawn(*words, **options) })
        end
        # Whoever has one of them keeps all.
        children.each { |child| child.instance_variable_set(:@joined, children) }
      rescue Exception
        children&.each { |child| child.stop("KILL") }
        raise
      ensure
        pipes&.flatten&.each(&:close)
        @calls.each(&:close)
      end
    end
  end
end
