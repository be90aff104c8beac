#!/usr/bin/env -S ruby --disable-gems
# frozen_string_literal: true

# The child of the captures, in Ruby: `flood.rb 2 BYTES WRITE`, as floors/flood.c, with a
# block to stdout and one to stderr in turn.
size, write = ARGV[1..].map { |word| Integer(word) }
block = 4096
abort "one block a write" unless write == block

out = ("o" * block).b
err = ("e" * block).b
(size / block).times do |number|
  out[0, 8] = [number].pack("Q<")
  err[0, 8] = [number | 1 << 32].pack("Q<")
  $stdout.syswrite(out)
  $stderr.syswrite(err)
end
