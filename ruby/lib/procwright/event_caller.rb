# frozen_string_literal: true

module Procwright
  # Calls `on_event` of a run, on a thread of its own: deadlines hold whatever it does.
  # @private
  class EventCaller
    # Runs the block with `options[:events]` for the extension.
    def self.during(options, &block)
      return yield if options[:on_event].nil?

      caller = new(Options.event_hook(options[:on_event]))
      options[:events] = caller.handover
      begin
        CallbackThread.raising_errors_of([caller], &block)
      ensure
        caller.finish
      end
    end

    # What the core puts events into.
    attr_reader :handover

    def initialize(hook)
      @hook = hook
      @handover = Native::EventHandover.new
      @thread = CallbackThread.new { call_back }
    end

    def error = @thread.error

    # Ends the thread, even where the hook still waits: the run is over.
    def finish
      @handover.close
      @thread.finish
    end

    private

    def call_back
      while (parts = @handover.take)
        returned = false
        begin
          CallbackThread.calling { @hook.call(parts) }
          returned = true
        ensure
          @handover.answer(returned)
        end
      end
    end
  end
  private_constant :EventCaller
end
