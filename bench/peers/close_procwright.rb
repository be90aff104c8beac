# frozen_string_literal: true

# Ours from Ruby: `close` of one stream of many. `OVERFLOW READERS SAMPLES`, see
# src/ruby/close.rs.
require "json"
require "procwright"

Thread.report_on_exception = false
hard = Process.getrlimit(:NOFILE)[1]
Process.setrlimit(:NOFILE, hard, hard)

# Of these the readers that are not closed have their streams: two each.
CHILDREN = 100
OVERFLOW = ARGV[0].to_sym

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# Whatever becomes of us, none of them is left.
def quiet = Procwright.spawn("sleep", "1000", overflow: OVERFLOW, die_with_parent: true)

# A thread that blocks in a read, which is to fail by a close.
def blocked(stream, begun)
  Thread.new do
    begun << 1
    begin
      stream.readpartial(1)
      abort "a byte came"
    rescue Procwright::StreamClosed
      nil
    end
  end
end

# One that is closed: its child, its stream and its reader.
def target(begun)
  child = quiet
  child.stderr.close
  [child, child.stdout, blocked(child.stdout, begun)]
end

def settle(begun, count)
  sleep 0.002 while begun.size < count
  sleep 0.02 + count / 20_000.0
end

count, samples = ARGV[1..].map { |word| Integer(word) }
begun = Queue.new
targets = Array.new(10) { target(begun) }
others = Array.new([(count - 10) / 2, CHILDREN].min) { quiet }
streams = others.flat_map { |child| [child.stdout, child.stderr] }
(count - 10).times { |number| blocked(streams[number % streams.size], begun) }
settle(begun, count)
closes = (0...samples).map do |sample|
  child, stream, thread = targets[sample % 10]
  started = now
  stream.close
  closed = now - started
  thread.join
  child.kill
  targets[sample % 10] = target(begun)
  sleep 0.002
  closed * 1e6
end
puts JSON.generate(close_us: closes, count: count)
$stdout.flush
(others + targets.map(&:first)).each(&:kill)
exit! 0
