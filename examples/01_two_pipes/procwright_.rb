# The same with procwright: one name differs, and no order of reading hangs.
require "procwright"

noisy = File.join(__dir__, "noisy.py")
Procwright::Open3.popen3("python3", noisy) do |_stdin, stdout, stderr, _thread|
  out = stdout.read
  err = stderr.read
  puts "stdout #{out.bytesize} bytes, stderr #{err.bytesize} bytes"
end
