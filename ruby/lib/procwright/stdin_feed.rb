# frozen_string_literal: true

module Procwright
  # Writes to a run's stdin what an object of Ruby's gives: a StringIO, an Enumerator, the
  # {Stream} of another child. On a thread, through a pipe that the program reads itself.
  # @private
  class StdinFeed
    # Runs the block with `options[:stdin]` as a descriptor.
    def self.during(options)
      source = options[:stdin]
      return yield unless needed?(source)

      feed = new(source, options[:cancel] ||= SpawnError.during(:pipe) { Cancel.new })
      begin
        options[:stdin] = feed.pipe.io
        feed.start
        done = yield
      rescue Cancelled
        # The feed itself cancels the run when its source raises: that is the cause then.
        raise feed.error || $!
      ensure
        feed.finish
      end
      raise feed.error if feed.error

      done
    end

    def self.needed?(source)
      return false if source.is_a?(IO) || source.is_a?(String) || source.is_a?(Array)
      return false if source.respond_to?(:to_io) || source.respond_to?(:to_path)

      %i[readpartial read each].any? { |name| source.respond_to?(name) }
    end

    # @return [PipeEnd] the end that the program reads
    attr_reader :pipe
    # @return [Exception, nil] the exception that the source has raised
    attr_reader :error

    def initialize(source, cancel)
      @source = source
      @cancel = cancel
      @pipe, @into = SpawnError.during(:pipe) { PipeEnd.pair }
    end

    def start
      process = $$
      @thread = SpawnError.thread do
        copy
      rescue Errno::EPIPE
        # The program reads no more, which is no error.
      rescue Exception => e # rubocop:disable Lint/RescueException
        if $$ != process
          # Nobody takes it in a fork.
          Thread.current.report_on_exception = true
          raise
        end
        @error = e
        @cancel.cancel
      ensure
        @into.close
      end
      @thread.report_on_exception = false
    end

    # Ends the thread, even where the source still waits: the run is over.
    def finish
      @pipe.close
      @thread&.kill&.join(CallbackThread::LONGEST_END)
      @into.close
    end

    private

    def copy
      into = Into.new(@into.io, $$)
      if @source.respond_to?(:readpartial) || @source.respond_to?(:read)
        IO.copy_stream(@source, into)
      else
        @source.each { |piece| into.write(piece) }
      end
    end

    # Writes what the source gives, unless that has forked: a fork that returns from it ends.
    Into = Struct.new(:io, :process) do
      def write(piece)
        Thread.exit unless $$ == process
        io.write(piece)
      end
    end
    private_constant :Into
  end
  private_constant :StdinFeed
end
