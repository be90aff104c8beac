# frozen_string_literal: true

module Procwright
  # The standard library's Open3 without its deadlocks, in whatever order the streams are
  # read, and with limits for time and memory.
  # The methods have its signatures, options and results:
  #
  #   Open3 = Procwright::Open3
  #
  # The commands of a pipeline are each a String, or an Array as of the other methods: variables,
  # words, options.
  #
  # Differences, and why, are in docs/guide/ruby.md. The streams are {Stream}s, the status is
  # a {Status}, and besides the options of Process.spawn there are those of {Procwright.run}
  # that it does not know: `timeout`, `idle_timeout`, `stop`, `until`, `limit`, `cancel` for
  # `capture*`; `timeout`, `idle_timeout`, `stop`, `cancel` for `pipeline`; `overflow`,
  # `stall_after`, `stop` for `popen*` and the other pipelines.
  module Open3
    module_function

    # Starts a command with pipes for all three.
    #
    #   Open3.popen3([env,] cmd... [, opts]) { |stdin, stdout, stderr, wait_thr| ... }
    #
    # @return [Array(Stream, Stream, Stream, Waiter), Object] with a block what that gives
    def popen3(*cmd, &block)
      Call.new(cmd, :popen).popen({ stdin: :pipe, stdout: :pipe, stderr: :pipe }, %i[stdin stdout stderr], &block)
    end

    # Starts a command with pipes for stdin and stdout.
    # @return [Array(Stream, Stream, Waiter), Object]
    def popen2(*cmd, &block)
      Call.new(cmd, :popen).popen({ stdin: :pipe, stdout: :pipe }, %i[stdin stdout], &block)
    end

    # Starts a command with a pipe for stdin, and one for stdout and stderr together.
    # @return [Array(Stream, Stream, Waiter), Object]
    def popen2e(*cmd, &block)
      Call.new(cmd, :popen).popen({ stdin: :pipe, stdout: :pipe, stderr: :merged }, %i[stdin stdout], &block)
    end

    # Runs a command and gives both of its outputs.
    #
    #   stdout, stderr, status = Open3.capture3([env,] cmd... [, opts])
    #
    # @return [Array(String, String, Status)]
    # @raise [TimeoutExpired] with `timeout:`; the result has what came until then
    def capture3(*cmd)
      result = Call.new(cmd, :capture).capture({ stdout: :capture, stderr: :capture })
      [result.stdout, result.stderr, result.status]
    end

    # Runs a command and gives what it writes to stdout.
    # @return [Array(String, Status)]
    def capture2(*cmd)
      result = Call.new(cmd, :capture).capture({ stdout: :capture })
      [result.stdout, result.status]
    end

    # Runs a command and gives what it writes to stdout and stderr, in its order.
    # @return [Array(String, Status)]
    def capture2e(*cmd)
      result = Call.new(cmd, :capture).capture({ stdout: :capture, stderr: :merged })
      [result.stdout, result.status]
    end

    # Runs commands of which each writes into the next one, and waits for all. All are started, or
    # none. What their statuses mean together {Procwright.pipeline} says.
    #
    #   Open3.pipeline(cmd1, cmd2, ... [, opts])
    #
    # @return [Array<Status>] that of each
    # @raise [TimeoutExpired] with `timeout:`; the result has each status
    def pipeline(*cmds)
      Chain.new(cmds, :stage).run
    end

    # Starts commands of which each writes into the next one, with a pipe from the last.
    #
    #   Open3.pipeline_r(cmd1, cmd2, ... [, opts]) { |last_stdout, wait_thrs| ... }
    #
    # @return [Array(Stream, Array<Waiter>), Object] with a block what that gives
    def pipeline_r(*cmds, &block)
      Chain.new(cmds, :popen, reads: true).start(&block)
    end

    # Starts commands of which each writes into the next one, with a pipe to the first.
    #
    #   Open3.pipeline_w(cmd1, cmd2, ... [, opts]) { |first_stdin, wait_thrs| ... }
    #
    # @return [Array(Stream, Array<Waiter>), Object]
    def pipeline_w(*cmds, &block)
      Chain.new(cmds, :popen, writes: true).start(&block)
    end

    # Starts commands of which each writes into the next one, with pipes at both ends.
    #
    #   Open3.pipeline_rw(cmd1, cmd2, ... [, opts]) { |first_stdin, last_stdout, wait_thrs| ... }
    #
    # @return [Array(Stream, Stream, Array<Waiter>), Object]
    def pipeline_rw(*cmds, &block)
      Chain.new(cmds, :popen, reads: true, writes: true).start(&block)
    end

    # Starts commands of which each writes into the next one.
    #
    #   Open3.pipeline_start(cmd1, cmd2, ... [, opts]) { |wait_thrs| ... }
    #
    # They are kept by whoever has one of what is returned, as a {Child} is.
    # @return [Array<Waiter>, Object]
    def pipeline_start(*cmds, &block)
      Chain.new(cmds, :popen).start(&block)
    end
  end
end
