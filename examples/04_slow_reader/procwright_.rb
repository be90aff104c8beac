# The same with procwright: whoever waits for the end drains the pipe meanwhile.
require "procwright"

worker = File.join(__dir__, "worker.py")
Procwright::Open3.popen3("python3", worker, ARGV[0]) do |_stdin, stdout, _stderr, thread|
  puts "the worker exited with code #{thread.value.exitstatus}"
  puts "it wrote #{stdout.read.bytesize} bytes"
end
