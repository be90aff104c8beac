# frozen_string_literal: true

module Procwright
  # News of a run, or of a child, while it goes on.
  class Event
    # @return [Symbol] `:held`, `:spilling`, `:degraded`, `:dropping`, `:overflowed`, `:missed`,
    #   `:explained`: it has not ended by the time of `explain_after`
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

    # @private
    def initialize(kind, message, command, stream, holders, complete, diagnosis = nil)
      @kind = kind
      @message = message
      @command = command
      @stream = stream
      @holders = holders.map { |parts| Holder.seen(*parts) }.freeze
      @complete = complete
      @diagnosis = diagnosis && Diagnosis.new(*diagnosis)
      freeze
    end

    # True if every process could be asked whether it is a holder.
    def complete? = @complete
    alias to_s message
  end
end
