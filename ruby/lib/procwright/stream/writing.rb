# frozen_string_literal: true

module Procwright
  # Writing to a {Stream}.
  class Stream
    # Writes everything, and waits while there is no room. If an interrupt throws something,
    # a part may have been written.
    # @return [Integer] how many bytes
    # @raise [Errno::EPIPE] if no reader is left
    # @raise [Stalled] if the child cannot read because its own output is full and unread
    def write(*strings)
      check_writable
      strings.sum { |string| write_bytes(@encodings.encode(string.to_s)) }
    end

    # @return [self]
    def <<(object)
      write(object)
      self
    end

    def print(*objects)
      write(objects.join($,.to_s) + $\.to_s)
      nil
    end

    # Writes all lines in one write.
    def puts(*objects)
      write(objects.empty? ? "\n" : lines_of(objects, []).join)
      nil
    end

    def printf(format, *objects)
      write(format(format, *objects))
      nil
    end

    def putc(object)
      write(object.is_a?(Integer) ? (object & 0xff).chr : object.to_s[0])
      object
    end

    # Writes what there is room for. Does not wait.
    # @return [Integer, Symbol] with `exception: false`, `:wait_writable` if there is none now
    # @raise [IO::EAGAINWaitWritable]
    def write_nonblock(string, exception: true)
      check_writable
      @native.write_now(@encodings.encode(string.to_s)) ||
        (exception ? raise(IO::EAGAINWaitWritable, "write would block") : :wait_writable)
    end
    alias syswrite write

    # Does nothing: written bytes are in the pipe already.
    # @return [self]
    def flush
      raise_closed if closed?
      self
    end

    def fsync = 0
    def sync = true

    # Does nothing, as {#flush}.
    def sync=(value)
      value
    end

    private

    def write_bytes(bytes)
      return @native.write(bytes) unless Fibers.scheduled?

      # The writer may have to be told that there will be no room ({Stalled}), which no
      # descriptor tells: so the wait is not in the scheduler.
      done = @native.write_now(bytes) || 0
      Fibers.on_thread { @native.write(bytes.byteslice(done..)) } if done < bytes.bytesize
      bytes.bytesize
    end

    def lines_of(objects, lines)
      objects.each do |object|
        array = Array.try_convert(object)
        next lines_of(array, lines) if array

        line = object.to_s
        lines << line
        lines << NEWLINE unless line.end_with?(NEWLINE)
      end
      lines
    end
  end
end
