# frozen_string_literal: true

module Procwright
  # Any process, ours or not. It means the same one for good: a number that another
  # process gets later is not taken for it.
  class Process
    # @param which [Integer, Process, Child, String] a number, an {id}, or what has a process
    # @return [Process]
    # @raise [NoSuchProcess]
    # @raise [InvalidValue]
    def self.new(which)
      case which
      when Process then which
      when Child then which.process
      when String then of(Native::Handle.of_id(which))
      when Integer then of(Native::Handle.of_pid(which))
      else
        raise InvalidValue, "#{which.inspect} is no process: pass its number" unless which.respond_to?(:pid)

        of(Native::Handle.of_pid(which.pid))
      end
    end

    # By a pidfd, which stays the caller's.
    # @param pidfd [IO, Integer]
    # @return [Process]
    def self.from_pidfd(pidfd) = of(Native::Handle.of_pidfd(Options.number("pidfd", pidfd)))

    # @private
    def self.of(native)
      allocate.tap { |process| process.instance_variable_set(:@native, native) }
    end

    # @private
    attr_reader :native

    # @return [Integer]
    def pid = @native.pid

    # @return [String] its number and what tells it from others of that number
    def id = @native.id

    def alive? = @native.alive?

    # How it ended, nil while it is alive. Reaps nothing.
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
      seconds = Options.seconds("timeout", timeout)
      raise WaitTimeout.new("process #{pid}", seconds, [self]) unless ends_within?(seconds)

      Fibers.aside { Native.linger([@native]) }
      status || Status.new(pid, :unknown, :not_told)
    end

    # Sends it a signal: never to another process that has its number now.
    # @param signal [String, Symbol, Integer]
    # @raise [NoSuchProcess]
    # @raise [SystemFailure] Errno::EPERM
    def signal(signal)
      @native.signal(Options.signal(signal))
      nil
    end

    # Asks it to end: SIGTERM.
    def terminate = signal("TERM")

    # Ends it: SIGKILL.
    def kill = signal("KILL")

    # Ends it as `stop` says, with its descendants by default.
    # @return [Array<Survivor>] who could not be ended
    def stop(stop = Stop.new)
      parts = Options.stop(stop).parts
      Fibers.aside { @native.stop(parts) }.map { |one| Survivor.new(*one) }
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

    # Under a scheduler of fibers only this fiber waits, and no thread is needed.
    def ends_within?(seconds)
      return Fibers.readable?(pidfd, seconds) if pidfd && Fibers.scheduled?

      Fibers.aside { Native.wait([@native], 0, :exited, seconds) }.any?
    end
  end
end
