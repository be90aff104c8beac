# frozen_string_literal: true

module Procwright
  # What a program waits for.
  #
  # Where it waits for another process of its tree, this is what that one waits for.
  class Waiting
    # @return [Symbol] `:input` (what is typed at its terminal, or comes on its stdin), `:output`
    #   (room for what it writes), `:child` (one that goes on), `:lock` (of a file, or in memory:
    #   another thread, for the most part), `:timer` (with {#terminal?} it may be input as well: it
    #   looks there with a time limit), `:peer` (somebody else, over a network, a pipe or a socket),
    #   `:nothing` (nothing that is known: it runs, is stopped, has ended, or may not be looked at)
    attr_reader :kind
    # @return [Integer] number of the process that waits
    attr_reader :pid
    # @return [String] its name
    attr_reader :name
    # @return [Integer, nil] the descriptor by which it waits, if it is one
    attr_reader :fd
    # @return [Array<Holder>] the processes that have the other end of that
    attr_reader :holders
    # @return [String] all in words
    attr_reader :message

    # @private
    def initialize(kind, pid, name, fd, terminal, holders, message)
      @kind = kind
      @pid = pid
      @name = name
      @fd = fd
      @terminal = terminal
      @holders = holders.map { |parts| Holder.seen(*parts) }.freeze
      @message = message
      freeze
    end

    # True if it waits by its terminal.
    def terminal? = @terminal
    alias to_s message
  end

  # Why a program does not end.
  class Diagnosis
    # @return [Symbol] `:proven` (a deadlock, for certain), `:possible` (what was not seen decides),
    #   `:stopped` (by a signal), `:slow` (a reader holds it up), `:input` (it waits at its terminal for
    #   a person), `:busy`, `:healthy` (also one that waits on its stdin for another program, which
    #   {#waiting} says)
    attr_reader :verdict
    # @return [String] all in one sentence
    attr_reader :sentence
    # @return [String, nil] why it does not go on, in one sentence; nil if it is well, as far as can
    #   be seen
    attr_reader :why
    # @return [Waiting, nil] what it waits for, if that was seen
    attr_reader :waiting
    # @return [String] what `procwright doctor` says of it
    attr_reader :message

    # @private
    def initialize(verdict, sentence, why, waiting, message, json)
      @verdict = verdict
      @sentence = sentence
      @why = why
      @waiting = waiting && Waiting.new(*waiting)
      @message = message
      @json = json
      freeze
    end

    # All of it, with who waits for whom, as `docs/reference/doctor.schema.json` says.
    # @return [Hash]
    def to_h
      require "json"
      JSON.parse(@json)
    end
    alias to_s message
  end
end
