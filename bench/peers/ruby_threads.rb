# frozen_string_literal: true

# Peer: Ruby with two threads and read_nonblock.
require "io/wait"
require "open3"
require_relative "check"

def drain(io)
  kept = String.new(encoding: Encoding::BINARY)
  chunk = String.new(encoding: Encoding::BINARY)
  loop do
    case io.read_nonblock(1 << 20, chunk, exception: false)
    when :wait_readable then io.wait_readable
    when nil then return kept
    else kept << chunk
    end
  end
end

measure do |argv|
  Open3.popen3(*argv) do |stdin, stdout, stderr, waiter|
    stdin.close
    threads = [stdout, stderr].map { |io| Thread.new { drain(io.binmode) } }
    kept = threads.map(&:value)
    abort "the child failed" unless waiter.value.success?
    kept
  end
end
