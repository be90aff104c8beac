# frozen_string_literal: true

module Procwright
  # Programs side by side, as a stage of a pipeline.
  #
  #   save = { argv: ["gzip"], stdout: "dump.gz" }
  #   result = Procwright.pipeline(["pg_dump"], Procwright::Fan.new(save, ["sha256sum"]))
  #   result.stdout # => that of the last, sha256sum
  #
  #   Procwright.pipeline(Procwright::Fan.new(["echo", "pear"], ["echo", "apple"]), ["sort"]).stdout # => "apple\npear\n"
  #
  # Each gets all that the stage before them writes, as behind `tee`, and what all of them write goes
  # into the next one, line by line, each line whole. As the last stage each has a stdout of its own,
  # `result.stages[1].stdout`, as the first a stdin.
  #
  # Each is what a stage is: words, or a Hash of `argv:` and options, among which is `stdout:` for the
  # last, and `stdin:` for the first. What passes goes through this process. One that reads slowly
  # holds up the stage before, and so the others, unless there is an elastic buffer behind that; one
  # that leaves early is no matter for the others.
  class Fan
    NESTED = "its programs are side by side already: name them all in one"
    IN_IT = "a function stands between two programs: put it before, and a cat behind it"
    ALONE = 'it is all that there is: put a program before it or behind it, such as ["cat"]'
    TWO = 'it has another before it: put a program between, such as ["cat"]'
    BESIDE = 'a Fan is beside a program and no function: put a ["cat"] between'
    PROGRAM = "pass each program as an Array of words, or as a Hash of options with argv among them"
    private_constant :NESTED, :IN_IT, :ALONE, :TWO, :BESIDE, :PROGRAM

    # @return [Array<Array, Hash, String>] the programs, as they were given
    attr_reader :programs

    # @param programs [Array<Array, Hash, String>] one at least
    # @raise [InvalidValue]
    def initialize(*programs)
      raise InvalidValue, "Fan.new has no program: name one at least" if programs.empty?

      programs.each_with_index do |program, place|
        hint = (NESTED if program.is_a?(Fan)) || (IN_IT if StageFunctions.function?(program))
        Arguments.refuse("programs[#{place}]", program, hint) if hint
        check_words(program, place)
      end
      @programs = programs.freeze
      freeze
    end

    def ==(other) = other.is_a?(Fan) && programs == other.programs
    alias eql? ==
    def hash = programs.hash
    def inspect = "#<Procwright::Fan #{programs.map(&:inspect).join(', ')}>"

    # The stages with each program of a Fan as one of them; and of each Fan how many programs are
    # before it, and how many it has.
    # @private
    def self.spread(stages)
      fans = []
      before = 0
      flat = stages.each_with_index.flat_map do |stage, place|
        programs = stage.is_a?(Fan) ? stage.programs : [stage]
        if stage.is_a?(Fan)
          hint = misplaced(stage, place.zero? ? nil : stages[place - 1], stages[place + 1])
          Arguments.refuse("stages[#{place}]", stage, hint) if hint
          fans << [before, programs.size]
        end
        before += programs.count { |one| !StageFunctions.function?(one) }
        programs
      end
      [flat, fans]
    end

    # Refuses words that can be none, whatever the options of the whole are.
    def check_words(program, place)
      words, = Options.words_and_own("it", program, PROGRAM)
      Options.words(words.first.is_a?(Hash) ? words.drop(1) : words)
    rescue InvalidValue => e
      raise InvalidValue, "programs[#{place}]: #{e.message}"
    end
    private :check_words

    # What is wrong with what stands before a Fan and behind it, nil for nothing.
    # @private
    def self.misplaced(fan, before, behind)
      return (ALONE if fan.programs.size > 1) if before.nil? && behind.nil?
      return BESIDE if [before, behind].any? { |one| StageFunctions.function?(one) }

      TWO if before.is_a?(Fan)
    end
    private_class_method :misplaced
  end
end
