# frozen_string_literal: true

module Procwright
  # Who has ended, in that order, and who has not.
  Waited = Struct.new(:done, :pending) do
    # Whether nobody is left.
    def all? = pending.empty?
  end

  # Waits until any of them, all, or so many have ended. Never polls, whatever their
  # number. Other threads go on, and interrupts act at once.
  #
  #   done, pending = *Procwright.wait([server, worker], timeout: 5)
  #
  # @param things [Array<Process, Child, Integer, LivenessMonitor, Stream, Queue::Receiver,
  #   Cancel, IO>] processes, or their numbers; monitors; and what becomes readable: a {Stream}
  #   or a {Queue::Receiver} (something to read, its end, or that it was closed), a {Cancel}, an IO
  # @param mode [Symbol, Integer] `:any` (and whoever has ended by then), `:all`, or how many
  # @param event [Symbol] `:exited`, or `:reaped`: somebody has collected their status
  # @param timeout [Numeric, nil] seconds. When they are over, the result has who has ended
  # @return [Waited]
  # @raise [NoSuchProcess] for a number that nobody has
  # @raise [InvalidValue]
  def self.wait(things, mode: :any, event: :exited, timeout: nil)
    things = [things].flatten(1).uniq
    want = case mode
           when :any then 0
           when :all then -1
           when Integer then mode
           end
    raise InvalidValue, "mode is #{mode.inspect}: use :any, :all or a number" if want.nil? || mode.is_a?(Integer) && mode <= 0

    items = things.map { |thing| Wait.native(thing) }
    seconds = Options.seconds("timeout", timeout)
    done = Fibers.aside do
      Native.wait(items, want, event, seconds).tap do |done|
        handles = done.filter_map { |place| Wait.handle(things[place]) }
        Native.linger(handles) unless handles.empty?
      end
    end
    Waited.new(done.map { |place| things[place] }, things - things.values_at(*done))
  end

  # @private
  module Wait
    module_function

    def native(thing)
      case thing
      when Integer then Process.new(thing).native
      when Process, Child then handle(thing)
      when LivenessMonitor, Queue::Receiver then thing.native
      else
        return always.fileno if thing.is_a?(Stream) && thing.holds?
        return thing.readiness_fd if thing.respond_to?(:readiness_fd)

        Options.number_of(thing) or
          raise InvalidValue, "#{thing.inspect} cannot be waited for: pass a process, or what becomes readable"
      end
    end

    # What is readable, and stays so: a pipe whose other end is closed.
    def always
      @always ||= IO.pipe.then do |reader, writer|
        writer.close
        reader
      end
    end

    def handle(thing)
      case thing
      when Process then thing.native
      when Child then thing.process.native
      end
    end
  end
end
