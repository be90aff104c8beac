# Reads one pipe to its end and then the other. Hangs for ever.
require "open3"

noisy = File.join(__dir__, "noisy.py")
Open3.popen3("python3", noisy) do |_stdin, stdout, stderr, _thread|
  out = stdout.read
  err = stderr.read
  puts "stdout #{out.bytesize} bytes, stderr #{err.bytesize} bytes"
end
