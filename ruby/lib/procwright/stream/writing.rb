# frozen_string_literal: true

module Procwright
  # Writing to a {Stream}.
  class Stream
    # Writes everything, and waits while there is no room. If an interrupt throws something,
    # a part may have been written.
    # @return [Integer] how many bytes
    # @raise [Errno::EPIPE] if no reader is left
    # @raise [Stalled] if the child cannot read because its own output is full and unread
    def write(*objects)
      check_writable
      objects.map { |object| encoded("#{object}") }.sum { |bytes| write_bytes(bytes) }
    end

    # @return [self]
    def <<(object)
      write(object)
      self
    end

    # @!method print(*objects)
    #   Without an argument, `$_`.
    #   @return [nil]

    # Writes all lines in one write.
    def puts(*objects)
      lines = objects.empty? ? [NEWLINE] : lines_of(objects, [], [].freeze)
      check_writable
      write_bytes(joined(lines))
      nil
    end

    def printf(*arguments)
      write(format(*arguments))
      nil
    end

    def putc(object)
      write(object.is_a?(String) ? object[0].to_s : (small_integer(object) & 0xff).chr)
      object
    end

    # Writes what there is room for, as it is: nothing is encoded. Does not wait, also
    # not for why the child reads no more: the error says what is known then.
    # @return [Integer, Symbol] with `exception: false`, `:wait_writable` if there is none now
    # @raise [IO::EAGAINWaitWritable]
    def write_nonblock(object, exception: true)
      true_or_false(exception)
      check_writable
      @native.write_now("#{object}") ||
        (exception ? raise(IO::EAGAINWaitWritable, "write would block") : :wait_writable)
    rescue Errno::EPIPE => e
      @child ? @child.other_side_gone(e, @patience, 0) : raise
    end

    # Writes it as it is: nothing is encoded.
    # @return [Integer]
    def syswrite(object)
      check_writable
      write_bytes("#{object}")
    end

    # Does nothing: written bytes are in the pipe already.
    # @return [self]
    def flush
      raise_closed if closed?
      self
    end

    def fsync = 0
    def fdatasync = 0
    def sync = @sync.nil? ? !@reads : @sync

    # What was written is in the pipe, whatever this says.
    def sync=(value)
      @sync = value ? true : false
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
    rescue Errno::EPIPE => e
      @child ? @child.other_side_gone(e, @patience, nil) : raise
    end

    # The half of {#print}, which the extension calls.
    def print_all(objects)
      check_writable
      pieces = objects.flat_map { |object| $,.nil? ? ["#{object}"] : [$,, "#{object}"] }
      pieces.shift unless $,.nil?
      pieces << $\ unless $\.nil?
      write_bytes(joined(pieces))
      nil
    end

    # The bytes of the pieces, which may be in different encodings.
    def joined(pieces)
      return encoded(pieces.first) if pieces.size == 1

      pieces.each_with_object(String.new) { |piece, all| all << encoded(piece).b }
    end

    # The bytes to write of a string: an IO whose encoding was set converts, and refuses what
    # that encoding has not.
    def encoded(string) = @encodings.convert(string)

    # The pieces of lines. `within` has the arrays that this one is in.
    def lines_of(objects, lines, within)
      objects.each do |object|
        array = Array.try_convert(object) unless String === object
        if array
          recursive = within.any? { |outer| outer.equal?(array) }
          lines_of(recursive ? ["[...]"] : array, lines, [*within, array])
          next
        end
        line = "#{object}"
        lines << line
        lines << NEWLINE unless ends_line?(line)
      end
      lines
    end

    # Encodings whose strings begin with a mark that says which of two they are of.
    WITHOUT_MARK = { Encoding::UTF_16 => Encoding::UTF_16BE, Encoding::UTF_32 => Encoding::UTF_32BE }.freeze
    private_constant :WITHOUT_MARK

    # True if its last character is a newline.
    def ends_line?(line)
      return line.getbyte(-1) == 10 if line.encoding.ascii_compatible?

      newline = NEWLINE.encode(WITHOUT_MARK.fetch(line.encoding, line.encoding)).b
      (line.bytesize % newline.bytesize).zero? && line.b.end_with?(newline)
    rescue EncodingError
      line.getbyte(-1) == 10
    end
  end
end
