# frozen_string_literal: true

module Procwright
  # Functions among the stages of a pipeline.
  # @private
  module StageFunctions
    FIRST = "a function stands between two programs: give the first program its input by stdin:, which takes an " \
            "Enumerator, too"
    LAST = "a function stands between two programs: call it with what comes of the pipeline, or name a program behind it"
    TWO = "a function stands between two programs: make one function of both"
    TAKES = "a function between two programs is called with its input and its output: " \
            "->(input, output) { input.each_line { |line| output << line.upcase } }"
    private_constant :FIRST, :LAST, :TWO, :TAKES

    module_function

    # The programs among the stages; and the functions, as pairs of the program that each is behind,
    # from 0, and the function.
    def split(stages)
      programs = []
      functions = []
      stages.each_with_index do |stage, place|
        next programs << stage unless function?(stage)

        hint = misplaced(place, stages, programs, functions)
        Arguments.refuse("stages[#{place}]", stage, hint || TAKES) if hint || !takes_two?(stage)
        functions << [programs.size - 1, stage]
      end
      [programs, functions]
    end

    # Whether it is a function, and no program.
    def function?(stage) = stage.respond_to?(:call) && !Hash.try_convert(stage)

    def misplaced(place, stages, programs, functions)
      return FIRST if programs.empty?
      return LAST if place == stages.size - 1

      TWO if functions.last&.first == programs.size - 1
    end

    # Whether it can be called with two arguments.
    def takes_two?(function)
      # A block takes as many as there are.
      return true if function.is_a?(Proc) && !function.lambda?

      kinds = (function.respond_to?(:parameters) ? function : function.method(:call)).parameters.map(&:first)
      needed = kinds.count(:req)
      return false if kinds.include?(:keyreq) || needed > 2

      kinds.include?(:rest) || needed + kinds.count(:opt) >= 2
    end
  end
  private_constant :StageFunctions
end
