# frozen_string_literal: true

module Procwright
  # Both outputs of a child as one, line by line, in the order in which they came: what
  # {Child#merged} is, if it was spawned with `merged: true`.
  #
  #   Procwright.spawn("make", merged: true) do |make|
  #     make.merged.each { |one| puts "#{one.time} #{one.stream}: #{one.line}" }
  #   end
  #
  # Any number of threads may read it, and each line goes to one of them. {#close} may be
  # called from any thread, as that of a {Stream}.
  class Merged
    include Enumerable

    # A line: `:stdout` or `:stderr`, the Time at which it was read out of the pipe, and the
    # line with its end.
    Line = Struct.new(:stream, :time, :line)
    # So many bytes were dropped here, of one stream or of both ({Overflow}).
    Gap = Struct.new(:dropped_bytes)

    # @private
    def initialize(native, text, tell: nil)
      @native = native
      @text = text
      @tell = tell
      # What came for fibers that had just given up waiting for it.
      @come = Thread::Queue.new
    end

    # The next line. Waits until it is there.
    # @param chomp [Boolean] without its end
    # @return [Line, Gap, nil] nil at the end of both
    # @raise [IOError] if it is closed, before or meanwhile
    def gets(chomp: false)
      @tell&.call
      number, time, line = take(chomp)
      return if number.nil?
      return Gap.new(line) if number.zero?

      Line.new(number == 1 ? :stdout : :stderr, Time.at(time), @text.mark(line))
    end

    # @yieldparam line [Line, Gap]
    def each(chomp: false)
      return to_enum(:each, chomp: chomp) unless block_given?

      while (line = gets(chomp: chomp))
        yield line
      end
      self
    end

    # Closes both, from any thread. Who is blocked in it gets an IOError in that call; the
    # child gets SIGPIPE when it writes.
    # @return [nil]
    def close
      @native.close
      nil
    end

    def closed? = @native.closed?

    # @return [Integer] a descriptor that is readable once there is something to read, at the
    #   end, and once it is closed. It stays this object's, and must not be read from
    def readiness_fd = @native.readiness_fd

    # As errors call it.
    def label = @native.label

    def inspect = "#<Procwright::Merged #{label}#{' (closed)' if closed?}>"

    # @private
    def initialize_copy(_other)
      raise TypeError, "a stream cannot be copied: use this one, from any thread"
    end

    private

    def take(chomp)
      return @native.next(chomp) unless Fibers.scheduled?

      begin
        @come.pop(true)
      rescue ThreadError
        Fibers.aside { @come << @native.next(chomp) }
        retry
      end
    end
  end
end
