# frozen_string_literal: true

module Procwright
  # Where a scheduler (`Fiber.set_scheduler`) runs several fibers on one thread, a call that
  # waits leaves the thread to the others.
  #
  # What has a descriptor that becomes readable waits for it in the scheduler: reads, and the
  # end of a process. The rest is done on a thread of its own, for which only this fiber waits.
  # @private
  module Fibers
    # What a thread is called back with: whoever waited for it does not any more.
    class Withdrawn < StandardError; end

    module_function

    # Whether the running fiber must not block its thread.
    def scheduled? = !Fiber.current_scheduler.nil?

    # Waits in the scheduler; a false value if the time came first.
    def readable?(fd, timeout)
      # Which refuses it.
      return Native.wait([fd], 0, :exited, timeout) if timeout&.nan?

      timeout = timeout.infinite? ? nil : [timeout, 0.0].max if timeout
      Fiber.current_scheduler.io_wait(IO.for_fd(fd, autoclose: false), IO::READABLE, timeout)
    end

    # What the block gives. What is raised in this fiber meanwhile calls its thread back, as
    # Thread#raise does, and comes through when that has come to an end; a second time it
    # ends the grace.
    def aside(&work)
      return work.call unless scheduled?

      thread = Thread.new(&work)
      thread.report_on_exception = false
      begin
        thread.value
      ensure
        call_back(thread) while thread.alive?
      end
    end

    def call_back(thread)
      thread.raise(Withdrawn)
      thread.join
    rescue Exception # rubocop:disable Lint/RescueException
      # Of the thread, whose end it is; or of this fiber once more, who has become impatient.
    end
  end
end
