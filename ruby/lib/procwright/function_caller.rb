# frozen_string_literal: true

module Procwright
  # Calls a function that stands between two programs of a pipeline, on a thread of its own: with
  # what the first writes, to read, and with where the second reads, to write.
  # @private
  class FunctionCaller
    # Runs the block with the callers of `functions`, pairs of a stage, from 0, and the function
    # behind it. What one of them raises that the pipeline has failed for is raised here.
    def self.during(functions, encodings)
      callers = []
      functions.each { |behind, function| callers << new(behind, function, encodings) }
      yield callers
    rescue FunctionFailed => e
      raise_error_of(callers, e)
    ensure
      callers.each(&:finish)
    end

    # As {during}, but that they go on when the block has returned.
    def self.beginning(functions, encodings)
      callers = []
      functions.each { |behind, function| callers << new(behind, function, encodings) }
      yield callers
      begun = true
      callers
    ensure
      callers.each(&:finish) unless begun
    end

    # Raises what the function has raised that the pipeline has failed for.
    def self.raise_error_of(callers, failed)
      error = error_of(callers, failed)
      raise error, cause: error.cause
    end

    # What that is.
    def self.error_of(callers, failed) = callers.find { |caller| caller.behind == failed.stage }&.error || failed

    # @return [Integer] the stage that the function is behind, from 0
    attr_reader :behind

    def initialize(behind, function, encodings)
      @behind = behind
      @function = function
      @encodings = encodings
      @handover = SpawnError.during(:pipe) { Native::FunctionHandover.new(behind) }
      # Whatever ends the thread: the pipeline does not wait for one that is gone.
      @thread = CallbackThread.new(ended: ->(_error) { @handover.close }) { call_back }
    end

    # For the extension.
    def parts = [@behind, @handover]

    # @return [Exception, nil] what the function has raised
    def error = @error || @thread.error

    # Ends the thread, even where the function still is at work: the pipeline is over.
    def finish
      @handover.close
      @thread.finish
    end

    private

    def call_back
      reader, writer = @handover.take
      return if reader.nil?

      answer = :raised
      begin
        CallbackThread.calling { @function.call(stream(reader), stream(writer)) }
        answer = :returned
      rescue Exception => e # rubocop:disable Lint/RescueException
        answer = :broken_pipe if e.is_a?(Errno::EPIPE)
        @error = e
        raise
      ensure
        # Known before the answer is: the pipeline may be over with that.
        @error ||= ThreadError.new("the function has ended its thread (Thread.exit, Thread#kill)") unless answer == :returned
        @handover.answer(answer)
      end
    end

    def stream(native) = Stream.new(native, @encodings)
  end
  private_constant :FunctionCaller
end
