# frozen_string_literal: true

module Procwright
  # Reading from a {Stream}.
  class Stream
    # @return [Integer] how many lines {#gets} has given
    attr_accessor :lineno

    # The next line with its end, nil at the end of the stream. As IO#gets.
    # @overload gets(separator = $/, limit = nil, chomp: false)
    # @return [String, nil]
    # @raise [IOError] if it is closed, before or meanwhile
    def gets(*args, chomp: false)
      args.empty? ? line($/, nil, chomp) : line(*separator_and_limit(args), chomp)
    end

    # {#gets}, but for the end.
    # @raise [EOFError] at the end
    def readline(*args, chomp: false)
      gets(*args, chomp: chomp) || raise(EOFError, "end of file reached")
    end

    # @yieldparam line [String]
    def each_line(*args, chomp: false, &block)
      return to_enum(:each_line, *args, chomp: chomp) unless block_given?

      separator, limit = separator_and_limit(args)
      raise ArgumentError, "invalid limit: 0 for each_line" if limit&.zero?

      plain_lines(separator, chomp, &block) if @before_call.nil? && plain?(separator, limit)
      while (line = line(separator, limit, chomp))
        yield line
      end
      self
    end
    alias each each_line

    # @return [Array<String>]
    def readlines(*args, chomp: false) = each_line(*args, chomp: chomp).to_a

    # Reads all up to the end without a length, and else so many bytes, or fewer at the end.
    # Bytes that were read before an interrupt has thrown something are read again.
    # @return [String, nil] nil at the end, if a length was given
    def read(length = nil, buffer = nil)
      check_readable
      raise ArgumentError, "negative length #{length} given" if length&.negative?

      string = @native.read(length)
      if length.nil?
        string = @encodings.decode(string)
      elsif string.empty? && length.positive?
        buffer&.clear
        return
      end
      fill_buffer(buffer, string)
    end

    # Reads what is there, at most `most` bytes; waits only for the first.
    # @return [String]
    # @raise [EOFError] at the end
    def readpartial(most, buffer = nil)
      part = read_some(most, buffer, true)
      part.nil? ? raise(EOFError, "end of file reached") : part
    end
    alias sysread readpartial

    # Reads what is there, at most `most` bytes. Does not wait.
    # @return [String, Symbol, nil] with `exception: false`, `:wait_readable` if there is
    #   nothing now, and nil at the end
    # @raise [IO::EAGAINWaitReadable, EOFError]
    def read_nonblock(most, buffer = nil, exception: true)
      part = read_some(most, buffer, false)
      case part
      when false
        exception ? raise(IO::EAGAINWaitReadable, "read would block") : :wait_readable
      when nil
        exception ? raise(EOFError, "end of file reached") : nil
      else part
      end
    end

    # True if there is nothing more to read. Waits until that is known.
    def eof?
      check_readable
      @native.eof?
    end
    alias eof eof?

    # @return [Integer, nil]
    def getbyte
      check_readable
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
      check_readable
      bytes = @native.read(1)
      return if bytes.empty?

      complete_character(bytes.force_encoding(@encodings.source)) { @native.read(1) }
      @encodings.decode(bytes)
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
      check_readable
      bytes = (bytes & 0xff).chr if bytes.is_a?(Integer)
      @native.put_back(bytes) unless bytes.nil?
      nil
    end

    # Puts a character or a string back.
    def ungetc(string)
      return ungetbyte(string) if string.nil?

      string = string.chr(@encodings.target || @encodings.source) if string.is_a?(Integer)
      ungetbyte(@encodings.target ? string.encode(@encodings.source) : string)
    end

    # @return [Integer] the offset of the next byte in all that the child wrote
    def position
      check_readable
      @native.position
    end

    # @return [Array<Array(Integer, Integer)>] offset and length of each gap that was met:
    #   bytes that were dropped because they were not read in time, under `:drop_oldest` and
    #   `:drop_newest`
    def gaps
      check_readable
      @native.gaps
    end

    # @return [Hash] bytes that wait in memory and on disk, bytes that were dropped, and
    #   seconds for which the child was blocked
    def figures
      check_readable
      @native.figures
    end

    # The next line without its end, if it is there; false if not, nil at the end.
    # @private
    def try_line
      line = @native.line(frame(NEWLINE), nil, true, false)
      line ? @encodings.decode(line) : line
    end

    # The bytes of a line that is not complete yet. They stay unread.
    # @private
    def partial_line
      @native.buffered&.force_encoding(@encodings.source)
    end

    private

    PARAGRAPH = "\n\n"
    private_constant :PARAGRAPH

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
      check_readable
      return @encodings.decode(+"") if limit&.zero?

      line = if plain?(separator, limit)
               @native.plain_line(frame(separator), chomp, @encodings.source)
             else
               raw_line(separator, limit, chomp)
             end
      return if line.nil?

      @lineno += 1
      $. = @lineno
      line
    end

    # True if a line is what the child wrote up to the separator.
    def plain?(separator, limit) = separator && !separator.empty? && limit.nil? && @encodings.target.nil?

    # Yields lines in one call of the extension, which takes a fifth of the time that a call
    # for each would. Until the end, or until the block has changed the encoding.
    def plain_lines(separator, chomp)
      check_readable
      text = @encodings
      @native.each_line(frame(separator), chomp, text.source) do |line|
        $. = @lineno += 1
        yield line
        text.equal?(@encodings)
      end
    end

    def raw_line(separator, limit, chomp)
      return read_rest(limit) if separator.nil?

      paragraph = separator.empty?
      skip_newlines if paragraph
      frame = frame(paragraph ? PARAGRAPH : separator)
      line = @native.line(frame, limit, chomp, true)
      return line if line.nil?

      line.force_encoding(@encodings.source)
      complete_character(line) { @native.line(frame, 1, false, true) || "" } if limit && line.bytesize >= limit
      @encodings.decode(line)
    end

    def read_rest(limit)
      string = @native.read(limit)
      return if string.empty?

      string.force_encoding(@encodings.source)
      complete_character(string) { @native.read(1) } if limit
      @encodings.decode(string)
    end

    # Reads on while the last character is there in part: a limit does not cut one.
    def complete_character(string)
      3.times do
        return string unless partial_character?(string)

        more = yield
        return string if more.empty?

        string << more.force_encoding(string.encoding)
      end
      string
    end

    # First bytes of UTF-8 characters of two, three and four bytes.
    LEADERS = [0xc2..0xdf, 0xe0..0xef, 0xf0..0xf4].freeze
    private_constant :LEADERS

    # True if the last character is there in part.
    def partial_character?(string)
      return false if string.encoding == Encoding::BINARY || string.encoding == Encoding::US_ASCII
      return !string[-1].valid_encoding? unless string.encoding == Encoding::UTF_8

      (1..[3, string.bytesize].min).each do |back|
        byte = string.getbyte(-back)
        next if (0x80..0xbf).cover?(byte)

        length = LEADERS.index { |range| range.cover?(byte) }
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
      @frames[separator] ||= Native::Frame.new(@encodings.target ? separator.encode(@encodings.source) : separator)
    end

    # The next bytes, nil at the end; false if there are none and the call does not wait.
    def read_some(most, buffer, waits)
      check_readable
      raise ArgumentError, "negative length #{most} given" if most.negative?
      return fill_buffer(buffer, +"") if most.zero?

      part = @native.read_some(most, waits)
      buffer&.clear unless part
      part ? fill_buffer(buffer, part) : part
    end

    # Moves bytes to the caller's own buffer, if there is one.
    def fill_buffer(buffer, string)
      return string if buffer.nil?

      buffer.replace(string.force_encoding(buffer.encoding))
    end
  end
end
