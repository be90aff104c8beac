# frozen_string_literal: true

module Procwright
  # {Child#merged}: the two outputs of a child as one, line by line, in the order in which they
  # came, if it was spawned with `merged: true`.
  #
  #   Procwright.spawn("make", merged: true) do |make|
  #     make.merged.each { |one| puts "#{one.time} #{one.stream}: #{one.line}" }
  #   end
  #
  # Any number of threads may read it, and each line goes to one of them. {#close} may be
  # called from any thread, as that of a {Stream}.
  class Merged
    include Enumerable
    include Waitable

    # A line: `:stdout` or `:stderr`, the Time at which it was read out of the pipe, and the
    # line with its end. `ambiguous` is true if it may have been written before lines of the
    # other output that were given before: both had bytes to read, and nobody knows which was
    # first.
    Line = Struct.new(:stream, :time, :line, :ambiguous) do
      # What a block takes that has two parameters, as of a {Piece}: `each { |stream, line| ... }`.
      def to_ary = [stream, line]
    end
    # A number of bytes that were dropped here, of one stream or of both ({Overflow}).
    Gap = Struct.new(:dropped_bytes)

    # @private
    def initialize(native, encodings, before_call: nil)
      @native = native
      @encodings = encodings
      @before_call = before_call
    end

    # Reads the next line. Waits until it is there.
    # @param chomp [Boolean] without its end
    # @param timeout [Numeric, nil] seconds
    # @return [Line, Gap, nil] nil at the end of both
    # @raise [IOError] if it is closed, before or meanwhile
    # @raise [WaitTimeout] if no whole line has come by then; what has stays, for the next call
    def gets(chomp: false, timeout: nil)
      @before_call&.call
      seconds = Arguments.seconds("timeout", timeout)
      item = next_item(chomp, seconds)
      if item.nil?
        raise WaitTimeout.of_a_read(self, seconds, @child)
      end

      number, time, line, ambiguous = item
      return if number.nil?
      return Gap.new(line) if number.zero?

      Line.new(number == 1 ? :stdout : :stderr, Time.at(time), @encodings.decode(line), ambiguous)
    end

    # @yieldparam line [Line, Gap]
    def each(chomp: false)
      return to_enum(:each, chomp: chomp) unless block_given?

      while (line = gets(chomp: chomp))
        yield line
      end
      self
    end

    # Closes both streams, from any thread. A thread that is blocked in a call on them gets an
    # IOError in that call; the child gets SIGPIPE when it writes.
    # @return [nil]
    def close
      @native.close
      nil
    end

    def closed? = @native.closed?

    # @return [Integer] a descriptor that is readable once there is something to read, at the
    #   end, and once it is closed. It stays this object's, and must not be read from
    def readiness_fd = @native.readiness_fd

    # @return [Integer] {#readiness_fd}, or a descriptor that is readable for good while a line is
    #   here already
    # @private
    def awaited = @native.held? ? Wait.always_readable : readiness_fd

    # The stream's name in errors.
    def label = @native.label

    def inspect = "#<Procwright::Merged #{label}#{' (closed)' if closed?}>"

    # @private
    def initialize_copy(_other)
      raise TypeError, "a stream cannot be copied: use this one, from any thread"
    end

    private

    # Stream number, time and line; an empty array at the end; nil if the time came first.
    def next_item(chomp, seconds)
      return @native.next(chomp) unless seconds || Fibers.scheduled?

      Fibers.until_found(readiness_fd, seconds) { @native.try_next(chomp) }
    end
  end
end
