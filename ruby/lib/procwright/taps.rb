# frozen_string_literal: true

module Procwright
  # Hands the output of a run to who asks for it while it comes: `on_line`, `tee`. What is
  # Ruby's gets it on a thread of its own, so that a slow one holds up neither the program's
  # other stream nor a deadline; the core waits for it as for any other consumer, and counts
  # what it has not taken in time.
  # @private
  class Taps
    # Runs the block with `options[:taps]` as something that the extension knows.
    def self.during(options, text)
      taps = of(options, text)
      return yield if taps.empty?

      begin
        options[:taps] = (options[:taps] || []) + taps.map(&:numbers)
        taps.each(&:start)
        yield
      rescue Error
        # By us, perhaps.
        raise taps.filter_map(&:error).first || $!
      ensure
        taps.each(&:finish)
      end
    end

    def self.of(options, text)
      callbacks = %i[on_line on_stdout_line on_stderr_line].to_h { |name| [name, callable(name, options[name])] }
      taps = []
      taps << new(streams(callbacks), Lines.new(callbacks, text)) if callbacks.values.any?
      case tee = options[:tee]
      when nil, false, true then nil
      else
        number = Options.number_of(tee)
        if number
          # What we wrote before stands before it.
          tee.flush if tee.respond_to?(:flush)
          options[:taps] = [[0, number, nil]]
        elsif tee.respond_to?(:write) then taps << new(0, Copy.new(tee, text))
        else raise InvalidValue, "tee is #{tee.inspect}: pass true, or an IO, or what has write"
        end
        options[:tee] = false
      end
      taps
    end

    def self.callable(name, given)
      return given if given.nil? || given.respond_to?(:call)

      raise InvalidValue, "#{name} is #{given.inspect}, which cannot be called"
    end

    # 0 for both, in the order of reading: to keep that costs something.
    def self.streams(callbacks)
      return 0 if callbacks[:on_line] || (callbacks[:on_stdout_line] && callbacks[:on_stderr_line])

      callbacks[:on_stdout_line] ? 1 : 2
    end

    # @return [Exception, nil] what was raised by who got it
    attr_reader :error

    def initialize(stream, receiver)
      @stream = stream
      @receiver = receiver
      @from, @to = IO.pipe(binmode: true)
      @seen, @taken = IO.pipe(binmode: true)
    end

    def numbers = [@stream, @to.fileno, @seen.fileno]

    def start
      @thread = Thread.new do
        bring
      rescue Exception => e # rubocop:disable Lint/RescueException
        @error = e
      ensure
        # So the run learns that it is over with it.
        @taken.close
        @from.close
      end
      @thread.report_on_exception = false
    end

    # The run is over: what it still has to take, nobody waits for.
    def finish
      @thread&.kill&.join
      [@from, @to, @seen, @taken].each(&:close)
    end

    private

    def bring
      while (header = @from.read(5))
        stream, size = header.unpack("CL")
        size.zero? ? @receiver.finish : @receiver.piece(stream, @from.read(size))
        @taken.syswrite("\0")
      end
    end

    # As it comes.
    Copy = Struct.new(:target, :text) do
      def piece(_stream, bytes) = target.write(text.mark_all(bytes))
      def finish = nil
    end

    # Line by line.
    class Lines
      NAMES = { 1 => :stdout, 2 => :stderr }.freeze

      def initialize(callbacks, text)
        @callbacks = callbacks
        @text = text
        @end = "\n".encode(text.source).b
        @rest = { 1 => +"".b, 2 => +"".b }
      rescue EncodingError
        @end = "\n".b
      end

      def piece(stream, bytes)
        rest = @rest[stream]
        # Of what was there before, all but an end that has come in part was searched.
        search = [rest.bytesize - @end.bytesize + 1, 0].max
        rest << bytes
        from = 0
        while (at = rest.index(@end, search))
          search = at + @end.bytesize
          call(stream, rest.byteslice(from, search - from))
          from = search
        end
        @rest[stream] = rest.byteslice(from..)
      end

      # The last line may have no end.
      def finish
        @rest.each { |stream, rest| call(stream, rest) unless rest.empty? }
      end

      private

      def call(stream, line)
        line = @text.mark_all(line)
        own = @callbacks[stream == 1 ? :on_stdout_line : :on_stderr_line]
        own&.call(line)
        @callbacks[:on_line]&.call(line, NAMES[stream])
      end
    end
  end
  private_constant :Taps
end
