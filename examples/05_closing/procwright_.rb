# The same with procwright: whoever else is blocked makes no difference to the close.
require "procwright"

others = 1000.times.map { IO.pipe }
threads = others.map { |reader, _| Thread.new { reader.read } }
child = Procwright.spawn("cat", stdin: :pipe)
blocked = Thread.new do
  child.stdout.read
rescue IOError => error
  puts "the reader was told: #{error.message}"
end
Thread.pass until (threads + [blocked]).all? { |thread| thread.status == "sleep" }
begun = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_microsecond)
child.stdout.close
took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_microsecond) - begun
blocked.join
puts format("with %d others blocked the close took %.0f microseconds", others.size, took)

# Nobody reads what it writes any more, and it learns that as well.
child.stdin.write("hello?\n")
child.stdin.close
puts "cat: #{Signal.signame(child.wait.termsig)}"
