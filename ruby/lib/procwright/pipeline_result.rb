# frozen_string_literal: true

module Procwright
  # What became of a function between two programs. `end` is `:returned`; `:broken_pipe`, nobody read
  # what it wrote; `:failed`, it raised; `:cancelled`, it came out of a stop; `:running`, it did not.
  # `judgement` is what that means for the whole, as of a {Stage}.
  StageFunction = Struct.new(:end, :judgement)

  # What became of one stage of a pipeline: a {Result}, and its judgement. `stdout` is that of the
  # last stage alone, or of each program of a {Fan} there.
  class Stage < Result
    # @return [Symbol] what its end means for the whole: `:success`; `:forgiven`, it could write no
    #   more since the next stage had read enough; `:ignored`, it failed and the rule does not ask;
    #   `:failed`, it is to blame; `:collateral`, it ended so since another failed or all were
    #   stopped
    attr_reader :judgement
    # @return [Hash{Symbol=>Numeric}, nil] what the elastic buffer behind it has done: `:bytes_in`;
    #   `:bytes_out`; `:lag_bytes`, what was not taken at the end; `:peak_bytes`, the most that ever
    #   waited; `:memory_peak_bytes`, `:disk_peak_bytes`; `:spilled_bytes`, what ever went to disk;
    #   `:dropped_bytes`; `:lost_bytes`; `:blocked_s`, the seconds in which it took nothing more. nil
    #   without one
    attr_reader :elastic
    # @return [Hash{Symbol=>Numeric}, nil] the figures, as those of `elastic`, of what was passed on to
    #   it as one of a {Fan} at the end: `:bytes_in` came for it, `:bytes_out` were written to its
    #   stdin, for `:blocked_s` its queue was full. nil of others
    attr_reader :fan
    # @return [StageFunction, nil] what became of the function behind it; nil without one
    attr_reader :function

    # @private
    def initialize(raw, encodings)
      super
      @judgement = raw[:judgement]
      @elastic = raw[:elastic].freeze
      @fan = raw[:fan].freeze
      @function = raw[:function] && StageFunction.new(*raw[:function]).freeze
    end

    def to_h
      parts = super.merge(judgement: judgement, elastic: elastic)
      parts[:fan] = fan if fan
      parts[:function] = function.to_h if function
      parts
    end

    def deconstruct_keys(keys) = super.merge(judgement: judgement, elastic: elastic, fan: fan, function: function)
    def inspect = "#<Procwright::Stage #{summary}: #{judgement}>"
  end

  # All that came of a pipeline, whether it went well or not.
  class PipelineResult
    include NamesOfOthers::OfResult

    # @return [Array<Stage>] what became of each stage
    attr_reader :stages
    # @return [Symbol] the rule by which it succeeds: `:forgiving`, `:strict` or `:last`
    attr_reader :rule
    # @return [Symbol] why it is over: `:finished`, or what all were stopped for, as of {Result}
    attr_reader :reason
    # @return [Float] seconds from the start to the last end
    attr_reader :duration
    # @return [String] how it came out, in a line without the commands: `ended well`, `failed:
    #   stage 2 of 3 exited with code 3`
    attr_reader :outcome
    # @return [String] the commands and the outcome, in a line
    attr_reader :summary
    # @return [String] the outcome in full: who failed and why, with the end of its stderr, and who
    #   ended only because of it
    attr_reader :explanation

    # @private
    def initialize(raw, encodings = Encodings::BINARY)
      @stages = raw[:stages].map { |stage| Stage.new(stage, encodings) }.freeze
      @success, @rule, @reason, @duration, @outcome, @summary, @explanation =
        raw.values_at(:success, :rule, :reason, :duration, :outcome, :summary, :explanation)
    end

    alias duration_s duration

    # True if it ended by itself, and well by its rule.
    def success? = @success

    # @return [Array<Stage>] the stages that are to blame
    def failed = stages.select { |stage| stage.judgement == :failed }

    # @return [String, nil] what the last stage wrote; nil where nothing was captured. Of a {Fan} that
    #   is its last program; each has its own in {stages}
    def stdout = stages.last.stdout

    # @return [String, nil] what all stages wrote to stderr, one stage after the other; nil where
    #   nothing was captured. Of each stage its own is in {stages}
    def stderr
      captured = stages.filter_map(&:stderr)
      captured.empty? ? nil : captured.join
    end

    # @return [StreamInfo, nil] about stdout of the last stage
    def stdout_info = stages.last.stdout_info

    # @return [Integer, nil] 0 if it succeeded, otherwise the exit code of the last stage that is to
    #   blame; nil after a signal, and where it is unknown
    def exitstatus = success? ? 0 : failed.last&.exitstatus

    # @return [Integer, nil] the number of the signal that ended the last stage that is to blame
    def termsig = failed.last&.termsig

    # True if a timeout ended it.
    def timed_out? = %i[timeout idle_timeout].include?(@reason)

    # Gives itself if it succeeded.
    # @raise [CommandFailed]
    def check!
      raise CommandFailed, self unless success?

      self
    end

    # Everything, under the names that the result has as JSON.
    # @return [Hash]
    def to_h
      { success: success?, rule: rule, reason: reason, outcome: outcome, duration_s: duration,
        stages: stages.map(&:to_h) }
    end

    # Parts for pattern matching.
    def deconstruct_keys(_keys)
      { success: success?, rule: rule, reason: reason, stages: stages, failed: failed, exitstatus: exitstatus,
        termsig: termsig, stdout: stdout, stderr: stderr, duration: duration }
    end

    def inspect
      judged = stages.map { |stage| "#{stage.argv.first}: #{stage.judgement}" }
      "#<Procwright::PipelineResult #{outcome} (#{judged.join(', ')})>"
    end
  end
end
