# frozen_string_literal: true

# Peer: Ruby with one loop of read_nonblock and IO.select.
require "open3"
require_relative "check"

def drain(streams)
  kept = streams.to_h { |io| [io, String.new(encoding: Encoding::BINARY)] }
  chunk = String.new(encoding: Encoding::BINARY)
  open = streams.dup
  until open.empty?
    readable, = IO.select(open)
    readable.each do |io|
      case io.read_nonblock(1 << 16, chunk, exception: false)
      when :wait_readable then next
      when nil then open.delete(io)
      else kept[io] << chunk
      end
    end
  end
  kept.values
end

measure do |argv|
  Open3.popen3(*argv) do |stdin, stdout, stderr, waiter|
    stdin.close
    kept = drain([stdout.binmode, stderr.binmode])
    abort "the child failed" unless waiter.value.success?
    kept
  end
end
