# frozen_string_literal: true

# Runs the fibers of a thread on IO.select: the least that Ruby asks of a scheduler.
class Scheduler
  # What a fiber waits for, and until when.
  Waiting = Struct.new(:io, :events, :deadline)

  def initialize
    @waiting = {}
    @timeouts = {}
    @called = []
    @lock = Thread::Mutex.new
    @wake, @ring = IO.pipe
  end

  # Runs the block as the first fiber of a thread, and all that it starts, to their ends.
  def self.run(&block)
    Thread.new do
      Fiber.set_scheduler(new)
      Fiber.schedule(&block)
    end.join
  end

  def fiber(&block) = Fiber.new(blocking: false, &block).tap(&:resume)

  def io_wait(io, events, timeout) = wait(io, events, timeout)

  def kernel_sleep(seconds = nil)
    wait(nil, 0, seconds)
    true
  end

  def block(_blocker, timeout = nil) = wait(nil, 0, timeout)

  # From any thread.
  def unblock(_blocker, fiber)
    @lock.synchronize { @called << fiber }
    @ring.write_nonblock("!", exception: false)
  end

  def process_wait(pid, flags) = Thread.new { Process::Status.wait(pid, flags) }.value

  def timeout_after(seconds, error, message)
    mark = Object.new
    @timeouts[mark] = [now + seconds, Fiber.current, error, message]
    yield seconds
  ensure
    @timeouts.delete(mark)
  end

  def close
    turn until @waiting.empty? && @called.empty?
  ensure
    @wake.close
    @ring.close
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def wait(io, events, timeout)
    @waiting[Fiber.current] = Waiting.new(io, events, timeout && (now + timeout))
    Fiber.yield
  ensure
    @waiting.delete(Fiber.current)
  end

  def turn
    readers, writers = IO.select([@wake, *on(IO::READABLE)], on(IO::WRITABLE), nil, pause)
    @wake.read_nonblock(1000, exception: false) if readers&.include?(@wake)
    called = @lock.synchronize { @called.tap { @called = [] } }
    called.each { |fiber| go_on(fiber, true) if @waiting[fiber]&.events&.zero? }
    @waiting.to_a.each do |fiber, waiting|
      events = 0
      events |= IO::READABLE if readers&.include?(waiting.io)
      events |= IO::WRITABLE if writers&.include?(waiting.io)
      if events.nonzero?
        go_on(fiber, events)
      elsif waiting.deadline && waiting.deadline <= now
        go_on(fiber, false)
      end
    end
    expire
  end

  # Who has been resumed by another meanwhile waits no more, or for something else.
  def go_on(fiber, with) = (fiber.resume(with) if @waiting.key?(fiber))

  def expire
    @timeouts.to_a.each do |mark, (deadline, fiber, error, message)|
      next if deadline > now || !@timeouts.delete(mark)

      fiber.raise(error, message)
    end
  end

  def on(event) = @waiting.values.select { |one| one.events.anybits?(event) }.map(&:io)

  def pause
    ends = @waiting.values.filter_map(&:deadline) + @timeouts.values.map(&:first)
    ends.min && [ends.min - now, 0].max
  end
end
