# frozen_string_literal: true

module Procwright
  # Methods that others have, and what to type in their place.
  # @private
  module NamesOfOthers
    CODE = "use exitstatus"
    OK = "use success?"
    BAD = "use !success?"
    OF_RESULTS = {
      code: CODE, exit_code: CODE, exit_status: CODE, exitcode: CODE, return_code: CODE, returncode: CODE,
      ok: OK, ok?: OK, success: OK, successful?: OK, failed?: BAD, failure?: BAD,
      err: "use stderr", out: "use stdout", output: "use stdout", error: "use explanation, or outcome, its one line",
      lines: "use stdout.lines", value: "use status"
    }.freeze
    OF_OPEN3 = %i[capture2 capture2e capture3 pipeline_r pipeline_rw pipeline_start pipeline_w popen2 popen2e popen3].freeze
    OF_MODULE = {
      **OF_OPEN3.to_h { |name| [name, "use Procwright::Open3.#{name}"] },
      capture: "run has both outputs: Procwright.run(...).stdout", exec: "use run", popen: "use spawn", sh: "use run",
      system: "use run, with stdout: :inherit and stderr: :inherit to show its output"
    }.freeze

    # The error, as Ruby's own for a method that there is not.
    def self.refuse(thing, name, hint)
      raise NoMethodError.new("undefined method '#{name}' for #{thing.is_a?(Module) ? thing : "an instance of #{thing.class}"}: #{hint}",
                              name, receiver: thing)
    end

    # For what has an end: success, exit code, outputs.
    module OfResult
      private

      def method_missing(name, *, **)
        hint = OF_RESULTS[name]
        hint ? NamesOfOthers.refuse(self, name, hint) : super
      end

      def respond_to_missing?(*) = false
    end
  end
  private_constant :NamesOfOthers

  # @private
  def self.method_missing(name, *, **)
    hint = NamesOfOthers::OF_MODULE[name]
    hint ? NamesOfOthers.refuse(self, name, hint) : super
  end
  private_class_method :method_missing

  # @private
  def self.respond_to_missing?(*) = false
  private_class_method :respond_to_missing?
end
