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

    OF_CHILDREN = {
      detach: "spawn it with detach: true", exit_code: CODE, exit_status: CODE, exited?: "use !alive?", join: "use wait",
      output: "use communicate, or stdout.read", returncode: CODE, running?: "use alive?", success?: "use wait.success?",
      value: "use wait", close_write: "use stdin.close",
      **%i[<< print printf puts write].to_h { |name| [name, "use stdin.#{name}, spawned with stdin: :pipe"] },
      **%i[each_line eof? gets read readline readlines readpartial].to_h { |name| [name, "use stdout.#{name}"] }
    }.freeze
    INTERRUPTED = 'use signal("INT")'
    SIGNALLED = 'use signal, as in signal("INT")'
    OF_CHILD = {
      **OF_CHILDREN, int: INTERRUPTED, interrupt: INTERRUPTED, send_signal: SIGNALLED,
      term: "use terminate; or stop, which ends all of its processes", wait_thr: "use wait, status or pid of this one"
    }.freeze
    NO_THREAD = "there is no thread: join and value wait for the program"
    KILLED = "there is no thread: Process.kill(\"TERM\", pid) ends the program, child.stop all of its processes"
    OF_WAITER = {
      **%i[exit kill terminate].to_h { |name| [name, KILLED] },
      **%i[raise run wakeup priority report_on_exception=].to_h { |name| [name, NO_THREAD] },
      **%i[success? exitstatus to_i].to_h { |name| [name, "use value.#{name}"] }
    }.freeze
    STOPPED = "use stop, which ends all stages as stop: of spawn_pipeline says, as stop: \"INT\""
    OF_PIPELINE_CHILD = {
      **OF_CHILDREN, int: STOPPED, interrupt: STOPPED, pid: "use pids", send_signal: STOPPED, signal: STOPPED,
      status: "use poll", term: STOPPED, terminate: STOPPED, wait_thr: "use wait, poll or pids of this one"
    }.freeze
    NO_IO = "what it reads comes out of a queue, of which no descriptor tells all: to wait for several use " \
            "Procwright.wait([one, another], mode: :any), and spawn with overflow: :block for the bare pipe"

    # The error, as Ruby's own for a method that there is not: raised where it was called, and with
    # lines as its backtrace, of which Ruby shows no line of code below the hint.
    def self.refuse(thing, name, hint)
      words = "undefined method '#{name}' for #{thing.is_a?(Module) ? thing : "an instance of #{thing.class}"}: #{hint}"
      error = NoMethodError.new(words, name, receiver: thing)
      error.set_backtrace(caller.drop_while { |line| line.start_with?(__dir__) })
      raise error
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

    # For a program that is held.
    module OfChild
      private

      def method_missing(name, *, **)
        hint = OF_CHILD[name]
        hint ? NamesOfOthers.refuse(self, name, hint) : super
      end

      def respond_to_missing?(*) = false
    end

    # For what stands for a thread that waits.
    module OfWaiter
      private

      def method_missing(name, *, **)
        hint = OF_WAITER[name]
        hint ? NamesOfOthers.refuse(self, name, hint) : super
      end

      def respond_to_missing?(*) = false
    end

    # For a pipeline that is held.
    module OfPipelineChild
      private

      def method_missing(name, *, **)
        hint = OF_PIPELINE_CHILD[name]
        hint ? NamesOfOthers.refuse(self, name, hint) : super
      end

      def respond_to_missing?(*) = false
    end

    # For a stream that is no bare pipe. Ruby asks for `to_io` wherever an IO would do, and takes a
    # NoMethodError for a no. IO.select then says that there is no conversion, and not what would do.
    # No `respond_to_missing?`: Ruby would look no further than that.
    module OfStream
      private

      def method_missing(name, *, **)
        return super unless name == :to_io
        raise TypeError, "#{label} is no IO: #{NO_IO}" if caller_locations(1, 1).first&.base_label == "select"

        NamesOfOthers.refuse(self, name, NO_IO)
      end
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
