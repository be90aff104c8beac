# frozen_string_literal: true

module Procwright
  class Map
    # Calls `on_line` and `on_event` of a map, one at a time, on a thread of its own: deadlines
    # hold whatever they do.
    # @private
    class Callbacks
      # What the core puts its news into.
      attr_reader :native

      # `encodings` gives those of the command with a place.
      def initialize(options, encodings)
        @on_event = options[:on_event] && Options.event_hook(options[:on_event])
        @on_line, @max_length, @too_long = options.values_at(:on_line, :max_length, :too_long)
        @encodings = encodings
        @lines = {}
        @raised = {}
        @native = Native::MapCallbacks.new
        @thread = CallbackThread.new(ended: ->(_error) { @native.close }) { call_back }
      end

      # The exception that a callback has raised for a command, in the place of the core's words
      # for it. To be called once, when the command has ended.
      def cause(index, error)
        @lines.delete(index)
        raised = @raised.delete(index)
        return error unless error.is_a?(InternalError)

        raised || @thread.error || error
      end

      # True in `on_line` and in `on_event`.
      def current? = @thread.current?

      # Ends the thread, even where a callback still waits: the map is over.
      def finish
        @native.close
        @thread.finish
      end

      private

      def call_back
        process = $$
        while (index, parts, bytes = @native.take)
          returned = false
          begin
            bytes ? piece(index, parts, bytes) : CallbackThread.calling { @on_event.call(parts) }
            returned = true
          rescue Exception => e # rubocop:disable Lint/RescueException
            # Nobody takes it in a fork.
            raise if $$ != process

            @raised[index] ||= e
          ensure
            @native.answer(returned)
          end
        end
      end

      def piece(index, stream, bytes)
        lines = @lines[index] ||= line_callbacks(index)
        stream.zero? ? @lines.delete(index).finish : lines.piece(stream, bytes)
      end

      def line_callbacks(index)
        encodings = @encodings.call(index)
        longest = OutputTap::LongestLine.of(@max_length, @too_long, encodings)
        call = ->(line, stream) { @on_line.call(line, stream, index) }
        OutputTap::LineCallbacks.new({ on_line: call }, encodings, longest)
      end
    end
    private_constant :Callbacks
  end
end
