# Closes a stream that a thread is reading: fast here, and dearer with every
# other thread that is blocked anywhere, before Ruby 4.
others = 1000.times.map { IO.pipe }
threads = others.map { |reader, _| Thread.new { reader.read } }
reader, _writer = IO.pipe
blocked = Thread.new do
  reader.read
rescue IOError => error
  puts "the reader was told: #{error.message}"
end
Thread.pass until (threads + [blocked]).all? { |thread| thread.status == "sleep" }
begun = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_microsecond)
reader.close
took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_microsecond) - begun
blocked.join
puts format("with %d others blocked the close took %.0f microseconds", others.size, took)
