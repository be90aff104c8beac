# frozen_string_literal: true

module Procwright
  # Calls `on_event` of a run, or of a child, on a thread of its own: deadlines hold whatever it does.
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

    # With a block, which gets what the hook raises, it goes on after that; else it ends.
    def initialize(hook, &failed)
      @hook = hook
      @failed = failed
      @handover = Native::EventHandover.new
      @thread = CallbackThread.new(ended: ->(error) { over(error) }) { call_back }
    end

    def error = @thread.error

    # Has it end once this descriptor is readable, and the hook returns.
    def close_with(number) = @handover.close_with(number)

    # Has it end when the hook returns.
    def close = @handover.close

    # Ends the thread, even where the hook still waits: the run is over.
    def finish
      @handover.close
      @thread.finish
    end

    private

    # Whatever ends the thread: the core does not wait for one that is gone.
    def over(error)
      @handover.close
      @failed&.call(error) if error
    end

    def call_back
      while (parts = @handover.take)
        returned = false
        begin
          CallbackThread.calling { @hook.call(parts) }
          returned = true
        rescue StandardError => e
          raise if @failed.nil?

          @failed.call(e)
        ensure
          @handover.answer(returned)
        end
      end
    end
  end
  private_constant :EventCaller
end
