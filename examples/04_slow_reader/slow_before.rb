# Takes a quarter of a second a line, and so does the child, whatever it has to do.
require "open3"

ticker = File.join(__dir__, "ticker.py")
number = 0
Open3.popen3("python3", ticker, ARGV[0]) do |_stdin, stdout, _stderr, _thread|
  stdout.each_line do |line|
    raise "line #{number} is another" unless line.to_i == number

    number += 1
    sleep 0.25
  end
end
puts "#{number} lines; the child took #{File.read(ARGV[0])}"
