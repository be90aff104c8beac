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
    Kept = Struct.new(:native, :command, :line) do
      # Warns of the program and has it stopped, if it runs. True if it is stopped.
      def forget
        # The program is stopped, whatever becomes of the warning.
        return false unless native.stop_in_background

        warn "#{line}: warning: nobody keeps the child #{command} (pid #{native.pid}), which still ran: it is " \
             "stopped. Keep the Child, or one of its streams, for as long as it is to run; use the block of spawn; " \
             "or spawn with detach: true what is to live on"
        true
      end
    end
    private_constant :Kept

    # By the number of the {Child}, all that were not forgotten.
    KEPT = {}
    private_constant :KEPT

    FORGET = ->(number) { KEPT.delete(number)&.forget }
    private_constant :FORGET

    module_function

    # Has `child` told of and stopped once nobody has it.
    def watch(child, native)
      @at_exit ||= at_exit { forget_all }
      KEPT[child.object_id] = Kept.new(native, child.command, line_of_caller)
      ObjectSpace.define_finalizer(child, FORGET)
    end

    # Leaves the program of `child` to itself from now on.
    def leave(child) = KEPT.delete(child.object_id)

    # At the end of Ruby nobody is left who could keep a child.
    def forget_all
      kept = KEPT.values
      KEPT.clear
      # What is stopped already is waited for.
      kept.select(&:forget).each { |one| one.native.stop(nil) }
    end

    # The line outside of this library that has called.
    def line_of_caller
      line = caller_locations.find { |one| !one.path.start_with?(__dir__) }
      line ? "#{line.path}:#{line.lineno}" : "procwright"
    end
  end
  private_constant :Keeper
end
