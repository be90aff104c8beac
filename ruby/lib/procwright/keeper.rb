# frozen_string_literal: true

module Procwright
  # What becomes of a child that nobody keeps. A {Child}, its streams and the ends of
  # its channel refer to each other, so that whoever has one of them keeps the child. Once Ruby has
  # collected them, a program that runs on has nobody who reads it or waits for it, and would be
  # killed by SIGPIPE at its next word, whatever it is about. It is warned of, and stopped as its
  # `stop` says.
  # @private
  module Keeper
    # A child that somebody has, without any object of Ruby's that would keep it.
    class Kept
      # @return [Native::Child, nil] nil before its start
      attr_reader :native

      def initialize(command, policy, line)
        @command = command
        @policy = policy
        @line = line
      end

      # Has the program stopped, if it runs. True if it is being stopped.
      def stop = !@native.nil? && @native.stop_in_background

      # Warns of the program, which is being stopped.
      def tell
        warn "#{@line}: warning: nobody keeps the child #{@command} (pid #{@native.pid}), which still " \
             "ran: it is stopped. Keep the Child, or one of its streams, for as long as it is to run; use the block " \
             "of spawn; or spawn with detach: true what is to live on"
      rescue StandardError
        # Such as a stderr that is a broken pipe: there is nobody to tell.
        nil
      end

      def ended? = !@native.alive?

      # Waits until the stop that is under way is over.
      def wait = @native.stop(nil)

      # Ends it without any grace.
      def kill
        scope = @policy.is_a?(Array) ? @policy.last : "tree"
        @native.process.stop(["KILL", 0.0, scope])
      rescue StandardError
        # Such as one that has ended.
        nil
      end
    end
    private_constant :Kept

    # A pipeline that somebody has.
    class KeptPipeline < Kept
      def tell
        warn "#{@line}: warning: nobody keeps the pipeline #{@command} (pids #{@native.pids.join(', ')}), which still " \
             "ran: it is stopped. Keep the PipelineChild, or one of its streams, for as long as it is to run; or " \
             "use the block of spawn_pipeline"
      rescue StandardError
        # As that of a child.
        nil
      end

      def ended? = !@native.alive?
      def wait = @native.stop(false)
      def kill = @native.begin_stop(true)
    end
    private_constant :KeptPipeline

    # By the number of the {Child}, all that were not forgotten.
    KEPT = {}
    private_constant :KEPT

    # Those that are being stopped: the threads that do it end with Ruby, which therefore waits.
    STOPPING = {}
    private_constant :STOPPING

    FORGET = ->(number) { forget(number) }
    private_constant :FORGET

    module_function

    # Has `child` told of and stopped once nobody has it. To be called before its start, so that an
    # exception from another thread leaves none behind.
    # @return [Kept] what is to have the native child in `@native`
    def watch(child, argv, policy) = watch_as(Kept, child, Shellwords.join(argv), policy)

    # As {watch}, for a pipeline.
    def watch_pipeline(child, command) = watch_as(KeptPipeline, child, command, nil)

    def watch_as(kind, child, command, policy)
      @at_exit ||= at_exit { stop_all }
      let_go_of_ended
      kept = kind.new(command, policy, line_of_caller)
      KEPT[child.object_id] = kept
      ObjectSpace.define_finalizer(child, FORGET)
      kept
    end

    # Leaves the program of `child` to itself from now on.
    def leave(child) = KEPT.delete(child.object_id)

    # Stops what nobody has any more, and tells of it.
    def forget(number)
      kept = KEPT.delete(number)
      let_go_of_ended
      return unless kept&.stop

      STOPPING[kept.object_id] = kept
      kept.tell
      # Nobody comes after this who could wait.
      kept.wait if @ends
    end

    # Forgets those that were stopped and have ended.
    def let_go_of_ended
      STOPPING.values.each { |kept| STOPPING.delete(kept.object_id) if kept.ended? }
    end

    # At the end of Ruby nobody is left who could keep a child.
    def stop_all
      @ends = true
      kept = KEPT.values
      KEPT.clear
      # All are stopped before any is told of, and told of before any is waited for.
      stopped = kept.select { |one| one.stop && STOPPING[one.object_id] = one }
      stopped.each(&:tell)
      ours.each(&:wait)
      is_over = true
    ensure
      # Who interrupts the end has waited for long enough.
      kill_all(kept) unless is_over
    end

    def kill_all(kept)
      kept.each { |one| STOPPING[one.object_id] = one if one.stop }
      ours.each(&:kill)
      ours.each(&:wait)
    end

    # Those that are being stopped, but in a fork those of its parent.
    def ours = STOPPING.values.select { |kept| kept.native.ours? }

    # The line outside of this library that has called.
    def line_of_caller
      line = caller_locations.find { |one| !one.path.start_with?(__dir__) }
      line ? "#{line.path}:#{line.lineno}" : "procwright"
    end
  end
  private_constant :Keeper
end
