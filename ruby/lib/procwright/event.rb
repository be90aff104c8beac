# frozen_string_literal: true

module Procwright
  # News of a run, or of a child, while it goes on.
  class Event
    # @return [Symbol] `:held`, `:spilling`, `:degraded`, `:dropping`, `:overflowed`, `:missed`,
    #   `:explained`: it has not ended by the time of `explain_after`; `:input_wanted`: it has begun
    #   to wait for input
    attr_reader :kind
    # @return [String] the event in words
    attr_reader :message
    # @return [String] the command as a shell takes it
    attr_reader :command
    # @return [String] the stream, or streams
    attr_reader :stream
    # @return [Array<Holder>] the processes that still hold them
    attr_reader :holders
    # @return [Diagnosis, nil] why it has not ended, of an event `:explained`; nil if {#message} says
    #   why that could not be found out
    attr_reader :diagnosis
    # @return [Waiting, nil] who waits for input, and where, of an event `:input_wanted`
    attr_reader :waiting
    # @return [String, nil] the last unfinished line of the output that came last, of an event
    #   `:input_wanted`, as it came; nil if there is none
    attr_reader :prompt

    # @private
    def initialize(kind, message, command, stream, holders, complete, diagnosis = nil, waiting = nil, prompt = nil)
      @kind = kind
      @message = message
      @command = command
      @stream = stream
      @holders = holders.map { |parts| Holder.seen(*parts) }.freeze
      @complete = complete
      @diagnosis = diagnosis && Diagnosis.new(*diagnosis)
      @waiting = waiting && Waiting.new(*waiting)
      @prompt = prompt
      freeze
    end

    # True if every process could be asked whether it is a holder.
    def complete? = @complete
    alias to_s message
  end
end
