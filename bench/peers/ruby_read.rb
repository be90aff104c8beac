# frozen_string_literal: true

# Peer: Ruby with two threads that read to the end.
require "open3"
require_relative "check"

measure do |argv|
  Open3.popen3(*argv) do |stdin, stdout, stderr, waiter|
    stdin.close
    threads = [stdout, stderr].map { |io| Thread.new { io.binmode.read } }
    kept = threads.map(&:value)
    abort "the child failed" unless waiter.value.success?
    kept
  end
end
