# frozen_string_literal: true

module Procwright
  # A piece of one of the two outputs: an array of `:stdout` or `:stderr` and its data.
  class Piece < Array
    # @return [Boolean] true if some of it may have been written before the piece in front of
    #   it, or before ambiguous ones in front of that: both streams had bytes to read, and
    #   nobody knows which was first. Where it is false, all in front was written before
    attr_reader :ambiguous
    # @return [Time] the time at which its first byte was read out of the pipe
    attr_reader :time
    alias ambiguous? ambiguous

    # @return [Symbol] `:stdout` or `:stderr`
    def stream = self[0]

    # @return [String] what was read
    def data = self[1]

    # @private
    def initialize(stream, data, ambiguous, time)
      super([stream, data])
      @ambiguous = ambiguous
      @time = time
      freeze
    end

    # A walk through what is kept of one stream, the middle of which may have been dropped.
    # @private
    class Walk
      # Bytes at the end that begin a character of UTF-8.
      BEGUN = /(?:[\xC2-\xDF]|[\xE0-\xEF][\x80-\xBF]?|[\xF0-\xF4][\x80-\xBF]{0,2})\z/n

      def initialize(stream, data, info, encodings)
        @stream = stream
        @data = data
        @encodings = encodings
        @read = @given = 0
        @dropped_at = info&.dig(:dropped_at)
        @dropped = @dropped_at ? info[:dropped_bytes] : 0
      end

      # The piece of the next bytes that were read; nil if nothing is kept of them. A character
      # that two pieces share is in the later one, so that the pieces of a stream are its text.
      def take(bytes, ambiguous, time, last)
        @read += bytes
        upto = kept_before(@read)
        data = @data.byteslice(@given...upto)
        data = data.byteslice(0, data.bytesize - begun(data)) unless last
        @given += data.bytesize
        Piece.new(@stream, @encodings.decode_lossy(data), ambiguous, Time.at(time)) unless data.empty?
      end

      private

      def kept_before(position)
        return position unless @dropped_at

        position - (position.clamp(@dropped_at, @dropped_at + @dropped) - @dropped_at)
      end

      def begun(data)
        return 0 unless @encodings.source == Encoding::UTF_8

        end_of_it = data.byteslice([data.bytesize - 3, 0].max..).b
        end_of_it[BEGUN].to_s.bytesize
      end
    end
    private_constant :Walk

    # The two captures of a raw result in the order of reading.
    # @private
    def self.all(raw, encodings)
      walks = { 1 => Walk.new(:stdout, raw[:stdout], raw[:stdout_info], encodings),
                2 => Walk.new(:stderr, raw[:stderr], raw[:stderr_info], encodings) }
      last = raw[:merged].each_with_index.to_h { |(stream, *), place| [stream, place] }
      pieces = raw[:merged].each_with_index.map do |(stream, bytes, ambiguous, time), place|
        walks.fetch(stream).take(bytes, ambiguous, time, place == last[stream])
      end
      pieces.compact.freeze
    end
  end
end
