# frozen_string_literal: true

module Procwright
  # Any process, ours or not. It means the same one for good: a number that another
  # process gets later is not taken for it.
  class Process
    include Waitable

    # Included by objects whose `process` {Process.new} takes, and whose `awaited` is a handle of it
    # that keeps no descriptor: a {Child}, which stands above.
    # @private
    module Owner; end

    # @param which [Integer, Process, Child, String] a number, an {id}, or an object that has a process
    # @return [Process]
    # @raise [NoSuchProcess]
    # @raise [InvalidValue]
    def self.new(which)
      case which
      when Process then which
      when Owner then which.process
      when String then of(Native::Handle.of_id(Arguments.text("process", which, PROCESS)))
      else of(Native::Handle.of_pid(number_of(which)))
      end
    end

    PROCESS = "pass its number, 1 or more, its id, or an object that has a process"
    private_constant :PROCESS

    def self.number_of(which)
      # The number of an IO.popen that is closed would be another's by now.
      Arguments.refuse_closed("process", which)
      pid = which.is_a?(Integer) || !which.respond_to?(:pid) ? which : which.pid
      return pid if pid.is_a?(Integer) && (1..0x7fff_ffff).cover?(pid)

      Arguments.refuse("process", which, PROCESS)
    end
    private_class_method :number_of

    # The process of a pidfd, which stays the caller's.
    # @param pidfd [IO, Integer]
    # @return [Process]
    def self.from_pidfd(pidfd) = of(Native::Handle.of_pidfd(Arguments.descriptor("pidfd", pidfd)))

    # @private
    def self.of(native)
      allocate.tap { |process| process.instance_variable_set(:@native, native) }
    end

    # @private
    attr_reader :native

    # @private
    alias awaited native

    # @return [Integer]
    def pid = @native.pid

    # @return [String] its number, and a mark that no later process of that number has
    def id = @native.id

    def alive? = @native.alive?

    # The way it ended, nil while it is alive. Reaps nothing.
    # @return [Status, nil]
    def status
      parts = @native.exit
      parts && Status.new(pid, *parts)
    end

    # Waits until it has ended. Never polls.
    # @param timeout [Numeric, nil] seconds
    # @return [Status]
    # @raise [WaitTimeout]
    def wait(timeout: nil)
      seconds = Arguments.seconds("timeout", timeout)
      raise WaitTimeout.new("process #{pid}", seconds, [self]) unless ends_within?(seconds)

      Fibers.on_thread { Native.linger([@native]) }
      status || Status.new(pid, :unknown, :not_told)
    end

    # Sends a signal: never to another process that has its number now.
    # @param signal [String, Symbol, Integer]
    # @raise [NoSuchProcess]
    # @raise [SystemFailure] Errno::EPERM
    def signal(signal)
      @native.signal(Arguments.signal("signal", signal))
      nil
    end

    # Sends SIGTERM.
    def terminate = signal("TERM")

    # Sends SIGKILL. It takes no other signal: {#signal} does.
    # @raise [InvalidValue] for one
    def kill(signal = (is_alone = true))
      Arguments.no_signal(signal) unless is_alone
      signal("KILL")
    end

    # Ends it as `stop` says, with its descendants by default.
    # @return [Array<Survivor>] the processes that could not be ended
    def stop(stop = Stop.new)
      parts = Stop.of(stop).parts
      Fibers.on_thread { @native.stop(parts) }.map { |one| Survivor.new(*one) }
    end

    # @return [String]
    def name = @native.name
    # @return [String]
    def exe = @native.exe
    # @return [Time]
    def start_time = Time.at(@native.start_time)
    # @return [Integer, nil] its pidfd, which stays this object's
    def pidfd = @native.pidfd

    def ==(other) = other.is_a?(Process) && @native.same?(other.native)
    alias eql? ==
    def hash = id.hash
    def inspect = "#<Procwright::Process #{pid}, #{alive? ? 'alive' : 'ended'}>"

    private

    # Under a Fiber scheduler only this fiber waits, and no thread is needed.
    def ends_within?(seconds)
      return Fibers.readable?(pidfd, seconds) if pidfd && Fibers.scheduled?

      Fibers.on_thread { Native.wait([@native], 0, :exited, seconds) }.any?
    end
  end
end
