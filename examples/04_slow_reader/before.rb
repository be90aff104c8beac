# Only wants to know how the worker ended. Never does.
require "open3"

worker = File.join(__dir__, "worker.py")
Open3.popen3("python3", worker, ARGV[0]) do |_stdin, _stdout, _stderr, thread|
  puts "the worker exited with code #{thread.value.exitstatus}"
end
