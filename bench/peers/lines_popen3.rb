# frozen_string_literal: true

# `each_line` of popen3: `HOW CHILD COUNT WRITE`.
require_relative "popen3"

lines = size = 0
started = now
popen3(ARGV) do |stdin, stdout, _stderr, waiter|
  stdin.close
  stdout.each_line do |line|
    lines += 1
    size += line.bytesize
  end
  abort "the child failed" unless waiter.value.success?
end
puts JSON.generate(seconds: now - started, bytes: size, lines: lines)
