# frozen_string_literal: true

# What the Ruby subjects share: the check and the one line of JSON.

BLOCK = 4096

def verify(data, size, first)
  abort "wrong length: #{data.bytesize}, not #{size}" if data.bytesize != size
  (0...(size / BLOCK)).each do |i|
    abort "wrong bytes" if data.unpack1("Q<", offset: i * BLOCK) != first + i
  end
end

# Times the block, which takes argv and returns both streams, on the workload of ARGV.
def measure
  child, streams, size = ARGV[0], Integer(ARGV[1]), Integer(ARGV[2])
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  out, err = yield [child, *ARGV[1..]]
  seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
  peak = Integer(File.read("/proc/self/status")[/^VmHWM:\s+(\d+)/, 1])
  verify(out, size, 0)
  verify(err, streams == 2 ? size : 0, 1 << 32)
  puts %({"seconds": #{seconds}, "peak_rss_kb": #{peak}, "bytes_out": #{out.bytesize}, "bytes_err": #{err.bytesize}})
end
