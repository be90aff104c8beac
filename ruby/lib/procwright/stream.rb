# frozen_string_literal: true

module Procwright
  # A stream of a child: `child.stdin` to write to, `child.stdout` and `child.stderr` to
  # read from. It answers as an IO does, with these differences:
  #
  # - Nobody who reads or writes it is in the way of others. {#close} may be called from
  #   any thread, returns at once, and ends exactly the calls on this stream, with an
  #   IOError in the call itself.
  # - A child does not wait for its reader before memory and disk are used up
  #   ({Overflow}), so what is read here comes out of a queue. Only with
  #   `overflow: :block` this is the bare pipe, and only then there are {#to_io} and
  #   {#fileno}. To wait for several there is {Procwright.wait}.
  # - What is written goes into the pipe before the call returns: there is nothing to flush.
  class Stream
    include Enumerable

    # @private
    def initialize(native, text, is_pipe: false, tell: nil)
      @native = native
      @text = text
      @tell = tell
      @reads = native.is_a?(Native::Reader)
      @frames = {}
      @lineno = 0
      lend_pipe if is_pipe
    end

    # @return [Integer] how many lines {#gets} has given
    attr_accessor :lineno

    # The next line with its end, nil at the end of the stream. As IO#gets.
    # @overload gets(separator = $/, limit = nil, chomp: false)
    # @return [String, nil]
    # @raise [IOError] if it is closed, before or meanwhile
    def gets(*args, chomp: false)
      args.empty? ? line($/, nil, chomp) : line(*separator_and_limit(args), chomp)
    end

    # As {#gets}.
    # @raise [EOFError] at the end
    def readline(*args, chomp: false)
      gets(*args, chomp: chomp) || raise(EOFError, "end of file reached")
    end

    # @yieldparam line [String]
    def each_line(*args, chomp: false, &block)
      return to_enum(:each_line, *args, chomp: chomp) unless block_given?

      separator, limit = separator_and_limit(args)
      raise ArgumentError, "invalid limit: 0 for each_line" if limit&.zero?

      plain_lines(separator, chomp, &block) if @tell.nil? && plain?(separator, limit)
      while (line = line(separator, limit, chomp))
        yield line
      end
      self
    end
    alias each each_line

    # @return [Array<String>]
    def readlines(*args, chomp: false) = each_line(*args, chomp: chomp).to_a

    # Without a length all up to the end, with one so many bytes, or fewer at the end. If
    # an interrupt throws something, what was read so far is read again.
    # @return [String, nil] nil at the end, if a length was given
    def read(length = nil, buffer = nil)
      reading
      raise ArgumentError, "negative length #{length} given" if length&.negative?

      string = @native.read(length)
      if length.nil?
        string = @text.mark(string)
      elsif string.empty? && length.positive?
        buffer&.clear
        return
      end
      into(buffer, string)
    end

    # What is there, at most `most` bytes; waits only for the first.
    # @return [String]
    # @raise [EOFError] at the end
    def readpartial(most, buffer = nil)
      part = some(most, buffer, true)
      part.nil? ? raise(EOFError, "end of file reached") : part
    end
    alias sysread readpartial

    # What is there, at most `most` bytes. Does not wait.
    # @return [String, Symbol, nil] with `exception: false`, `:wait_readable` if there is
    #   nothing now, and nil at the end
    # @raise [IO::EAGAINWaitReadable, EOFError]
    def read_nonblock(most, buffer = nil, exception: true)
      part = some(most, buffer, false)
      case part
      when false
        exception ? raise(IO::EAGAINWaitReadable, "read would block") : :wait_readable
      when nil
        exception ? raise(EOFError, "end of file reached") : nil
      else part
      end
    end

    # Whether there is nothing more to read. Waits until that is known.
    def eof?
      reading
      @native.eof?
    end
    alias eof eof?

    # @return [Integer, nil]
    def getbyte
      reading
      @native.read(1).getbyte(0)
    end

    # @raise [EOFError]
    def readbyte = getbyte || raise(EOFError, "end of file reached")

    def each_byte
      return to_enum(:each_byte) unless block_given?

      while (byte = getbyte)
        yield byte
      end
      self
    end

    # The next character.
    # @return [String, nil]
    def getc
      reading
      bytes = @native.read(1)
      return if bytes.empty?

      whole(bytes.force_encoding(@text.source)) { @native.read(1) }
      @text.mark(bytes)
    end

    # @raise [EOFError]
    def readchar = getc || raise(EOFError, "end of file reached")

    def each_char
      return to_enum(:each_char) unless block_given?

      while (char = getc)
        yield char
      end
      self
    end

    # Puts bytes back, so that they are the next that are read.
    def ungetbyte(bytes)
      reading
      bytes = (bytes & 0xff).chr if bytes.is_a?(Integer)
      @native.put_back(bytes) unless bytes.nil?
      nil
    end

    # Puts a character or a string back.
    def ungetc(string)
      return ungetbyte(string) if string.nil?

      string = string.chr(@text.target || @text.source) if string.is_a?(Integer)
      ungetbyte(@text.target ? string.encode(@text.source) : string)
    end

    # Writes all of it, and waits while there is no room. If an interrupt throws something,
    # a part may have been written.
    # @return [Integer] how many bytes
    # @raise [Errno::EPIPE] if nobody reads it any more
    # @raise [Stalled] if the child cannot read because nobody reads what it writes
    def write(*strings)
      writing
      strings.sum { |string| put(@text.bytes(string.to_s)) }
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

    # In one write.
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
      writing
      @native.write_now(@text.bytes(string.to_s)) ||
        (exception ? raise(IO::EAGAINWaitWritable, "write would block") : :wait_writable)
    end
    alias syswrite write

    # Nothing: what was written is in the pipe.
    # @return [self]
    def flush
      raise_closed if closed?
      self
    end

    def fsync = 0
    def sync = true

    # Nothing, as {#flush}.
    def sync=(value)
      value
    end

    # Closes it, from any thread. Returns at once. Who is blocked in a call on this very
    # stream gets an IOError in that call, and who waits for it in {Procwright.wait} goes
    # on. Of a stream that is written to, the child comes to the end of its input; of one
    # that is read from, it gets SIGPIPE when it writes.
    # @return [nil]
    def close
      @native.close
      nil
    end

    def closed? = @native.closed?

    # @raise [IOError] if it is one to write to
    def close_read
      return close if @reads || closed?

      raise IOError, "closing non-duplex IO for reading"
    end

    # @raise [IOError] if it is one to read from
    def close_write
      return close if !@reads || closed?

      raise IOError, "closing non-duplex IO for writing"
    end

    # Waits until a read would find something, or the end.
    # @param timeout [Numeric, nil] seconds
    # @return [self, nil] nil if the time came first
    def wait_readable(timeout = nil)
      reading
      wait_ready(timeout)
    end

    # Waits until there is room to write, or nobody reads any more.
    # @param timeout [Numeric, nil] seconds
    # @return [self, nil] nil if the time came first
    def wait_writable(timeout = nil)
      writing
      wait_ready(timeout)
    end

    # @return [Integer] a descriptor that is readable once there is something to read (or
    #   room to write), at the end, and once the stream is closed. It stays this object's,
    #   and must not be read from. Of what {#gets} has left here it says nothing
    def readiness_fd = @native.readiness_fd

    # Whether something is here already, which {#readiness_fd} does not tell.
    # @private
    def holds? = @reads && !closed? && @native.holds?

    # @return [self]
    def binmode
      @text = Text::BINARY
      self
    end

    def binmode? = @text.binary?

    # As IO#set_encoding, but for options.
    # @return [self]
    def set_encoding(external, internal = nil, **)
      @text = @text.with(external, internal)
      self
    end

    # @return [Encoding, nil]
    def external_encoding = @text.external || (Encoding.default_external if @reads)
    # @return [Encoding, nil]
    def internal_encoding = @text.target

    # @return [Integer] where in all that the child wrote the next byte stands
    def position
      reading
      @native.position
    end

    # @return [Array<Array(Integer, Integer)>] offset and length of each gap that was met:
    #   bytes that were dropped because nobody read them, under `:drop_oldest` and
    #   `:drop_newest`
    def gaps
      reading
      @native.gaps
    end

    # @return [Hash] how many bytes wait in memory and on disk, how many were dropped, and
    #   for how many seconds the child was blocked
    def figures
      reading
      @native.figures
    end

    def tty? = false
    alias isatty tty?
    def pid = nil

    # As errors call it: `stdout of make test`.
    def label = @native.label

    def inspect = "#<Procwright::Stream #{label}#{' (closed)' if closed?}>"

    # @private
    attr_reader :text

    # @private
    def native_if_open = closed? ? nil : @native

    # The next line without its end, if it is there; false if not, nil at the end.
    # @private
    def line_now
      line = @native.line(frame(NEWLINE), nil, true, false)
      line ? @text.mark(line) : line
    end

    # What there is of a line that is not complete, which stays.
    # @private
    def part
      @native.held&.force_encoding(@text.source)
    end

    # There is one of each.
    # @private
    def initialize_copy(_other)
      raise TypeError, "a stream cannot be copied: use this one, from any thread"
    end

    private

    NEWLINE = "\n"
    PARAGRAPH = "\n\n"
    private_constant :NEWLINE, :PARAGRAPH

    def reading
      raise IOError, "not opened for reading" unless @reads

      @tell&.call
    end

    def writing
      raise IOError, "not opened for writing" if @reads

      @tell&.call
    end

    def put(bytes)
      return @native.write(bytes) unless Fibers.scheduled?

      # Who has to wait for room may have to be told that there will be none ({Stalled}),
      # which a descriptor does not tell.
      done = @native.write_now(bytes) || 0
      Fibers.aside { @native.write(bytes.byteslice(done..)) } if done < bytes.bytesize
      bytes.bytesize
    end

    def raise_closed = raise(StreamClosed.new(label, false))

    def separator_and_limit(args)
      raise ArgumentError, "wrong number of arguments (given #{args.size}, expected 0..2)" if args.size > 2

      separator, limit = args
      if args.size == 1 && !separator.nil? && !separator.respond_to?(:to_str)
        limit = separator
        separator = $/
      elsif args.empty?
        separator = $/
      end
      limit = limit&.to_int
      limit = nil if limit&.negative?
      [separator&.to_str, limit]
    end

    def line(separator, limit, chomp)
      reading
      return @text.mark(+"") if limit&.zero?

      line = if plain?(separator, limit)
               @native.plain_line(frame(separator), chomp, @text.source)
             else
               raw_line(separator, limit, chomp)
             end
      return if line.nil?

      @lineno += 1
      $. = @lineno
      line
    end

    # Whether a line is what the child wrote up to the separator.
    def plain?(separator, limit) = separator && !separator.empty? && limit.nil? && @text.target.nil?

    # As {#line}, with one call for all lines, which takes a fifth of the time. Until the
    # end, or until the block has changed the encoding.
    def plain_lines(separator, chomp)
      reading
      text = @text
      @native.each_line(frame(separator), chomp, text.source) do |line|
        $. = @lineno += 1
        yield line
        text.equal?(@text)
      end
    end

    def raw_line(separator, limit, chomp)
      return rest(limit) if separator.nil?

      paragraph = separator.empty?
      skip_newlines if paragraph
      frame = frame(paragraph ? PARAGRAPH : separator)
      line = @native.line(frame, limit, chomp, true)
      return line if line.nil?

      line.force_encoding(@text.source)
      whole(line) { @native.line(frame, 1, false, true) || "" } if limit && line.bytesize >= limit
      @text.mark(line)
    end

    def rest(limit)
      string = @native.read(limit)
      return if string.empty?

      string.force_encoding(@text.source)
      whole(string) { @native.read(1) } if limit
      @text.mark(string)
    end

    # A limit does not cut a character.
    def whole(string)
      3.times do
        return string unless broken?(string)

        more = yield
        return string if more.empty?

        string << more.force_encoding(string.encoding)
      end
      string
    end

    # How many bytes a character of UTF-8 has that begins with such a one.
    LENGTHS = [0xc2..0xdf, 0xe0..0xef, 0xf0..0xf4].freeze
    private_constant :LENGTHS

    # Whether the last character is there in part.
    def broken?(string)
      return false if string.encoding == Encoding::BINARY || string.encoding == Encoding::US_ASCII
      return !string[-1].valid_encoding? unless string.encoding == Encoding::UTF_8

      (1..[3, string.bytesize].min).each do |back|
        byte = string.getbyte(-back)
        next if (0x80..0xbf).cover?(byte)

        length = LENGTHS.index { |range| range.cover?(byte) }
        return !length.nil? && back < length + 2
      end
      false
    end

    def skip_newlines
      loop do
        byte = @native.read(1)
        next if byte == NEWLINE

        @native.put_back(byte) unless byte.empty?
        return
      end
    end

    def frame(separator)
      @frames[separator] ||= Native::Frame.new(@text.target ? separator.encode(@text.source) : separator)
    end

    def some(most, buffer, waits)
      reading
      raise ArgumentError, "negative length #{most} given" if most.negative?
      return into(buffer, +"") if most.zero?

      part = @native.some(most, waits)
      buffer&.clear unless part
      part ? into(buffer, part) : part
    end

    def into(buffer, string)
      return string if buffer.nil?

      buffer.replace(string.force_encoding(buffer.encoding))
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

    def wait_ready(timeout)
      raise_closed if closed?
      seconds = Options.seconds("timeout", timeout)
      ready = if Fibers.scheduled?
                holds? || Fibers.readable?(readiness_fd, seconds)
              else
                Procwright.wait([self], timeout: seconds).all?
              end
      # Who was waited for may have been closed meanwhile.
      raise StreamClosed.new(label, true) if closed?

      ready ? self : nil
    end

    # Only of the bare pipe: an IO on another descriptor would be a trap.
    def lend_pipe
      define_singleton_method(:to_io) do
        number = @native.pipe
        @io = nil if @io&.fileno != number
        @io ||= IO.for_fd(number, @reads ? "r" : "w", autoclose: false).tap { |io| io.sync = true }
      end
      define_singleton_method(:fileno) { @native.pipe }
      singleton_class.alias_method(:to_i, :fileno)
    end
  end
end
