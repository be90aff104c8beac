# frozen_string_literal: true

module Procwright
  # Hands out the output of a run while it comes: `on_line`, `tee`. Objects of Ruby's get it
  # on a thread of their own, so that a slow one holds up neither the program's other stream
  # nor a deadline. The core waits for them as for any other consumer, and counts what they
  # have not taken in time.
  # @private
  class OutputTap
    # Runs the block with `options[:taps]` as descriptors for the extension.
    def self.during(options, encodings, &block)
      taps = made_for(options, encodings)
      return yield if taps.empty?

      begin
        options[:taps] += taps.map(&:descriptors)
        taps.each(&:start)
        CallbackThread.raising_errors_of(taps, &block)
      ensure
        taps.each(&:finish)
      end
    end

    CALLBACKS = %i[on_line on_stdout_line on_stderr_line].freeze

    # Refuses what cannot be used.
    def self.check(options)
      CALLBACKS.each { |name| Arguments.callable(name, options[name]) }
      length = "pass a number of bytes, 1 or more, or nil for no limit"
      Arguments.number("max_length", options[:max_length], 1..Arguments::MOST_BYTES, length) unless options[:max_length].nil?
      Arguments.word("too_long", options[:too_long], %i[split fail])
      Tee.plan(options)
    end

    def self.made_for(options, encodings)
      callbacks = options.slice(*CALLBACKS)
      taps = []
      longest = LongestLine.of(options[:max_length], options[:too_long], encodings)
      taps << new(stream_number(callbacks), LineCallbacks.new(callbacks, encodings, longest)) if callbacks.values.any?
      tee = Tee.plan(options)
      options.merge!(tee_shown: tee.shown, tee_files: tee.files, taps: tee.taps)
      taps + writers_of(tee, encodings)
    end

    # The taps of what has `write`.
    def self.writers_of(tee, encodings) = tee.writers.map { |stream, target| new(stream, Copy.new(target, encodings)) }

    # 1 for stdout, 2 for stderr; 0 for both in the order of reading, which costs something
    # to keep.
    def self.stream_number(callbacks)
      return 0 if callbacks[:on_line] || (callbacks[:on_stdout_line] && callbacks[:on_stderr_line])

      callbacks[:on_stdout_line] ? 1 : 2
    end

    def initialize(stream, consumer)
      @stream = stream
      @consumer = consumer
      @from, @to = SpawnError.during(:pipe) { PipeEnd.pair }
      @acknowledged, @acknowledge = SpawnError.during(:pipe) { PipeEnd.pair }
    end

    # The stream's number, the descriptor to write pieces to, and the one that has a byte for
    # each piece that was taken.
    def descriptors = [@stream, @to.fileno, @acknowledged.fileno]

    # Starts the thread. The block gets what its consumer raises, before anybody can see that it
    # takes no more.
    def start
      @thread = CallbackThread.new do
        hand_over_pieces
      rescue Exception => e # rubocop:disable Lint/RescueException
        yield e if block_given?
        raise
      ensure
        # The core learns by the closed pipes that this consumer takes no more.
        @acknowledge.close
        @from.close
      end
    end

    # Leaves the other ends to the extension, which has them: the thread ends with the streams.
    def hand_over = [@to, @acknowledged].each(&:close)

    # @return [Exception, nil] the exception that the consumer has raised
    def error = @thread&.error

    # Ends the thread, even where its consumer still waits: the run is over.
    def finish
      @thread&.finish
      [@from, @to, @acknowledged, @acknowledge].each(&:close)
    end

    private

    def hand_over_pieces
      while (header = @from.io.read(5))
        stream, size = header.unpack("CL")
        size.zero? ? @consumer.finish : @consumer.piece(stream, @from.io.read(size))
        @acknowledge.io.syswrite("\0")
      end
    end

    # Writes pieces as they come.
    Copy = Struct.new(:target, :encodings) do
      def piece(_stream, bytes) = CallbackThread.calling { target.write(encodings.decode_lossy(bytes)) }
      def finish = nil
    end

    # The longest line that callbacks get, and what becomes of a longer one.
    LongestLine = Struct.new(:bytes, :fails, :encodings) do
      def self.of(bytes, too_long, encodings)
        new(bytes || Float::INFINITY, too_long == :fail, encodings)
      end

      # Cuts pieces of the greatest length off the beginning of a line, and gives what is left.
      def cut(line)
        while line.bytesize > bytes
          raise IOError, words if fails

          size = piece_size(line)
          yield line.byteslice(0, size)
          line = line.byteslice(size..)
        end
        line
      end

      private

      # A character in which a piece would end is whole in the next.
      def piece_size(line)
        unit = encodings.newline? ? 1 : 2
        most = [bytes - (bytes % unit), unit].max
        sizes = (0..3).map { |back| most - (back * unit) }.select(&:positive?)
        sizes.find { |size| whole?(line.byteslice([size - 8, 0].max...size)) } || most
      end

      def whole?(tail)
        return true if encodings.source == Encoding::BINARY

        last = tail.force_encoding(encodings.source)[-1]
        last.nil? || last.valid_encoding?
      end

      def words
        "a line of the output is longer than the #{bytes} bytes that were allowed: allow more (max_length:), " \
          "or take it in pieces (too_long: :split)"
      end
    end

    # Cuts pieces into lines, and calls back for each.
    class LineCallbacks
      NAMES = { 1 => :stdout, 2 => :stderr }.freeze

      def initialize(callbacks, encodings, longest)
        @callbacks = callbacks
        @encodings = encodings
        @longest = longest
        @end = "\n".encode(encodings.source).b
        @rest = { 1 => +"".b, 2 => +"".b }
      rescue EncodingError
        @end = "\n".b
      end

      def piece(stream, bytes)
        rest = @rest[stream]
        # Bytes from earlier pieces were searched, but for an end that had come in part.
        search = [rest.bytesize - @end.bytesize + 1, 0].max
        rest << bytes
        from = 0
        while (at = rest.index(@end, search))
          search = at + @end.bytesize
          line = @longest.cut(rest.byteslice(from, search - from)) { |piece| call(stream, piece) }
          call(stream, line)
          from = search
        end
        rest = rest.byteslice(from..)
        @rest[stream] = @longest.cut(rest) { |piece| call(stream, piece) }
      end

      # Hands out a last line that has no end.
      def finish
        @rest.each { |stream, rest| call(stream, rest) unless rest.empty? }
      end

      private

      def call(stream, line)
        line = @encodings.decode_lossy(line)
        own = @callbacks[stream == 1 ? :on_stdout_line : :on_stderr_line]
        CallbackThread.calling { own.call(line) } if own
        both = @callbacks[:on_line]
        CallbackThread.calling { both.call(line, NAMES[stream]) } if both
      end
    end
  end
  private_constant :OutputTap
end
