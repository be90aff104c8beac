# frozen_string_literal: true

module Procwright
  # Calls that wait, under a Fiber scheduler (`Fiber.set_scheduler`), which runs several
  # fibers on one thread: they leave the thread to the other fibers.
  #
  # A wait for a descriptor (reads, the end of a process) is the scheduler's `io_wait`. Other
  # waits are done on a thread of their own, for which only the calling fiber waits.
  # @private
  module Fibers
    # Raised in a thread whose fiber does not wait for it any more.
    class Withdrawn < StandardError; end

    module_function

    # True if the running fiber must not block its thread.
    def scheduled? = !Fiber.current_scheduler.nil?

    # Waits in the scheduler; false or nil if the timeout came first.
    def readable?(fd, timeout)
      # The extension refuses NaN, and a scheduler may not.
      return Native.wait([fd], 0, :exited, timeout) if timeout&.nan?

      timeout = timeout.infinite? ? nil : [timeout, 0.0].max if timeout
      Fiber.current_scheduler.io_wait(IO.for_fd(fd, autoclose: false), IO::READABLE, timeout)
    end

    # The block's value, computed on a thread of its own under a scheduler.
    #
    # An exception that is raised in this fiber meanwhile is passed to the thread, as
    # Thread#raise does, and comes through when the thread has ended. A second one ends the
    # grace of a stop.
    def on_thread(&work)
      return work.call unless scheduled?

      thread = Thread.new(&work)
      thread.report_on_exception = false
      begin
        thread.value
      ensure
        withdraw_from(thread) while thread.alive?
      end
    end

    # The block's first value that is neither nil nor false; nil if the timeout came first. The
    # block must not wait: it is called whenever `awaited` says that there may be something.
    #
    # The wait in between, and nothing else, is done on another thread. *Rejected: to take messages and lines
    # there.* One that is taken for a fiber that has just given up waiting would be lost, or
    # would have to be kept for the next caller.
    def until_found(awaited, seconds)
      deadline = Deadline.new(seconds)
      loop do
        found = yield
        return found if found

        return if on_thread { Native.wait([awaited], 0, :exited, deadline.remaining) }.empty?
      end
    end

    def withdraw_from(thread)
      thread.raise(Withdrawn)
      thread.join
    rescue Exception # rubocop:disable Lint/RescueException
      # Raised by the thread, which ends with it; or in this fiber, for the second time.
    end
  end
end
