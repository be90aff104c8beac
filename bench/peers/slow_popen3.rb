# frozen_string_literal: true

# A reader that takes its time: `HOW PAUSE_MS TICKER NOTE COUNT SIZE STEP_US`.
require_relative "popen3"

pause = Integer(ARGV.shift) / 1e3
lines = size = 0
popen3(ARGV) do |stdin, stdout, _stderr, waiter|
  stdin.close
  stdout.each_line do |line|
    abort "line #{lines} is another" unless line.start_with?(format("%010d", lines))
    lines += 1
    size += line.bytesize
    sleep pause
  end
  abort "the child failed" unless waiter.value.success?
end
# What floors/ticker.c has written down: its life, and that inside write.
life, held = File.binread(ARGV[1]).unpack("qq").map { |nanoseconds| nanoseconds / 1e9 }
puts JSON.generate(child_s: life, held_s: held, lines: lines, bytes: size)
