# Peer: Ruby's IO#close. See src/streams/close.rs.
require 'json'

Thread.report_on_exception = false
hard = Process.getrlimit(:NOFILE)[1]
Process.setrlimit(:NOFILE, hard, hard)

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# A thread that blocks in a read, which is to fail by a close.
def blocked(read, begun)
  Thread.new do
    begun << 1
    begin
      read.readpartial(1)
      abort 'a byte came'
    rescue IOError => error
      abort "not the close: #{error}" if error.is_a?(EOFError)
    end
  end
end

def settle(begun, count)
  sleep 0.002 while begun.size < count
  sleep 0.02 + count / 20_000.0
end

def others(count, samples)
  begun = Queue.new
  one = lambda do
    read, write = IO.pipe
    [read, write, blocked(read, begun)]
  end
  all = Array.new(count) { one.call }
  settle(begun, count)
  closes = (0...samples).map do |sample|
    place = sample % 10 * (count / 10)
    read, write, thread = all[place]
    started = now
    read.close
    closed = now - started
    thread.join
    write.close
    all[place] = one.call
    sleep 0.002
    closed * 1e6
  end
  puts JSON.generate(close_us: closes, count: count)
  $stdout.flush
  exit! 0
end

def waiters(count, samples)
  closes, lasts = (0...samples).map do
    begun = Queue.new
    read, = pipe = IO.pipe
    threads = Array.new(count) { blocked(read, begun) }
    settle(begun, count)
    started = now
    read.close
    closed = now - started
    threads.each(&:join)
    last = now - started
    pipe[1].close
    [closed * 1e6, last * 1e6]
  end.transpose
  puts JSON.generate(close_us: closes, last_us: lasts, count: count)
end

def epipe(samples, argv)
  late = (0...samples).map do
    begun = Queue.new
    read, write = IO.pipe
    child = spawn(*argv, out: write)
    write.close
    abort 'no first line' unless read.readpartial(2) == "r\n"
    reader = blocked(read, begun)
    settle(begun, 1)
    closed = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    read.close
    reader.join
    Process.wait(child)
    abort 'the child failed' unless $?.success?
    (File.binread(argv[1]).unpack1('q') - closed) / 1e3
  end
  puts JSON.generate(epipe_us: late.map { |us| [us, 0.0].max }, count: samples)
end

which, first, *rest = ARGV
case which
when 'others' then others(first.to_i, rest[0].to_i)
when 'waiters' then waiters(first.to_i, rest[0].to_i)
when 'epipe' then epipe(first.to_i, rest)
else abort "no case #{which}"
end
