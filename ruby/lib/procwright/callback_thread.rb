# frozen_string_literal: true

module Procwright
  # A thread on which a run calls back.
  # @private
  class CallbackThread
    # How long the end of a run waits for a thread that was killed. One that is in an `ensure`
    # which takes longer, or blocks interrupts, is left behind: deadlines hold whatever a
    # callback does.
    LONGEST_END = 0.1

    # @return [Exception, nil] the exception that the block has raised
    attr_reader :error

    # Calls back. A fork that the callback has made and returns in ends with that, as one in a
    # block of Thread.new: what comes next is its parent's, and would be taken from there.
    def self.calling
      process = $$
      done = yield
      end_in_fork_of(process)
      done
    end

    # Ends the thread in a fork of the process with that number.
    def self.end_in_fork_of(process) = (Thread.exit if $$ != process)

    # Starts it with the block. When that is over `ended` gets the {#error}.
    def initialize(ended: ->(_error) {})
      process = $$
      @thread = SpawnError.thread do
        done = false
        yield
        done = true
      rescue Exception => e # rubocop:disable Lint/RescueException
        if $$ != process
          # Nobody takes it in a fork.
          Thread.current.report_on_exception = true
          raise
        end
        @error = e
      ensure
        @error ||= ThreadError.new("the callback has ended its thread (Thread.exit, Thread#kill)") unless done || @over
        ended.call(@error) if $$ == process
      end
      @thread.report_on_exception = false
    end

    # True on this thread: for what is called by the callback.
    def current? = Thread.current == @thread

    # Ends the thread, even where its callback still waits: the run is over.
    def finish
      @over = true
      @thread.kill.join(LONGEST_END)
    end

    # Calls the block, which runs with these callbacks. What one of them raises has ended the
    # run: it is raised here, and what others have raised besides is told on stderr, as Ruby
    # does with exceptions that end a thread.
    def self.raising_errors_of(callbacks)
      yield
    rescue Error => e
      cause, *others = callbacks.filter_map(&:error)
      others.each { |other| warn("#{other.full_message(highlight: false)}(in a second callback of a run)") }
      raise cause || e
    end
  end
  private_constant :CallbackThread
end
