# Takes a quarter of a second a line. The child does not know and does not wait.
require "procwright"

ticker = File.join(__dir__, "ticker.py")
number = 0
Procwright::Open3.popen3("python3", ticker, ARGV[0]) do |_stdin, stdout, _stderr, _thread|
  stdout.each_line do |line|
    raise "line #{number} is another" unless line.to_i == number

    number += 1
    sleep 0.25
  end
end
puts "#{number} lines; the child took #{File.read(ARGV[0])}"
