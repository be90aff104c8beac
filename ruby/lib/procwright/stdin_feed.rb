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
      # Going through a Hash would give its names as well, and it is refused.
      return false if [IO, String, Array, Hash].any? { |kind| source.is_a?(kind) }
      # What has a descriptor is read by the program itself, unless a part of it is here.
      return true if source.respond_to?(:holds_back?) && source.holds_back?
      return false if source.respond_to?(:to_path) || (source.respond_to?(:to_io) && PlainIO.reads?(source))

      %i[readpartial read each].any? { |name| source.respond_to?(name) }
    end

    # @return [PipeEnd] the end that the program reads
    attr_reader :pipe

    def initialize(source, cancel)
      @source = source
      @cancel = cancel
      @pipe, @into = SpawnError.during(:pipe) { PipeEnd.pair }
    end

    def start
      @thread = CallbackThread.new(ended: method(:finish_input)) { copy }
    end

    # @return [Exception, nil] the exception that the source has raised
    def error = @thread&.error

    # Ends the thread, even where the source still waits: the run is over.
    def finish
      @pipe.close
      @thread&.finish
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
    rescue Errno::EPIPE
      # The program reads no more, which is no error.
    end

    # In this order: the program must not take a part of its input for the whole.
    def finish_input(error)
      @cancel.cancel if error
      @into.close
    end

    # Writes what the source gives, unless that has forked: a fork that returns from it ends.
    Into = Struct.new(:io, :process) do
      def write(piece)
        CallbackThread.end_in_fork_of(process)
        io.write(piece)
      end
    end
    private_constant :Into
  end
  private_constant :StdinFeed
end
