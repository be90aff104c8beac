# frozen_string_literal: true

module Procwright
  # Reading from a {Stream}.
  class Stream
    # The public methods that give what was read: each calls its half here, which begins with
    # `take_`, and puts back what that has taken if an interrupt throws anything before its
    # caller has it.
    include Native::Handover

    # @return [Integer] how many lines {#gets} has given
    attr_reader :lineno

    def lineno=(number)
      @lineno = small_integer(number)
      number
    end

    # @!method gets(separator = $/, limit = nil, chomp: false, timeout: nil)
    #   The next line with its end, nil at the end of the stream; also in `$_`. As IO#gets, but that
    #   another keyword is refused.
    #   @param timeout [Numeric, nil] seconds for the whole line, of which a limit is none
    #   @return [String, nil]
    #   @raise [IOError] if it is closed, before or meanwhile
    #   @raise [WaitTimeout] if no whole line has come by then; what has stays, for the next call

    # @!method readline(separator = $/, limit = nil, chomp: false, timeout: nil)
    #   {#gets}, but for the end.
    #   @raise [EOFError] at the end

    # @yieldparam line [String]
    def each_line(*args, chomp: false, **unknown, &block)
      refuse_keywords("each_line", unknown)
      return to_enum(:each_line, *args, chomp: chomp) unless block

      separator, limit = separator_and_limit(args)
      raise ArgumentError, "invalid limit: 0 for each_line" if limit&.zero?

      plain_lines(separator, chomp, &block) if @before_call.nil? && plain?(separator, limit)
      each_taken("take_line", separator, limit, chomp, &block)
      self
    end
    alias each each_line

    # @return [Array<String>]
    def readlines(*args, chomp: false, **unknown)
      refuse_keywords("readlines", unknown)
      each_line(*args, chomp: chomp).to_a
    end

    # @!method read(length = nil, buffer = nil)
    #   Reads all up to the end without a length, and else so many bytes, or fewer at the end.
    #   Bytes that were read before an interrupt has thrown something are read again.
    #   @return [String, nil] nil at the end, if a length was given

    # @!method readpartial(most, buffer = nil)
    #   Reads what is there, at most `most` bytes; waits only for the first. `sysread` is the
    #   same: nothing is buffered in between.
    #   @return [String]
    #   @raise [EOFError] at the end

    # @!method read_nonblock(most, buffer = nil, exception: true)
    #   Reads what is there, at most `most` bytes. Does not wait.
    #   @return [String, Symbol, nil] with `exception: false`, `:wait_readable` if there is
    #     nothing now, and nil at the end
    #   @raise [IO::EAGAINWaitReadable, EOFError]

    # True if there is nothing more to read. Waits until that is known.
    def eof?
      check_readable
      @native.eof?
    end
    alias eof eof?

    # @!method getbyte
    #   @return [Integer, nil]

    # @!method readbyte
    #   @raise [EOFError]

    def each_byte(&block)
      return to_enum(:each_byte) unless block

      each_taken("take_getbyte", &block)
      self
    end

    # @!method getc
    #   The next character.
    #   @return [String, nil]

    # @!method readchar
    #   @raise [EOFError]

    def each_char(&block)
      return to_enum(:each_char) unless block

      each_taken("take_getc", &block)
      self
    end

    # @yieldparam codepoint [Integer]
    def each_codepoint
      return to_enum(:each_codepoint) unless block_given?

      each_char { |char| yield char.ord }
    end

    # Puts bytes back, so that they are the next that are read.
    def ungetbyte(bytes)
      check_readable
      return if bytes.nil?

      bytes = (bytes & 0xff).chr if bytes.is_a?(Integer)
      @native.put_back(string(bytes))
      nil
    end

    # Puts a character or a string back.
    def ungetc(character)
      check_readable
      character = character.chr(@encodings.target || @encodings.source) if character.is_a?(Integer)
      character = string(character)
      ungetbyte(@encodings.target ? character.encode(@encodings.source) : character)
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

    # The next line with its end, if it is there; false if not, nil at the end.
    # @private
    def try_line
      line = @native.line(frame(NEWLINE), nil, false, false, nil)
      line ? @encodings.decode(line) : line
    end

    # The bytes of a line that is not complete yet. They stay unread.
    # @private
    def partial_line
      @native.buffered&.force_encoding(@encodings.source)
    end

    # Passes over the end of a line if that comes next: what was read last was the line.
    # @private
    def expect_end
      @native.expect_end if @encodings.source.ascii_compatible?
    end

    private

    PARAGRAPH = "\n\n"
    private_constant :PARAGRAPH

    # The halves that {Native::Handover} calls. `taken` gets what was taken out of the stream.

    # True for what was given as keywords, and for a Hash that could have been.
    def keywords?(last) = last.is_a?(Hash) && last.keys.all?(Symbol)

    def take_gets(taken, args, name = "gets")
      *args, keywords = args if keywords?(args.last)
      chomp, seconds = keywords ? of_a_line(name, **keywords) : false
      separator, limit = args.empty? ? [compatible($/), nil] : separator_and_limit(args)
      return line(taken, separator, limit, chomp) if seconds.nil?

      refuse_limit(name, separator, limit)
      line_within(taken, separator, chomp, seconds)
    end

    def take_line(taken, args) = line(taken, *args)

    def of_a_line(name, chomp: false, timeout: nil, **unknown)
      refuse_keywords(name, unknown, "chomp and timeout")
      [chomp, Arguments.seconds("timeout", timeout)]
    end

    # What to do with a time limit, by the method that has none.
    WITHIN = {
      "each_line" => "gets has one: while line = stream.gets(timeout: %<value>s)",
      "readlines" => "gets has one: while line = stream.gets(timeout: %<value>s)",
      "read" => "communicate and result of the child have one; or wait_readable(%<value>s), and read_nonblock"
    }.freeze
    private_constant :WITHIN

    # Refuses keywords that a method has not: an IO takes any, and goes on without them.
    def refuse_keywords(name, unknown, known = "none")
      return if unknown.empty?

      keyword, value = unknown.first
      hint = known == "none" ? nil : "it has #{known}"
      if keyword == :timeout
        hint = format(WITHIN.fetch(name, "wait_readable(%<value>s) before it"), value: Arguments.shown(value))
      end
      raise InvalidValue, "#{keyword} is #{Arguments.shown(value)}, and #{name} has no such keyword: #{hint || 'leave it out'}"
    end

    # Refuses what is a keyword among the arguments of a method that has none.
    def without_keywords(name, args)
      refuse_keywords(name, args.last) if keywords?(args.last)
      args
    end

    def take_readline(taken, args) = take_gets(taken, args, "readline") || raise(EOFError, "end of file reached")

    def take_read(taken, args)
      length, buffer = limited(without_keywords("read", args), 0..2)
      check_readable
      buffer = modifiable(buffer)
      length = integer(length) unless length.nil?
      raise ArgumentError, "negative length #{length} given" if length&.negative?

      string = @native.read(length, taken)
      if length.nil?
        string = @encodings.decode(string)
      elsif string.empty? && length.positive?
        buffer&.clear
        return
      end
      fill_buffer(buffer, string)
    end

    def take_readpartial(taken, args)
      most, buffer = limited(without_keywords("readpartial", args), 1..2)
      part = read_some(taken, most, buffer, true)
      part.nil? ? raise(EOFError, "end of file reached") : part
    end

    def take_read_nonblock(taken, args)
      *args, keywords = args if keywords?(args.last)
      raises = keywords ? raises?(**keywords) : true
      most, buffer = limited(args, 1..2)
      part = read_some(taken, most, buffer, false)
      case part
      when false
        raises ? raise(IO::EAGAINWaitReadable, "read would block") : :wait_readable
      when nil
        raises ? raise(EOFError, "end of file reached") : nil
      else part
      end
    end

    def raises?(exception: true, **unknown)
      refuse_keywords("read_nonblock", unknown, "exception")
      true_or_false(exception)
    end

    def take_getbyte(taken, args)
      limited(without_keywords("getbyte", args), 0..0)
      check_readable
      @native.read(1, taken).getbyte(0)
    end

    def take_readbyte(taken, args) = take_getbyte(taken, args) || raise(EOFError, "end of file reached")

    def take_getc(taken, args)
      limited(without_keywords("getc", args), 0..0)
      check_readable
      bytes = @native.read(1, taken)
      return if bytes.empty?

      @encodings.decode(whole_character(bytes.force_encoding(@encodings.source), taken))
    end

    # The character that begins with this byte. Of bytes that are none, the first alone.
    def whole_character(byte, taken)
      bytes = byte
      3.times do
        break unless partial_character?(bytes)

        more = @native.read(1, taken)
        return bytes if more.empty?

        bytes += more.force_encoding(bytes.encoding)
      end
      bytes.valid_encoding? ? bytes : first_of(byte, bytes, taken)
    end

    def first_of(byte, bytes, taken)
      # At once: what is in the stream again is not among what was taken.
      Thread.handle_interrupt(Exception => :never) do
        @native.put_back(bytes.byteslice(1..))
        taken.slice!(1..)
      end
      byte
    end

    def take_readchar(taken, args) = take_getc(taken, args) || raise(EOFError, "end of file reached")

    # The arguments, if there are so many.
    def limited(args, range)
      return args if range.cover?(args.size)

      expected = range.minmax.uniq.join("..")
      raise ArgumentError, "wrong number of arguments (given #{args.size}, expected #{expected})"
    end

    # The buffer to read into, seen to before anything is read.
    def modifiable(buffer)
      return if buffer.nil?

      buffer = string(buffer)
      buffer.replace(buffer)
    end

    def separator_and_limit(args)
      separator, limit = limited(args, 0..2)
      separator = $/ if args.empty?
      if args.size == 1 && !separator.nil? && !separator.respond_to?(:to_str)
        limit = separator
        separator = $/
      end
      limit = integer(limit) unless limit.nil?
      limit = nil if limit&.negative?
      [separator.nil? ? nil : compatible(string(separator)), limit]
    end

    # The separator, if lines of this encoding can end in it.
    def compatible(separator)
      return if separator.nil?

      encoding = @encodings.target || @encodings.source
      return separator if separator.encoding == encoding || (separator.ascii_only? && encoding.ascii_compatible?)
      return NEWLINE.encode(encoding) if separator.equal?($/)

      raise ArgumentError, "encoding mismatch: #{encoding} IO with #{separator.encoding} RS"
    end

    def line(taken, separator, limit, chomp)
      check_readable
      return @encodings.decode(+"") if limit&.zero?

      line = if plain?(separator, limit)
               @native.plain_line(frame(separator), chomp, @encodings.source, taken)
             else
               raw_line(taken, separator, limit, chomp)
             end
      return if line.nil?

      @lineno += 1
      $. = @lineno
      line
    end

    # Refuses a time limit for what is no whole line: it would have to put back what has come.
    def refuse_limit(name, separator, limit)
      return if separator && !separator.empty? && limit.nil?

      raise InvalidValue, "timeout is for a whole line, and #{name} was asked for #{limit ? 'a part of one' : 'more'}: " \
                          "call wait_readable(seconds), and readpartial"
    end

    # The line, if it comes within these seconds. Until it is whole it stays where it is, so that
    # the next call finds what this one has waited for.
    def line_within(taken, separator, chomp, seconds)
      check_readable
      deadline = Deadline.new(seconds)
      frame = frame(separator)
      while (line = @native.line(frame, nil, chomp, false, taken)) == false
        left = deadline.remaining
        raise WaitTimeout.of_a_read(self, seconds, @child) if left&.zero?

        Fibers.on_thread { Native.wait([readiness_fd], 0, :exited, left) }
        raise StreamClosed.new(label, true) if closed?
      end
      return if line.nil?

      $. = @lineno += 1
      @encodings.decode(line.force_encoding(@encodings.source))
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

    def raw_line(taken, separator, limit, chomp)
      return read_rest(taken, limit) if separator.nil?

      paragraph = separator.empty?
      skip_newlines(taken) if paragraph
      frame = frame(paragraph ? PARAGRAPH : separator)
      line = @native.line(frame, limit, chomp, true, taken)
      return line if line.nil?

      line.force_encoding(@encodings.source)
      if limit && line.bytesize >= limit
        line = complete_character(line) { @native.line(frame, 1, false, true, taken) || "" }
      end
      @encodings.decode(line)
    end

    def read_rest(taken, limit)
      string = @native.read(limit, taken)
      return if string.empty?

      string.force_encoding(@encodings.source)
      string = complete_character(string) { @native.read(1, taken) } if limit
      @encodings.decode(string)
    end

    # Reads on while the last character is there in part: a limit does not cut one. Another
    # string: that of the beginning is among what was taken.
    def complete_character(string)
      3.times do
        return string unless partial_character?(string)

        more = yield
        return string if more.empty?

        string += more.force_encoding(string.encoding)
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

    def skip_newlines(taken)
      loop do
        byte = @native.read(1, taken)
        next if byte == NEWLINE

        # Here it is in the stream and noted as taken as well; an interrupt between the two
        # would give it twice.
        Thread.handle_interrupt(Exception => :never) { @native.put_back(taken.pop) } unless byte.empty?
        return
      end
    end

    # Separators in use at once. Programs have one or two, and one that is read out of data
    # could be another for each line.
    MOST_FRAMES = 16
    private_constant :MOST_FRAMES

    # What the extension needs to know of a separator. It is forgotten when the encoding changes.
    def frame(separator)
      @frames[separator] ||= begin
        @frames.clear if @frames.size >= MOST_FRAMES
        Native::Frame.new(@encodings.target ? separator.encode(@encodings.source) : separator)
      end
    end

    # The next bytes, nil at the end; false if there are none and the call does not wait.
    def read_some(taken, most, buffer, waits)
      check_readable
      most = integer(most)
      buffer = modifiable(buffer)
      raise ArgumentError, "negative length #{most} given" if most.negative?
      return fill_buffer(buffer, +"") if most.zero?

      part = @native.read_some(most, waits, taken)
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
