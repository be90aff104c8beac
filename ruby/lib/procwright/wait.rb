# frozen_string_literal: true

module Procwright
  # The result of a wait: what has ended, in the order in which that was learned, and what
  # has not.
  Waited = Struct.new(:done, :pending) do
    # True if nothing is left to wait for.
    def all? = pending.empty?

    # Both, so that `done, pending = Procwright.wait(things)` takes it apart as it does what
    # IO.select gives.
    def to_ary = to_a
  end

  # Waits until all of them have ended, or any, or so many. Never polls, whatever their
  # number. Other threads go on, and interrupts act at once.
  #
  #   done, pending = Procwright.wait([server, worker], timeout: 5)
  #
  # @param things [Array<Process, Child, Integer, LivenessMonitor, Stream, Queue::Receiver,
  #   Cancel, IO>] processes, or their numbers; monitors; and what becomes readable: a {Stream}
  #   or a {Queue::Receiver} (something to read, its end, or that it was closed), a {Cancel}, an IO
  # @param mode [Symbol, Integer] `:all`, `:any` (one, and whatever has ended by
  #   then), or how many
  # @param event [Symbol] `:exited`, or `:reaped`: their status was collected
  # @param timeout [Numeric, nil] seconds. When they are over, the result has what has ended
  # @return [Waited]
  # @raise [NoSuchProcess] for a number that no process has
  # @raise [InvalidValue]
  def self.wait(things, mode: :all, event: :exited, timeout: nil)
    things = [things].flatten(1).uniq
    want = case mode
           when :any then 0
           when :all then -1
           when Integer then mode
           end
    Arguments.refuse("mode", mode, "use :any, :all or how many, 1 or more") if want.nil? || (mode.is_a?(Integer) && mode <= 0)
    want = [want, 2**31].min
    Arguments.word("event", event, %i[exited reaped])

    items = things.map { |thing| Wait.awaited(thing) }
    seconds = Arguments.seconds("timeout", timeout)
    done = Fibers.on_thread do
      Native.wait(items, want, event, seconds).tap do |done|
        handles = done.filter_map { |place| items[place] unless things[place].is_a?(Integer) }.grep(Native::Handle)
        Native.linger(handles) unless handles.empty?
      end
    end
    Waited.new(done.map { |place| things[place] }, things - things.values_at(*done))
  end

  # @private
  module Wait
    module_function

    # An object of the extension, or a descriptor.
    def awaited(thing)
      case thing
      when Integer then Process.new(thing).native
      when Waitable then thing.awaited
      else
        return thing.readiness_fd if thing.respond_to?(:readiness_fd)

        Arguments.descriptor_of("a member of things", thing) or
          Arguments.refuse("a member of things", thing, "pass a process, or what becomes readable")
      end
    end

    # A descriptor that is readable, and stays so: a pipe whose other end is closed.
    def always_readable
      @always_readable ||= IO.pipe.then do |reader, writer|
        writer.close
        reader
      end
      @always_readable.fileno
    end
  end
end
