# frozen_string_literal: true

module Procwright
  # A stream of a child: `child.stdin` to write to, `child.stdout` and `child.stderr` to
  # read from. It answers as an IO does, with these differences:
  #
  # - Readers and writers are not in the way of other threads. {#close} may be called from
  #   any thread, returns at once, and ends exactly the calls on this stream, with an
  #   IOError in the call itself.
  # - A child does not wait for its reader before memory and disk are used up
  #   ({Overflow}), so what is read here comes out of a queue. Only with
  #   `overflow: :block` this is the bare pipe, and only then there are {#to_io} and
  #   {#fileno}. To wait for several there is {Procwright.wait}.
  # - What is written goes into the pipe before the call returns: there is nothing to flush.
  class Stream
    include Enumerable
    include Waitable
    include NamesOfOthers::OfStream

    NEWLINE = "\n"
    private_constant :NEWLINE

    # @param is_pipe [Boolean] true if the descriptor is the bare pipe
    # @param before_call [#call, nil] is called at the start of reads and writes
    # @private
    def initialize(native, encodings, is_pipe: false, before_call: nil)
      @native = native
      @encodings = encodings
      @before_call = before_call
      @reads = native.is_a?(Native::Reader)
      @frames = {}
      @lineno = 0
      define_pipe_methods if is_pipe
    end

    # Closes it, from any thread. Returns at once. A thread that is blocked in a call on this
    # very stream gets an IOError in that call, and one that waits for it in
    # {Procwright.wait} goes on. The child comes to the end of its input, or gets SIGPIPE when
    # it writes.
    # @return [nil]
    def close
      @native.close
      nil
    end

    def closed? = @native.closed?

    # @raise [IOError] for a stream to write to
    def close_read
      return close if @reads || closed?

      raise IOError, "closing non-duplex IO for reading"
    end

    # @raise [IOError] for a stream to read from
    def close_write
      return close if !@reads || closed?

      raise IOError, "closing non-duplex IO for writing"
    end

    # Waits as IO#wait does: for a mode (`:read`, `:write`) with a timeout, or for
    # `IO::READABLE` or `IO::WRITABLE` and then a timeout.
    # @return [self, Integer, nil] nil if the time came first
    def wait(first = nil, *rest)
      return wait_for_mode(first, rest) unless first.is_a?(Integer) && rest.size == 1 && !rest.first.is_a?(Symbol)

      readable = first.anybits?(IO::READABLE) && @reads
      writable = first.anybits?(IO::WRITABLE) && !@reads
      raise ArgumentError, "no event that #{label} has" unless readable || writable

      (readable ? wait_readable(rest.first) : wait_writable(rest.first)) && (readable ? IO::READABLE : IO::WRITABLE)
    end

    # Waits until a read would find something, or the end.
    # @param timeout [Numeric, nil] seconds
    # @return [self, nil] nil if the time came first
    def wait_readable(timeout = nil)
      check_readable
      wait_ready(timeout)
    end

    # Waits until there is room to write, or no reader is left.
    # @param timeout [Numeric, nil] seconds
    # @return [self, nil] nil if the time came first
    def wait_writable(timeout = nil)
      check_writable
      wait_ready(timeout)
    end

    # @return [Integer] a descriptor that is readable once there is something to read (or
    #   room to write), at the end, and once the stream is closed. It stays this object's,
    #   and must not be read from. Bytes that {#gets} has left here do not make it readable
    def readiness_fd = @native.readiness_fd

    # @return [Integer] {#readiness_fd}, or a descriptor that is readable for good while bytes
    #   are here already
    # @private
    def awaited = buffered? ? Wait.always_readable : readiness_fd

    # @return [Boolean] true if bytes were read out of the pipe that nobody has taken yet
    # @private
    def holds_back? = @reads && !closed? && @native.held_bytes.positive?

    # @return [self]
    def binmode
      change_encodings(Encodings::BINARY)
    end

    def binmode? = @encodings.binary?

    # IO#set_encoding, without its options.
    # @return [self]
    # @raise [InvalidValue] for an option
    def set_encoding(external, internal = nil, **options)
      unless options.empty?
        name, value = options.first
        raise InvalidValue, "#{name} is #{Arguments.shown(value)}, and set_encoding has no options: convert what was read, " \
                            "line.encode(..., #{name}: #{Arguments.shown(value)})"
      end

      external, internal = [external, internal].map { |encoding| known(encoding) }
      change_encodings(@encodings.with(external, internal))
    end

    # @return [Encoding, nil]
    def external_encoding = @encodings.external || (Encoding.default_external if @reads)
    # @return [Encoding, nil]
    def internal_encoding = @encodings.target

    # A pipe has no positions: all of these raise Errno::ESPIPE, as they do for an IO.
    # @raise [Errno::ESPIPE]
    def pos = no_position
    alias tell pos
    def pos=(_offset)
      no_position
    end
    def seek(_offset, _whence = IO::SEEK_SET) = no_position
    alias sysseek seek
    def rewind = no_position

    def pread(_length, _offset, _buffer = nil)
      check_readable
      no_position
    end

    def pwrite(_string, _offset)
      check_writable
      no_position
    end

    def tty? = false
    alias isatty tty?
    def pid = nil

    # The stream's name in errors: `stdout of make test`.
    def label = @native.label

    def inspect = "#<Procwright::Stream #{label}#{' (closed)' if closed?}>"

    # @private
    attr_reader :encodings

    # @private
    def native_if_open = closed? ? nil : @native

    # @private
    def initialize_copy(_other)
      raise TypeError, "a stream cannot be copied: use this one, from any thread"
    end

    private

    READS = %i[r read readable].freeze
    WRITES = %i[w write writable].freeze
    private_constant :READS, :WRITES

    def wait_for_mode(timeout, modes)
      mode = modes.first || (@reads ? :read : :write)
      return wait_readable(timeout) if READS.include?(mode)
      return wait_writable(timeout) if WRITES.include?(mode)

      raise ArgumentError, "unsupported mode: #{mode}"
    end

    # The encoding, if there is one of that name. An IO warns and goes on.
    def known(encoding)
      return encoding if encoding.nil? || encoding.is_a?(Encoding)

      text = string(encoding)
      raise ArgumentError, "encoding name must be ASCII compatible" unless text.encoding.ascii_compatible?
      raise ArgumentError, "string contains null byte" if text.b.include?("\0")

      names = text.b.sub(/\ABOM\|/i, "").split(":", 2)
      names = [""] if names.empty?
      unknown = names.reject { |name| name == "-" || Encoding.name_list.any? { |one| one.casecmp?(name) } }
      return encoding if unknown.empty?

      unknown.each { |name| warn("warning: Unsupported encoding #{name} ignored", uplevel: 2) }
      nil
    end

    def change_encodings(encodings)
      @encodings = encodings
      # They are of bytes: a separator of text was encoded for them.
      @frames.clear
      self
    end

    # The number, as the methods of IO convert it.
    def integer(value)
      Integer.try_convert(value) or raise TypeError, "no implicit conversion #{kind_of(value, 'integer')}"
    end

    # The number, as the methods of IO convert it that take an int of C's.
    def small_integer(value)
      number = integer(value)
      return number if (-2**31...2**31).cover?(number)

      raise RangeError, "integer #{number} too #{number.positive? ? 'big' : 'small'} to convert to `int'"
    end

    # True or false, as the methods of IO want it for `exception`.
    def true_or_false(exception)
      [true, false].include?(exception) ? exception : raise(ArgumentError, "expected true or false as exception: #{exception.inspect}")
    end

    # The string, as the methods of IO convert it.
    def string(value)
      String.try_convert(value) or raise TypeError, "no implicit conversion #{kind_of(value, 'String')}"
    end

    def kind_of(value, wanted)
      case value
      when nil, true, false then "#{wanted == 'integer' ? 'from' : 'of'} #{value.inspect} #{wanted == 'integer' ? 'to' : 'into'} #{wanted}"
      else "of #{value.class} into #{wanted.capitalize}"
      end
    end

    def check_readable
      raise IOError, "not opened for reading" unless @reads

      @before_call&.call
    end

    def check_writable
      raise IOError, "not opened for writing" if @reads

      @before_call&.call
    end

    # True if bytes are here already, of which {#readiness_fd} does not tell.
    def buffered? = @reads && !closed? && @native.buffered?

    def refuse_to_hand_on
      raise IOError, "#{label} has no descriptor to hand on: #{@native.held_bytes} bytes wait in this process that " \
                     "were read out of the pipe already, as by wait_for or gets, and another reader would miss " \
                     "them. Take them by readpartial, or pass the stream itself, run(..., stdin: child.stdout), " \
                     "which hands on all"
    end

    def no_position
      raise_closed if closed?
      raise Errno::ESPIPE
    end

    def raise_closed = raise(StreamClosed.new(label, false))

    def wait_ready(timeout)
      raise_closed if closed?
      seconds = Arguments.seconds("timeout", timeout)
      ready = if Fibers.scheduled?
                buffered? || Fibers.readable?(readiness_fd, seconds)
              else
                Procwright.wait([self], timeout: seconds).all?
              end
      # A close, too, makes it ready.
      raise StreamClosed.new(label, true) if closed?

      ready ? self : nil
    end

    # Methods of the bare pipe: an IO on another descriptor would be a trap.
    def define_pipe_methods
      define_singleton_method(:to_io) do
        number = fileno
        @io = nil if @io&.fileno != number
        @io ||= IO.for_fd(number, @reads ? "r" : "w", autoclose: false).tap { |io| io.sync = true }
      end
      define_singleton_method(:fileno) do
        refuse_to_hand_on if holds_back?
        # Another process may be all that has the pipe from now on.
        Keeper.leave(@child) if @child
        @native.pipe
      end
      singleton_class.alias_method(:to_i, :fileno)
    end
  end
end
