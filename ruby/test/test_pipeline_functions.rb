# frozen_string_literal: true

require_relative "sleeper"
require "stringio"
require "timeout"
require "tmpdir"

# Functions between two programs of a pipeline.
class TestPipelineFunctions < Minitest::Test
  UPCASE = ->(input, output) { input.each_line { |line| output << line.upcase } }
  COPY = ->(input, output) { IO.copy_stream(input, output) }

  class Own < StandardError; end

  def pipeline(...) = Procwright.pipeline(...)
  def judged(result) = result.stages.map(&:judgement)
  def shell(line) = ["sh", "-c", line]
  def function(end_, judgement) = Procwright::StageFunction.new(end_, judgement)

  # A reader that leaves a file if it comes to an end of its input, with the name of the file.
  def witness
    Dir.mktmpdir do |dir|
      file = File.join(dir, "seen")
      yield shell("cat > /dev/null; : > #{file}"), file
    end
  end

  def test_it_reads_the_one_and_writes_to_the_other
    result = Procwright.pipeline!(["printf", "pear\\napple\\n"], UPCASE, ["sort"])
    assert_equal "APPLE\nPEAR\n", result.stdout
    assert_equal [function(:returned, :success), nil], result.stages.map(&:function)
    assert_equal({ end: :returned, judgement: :success }, result.to_h[:stages][0][:function])
    refute_includes result.to_h[:stages][1], :function
    assert_equal 2, result.stages.size
  end

  # Called as a block, a method and an object are.
  class Doubles
    def call(input, output) = output.write(input.read * 2)
  end

  def doubles(input, output = nil, *) = Doubles.new.call(input, output)

  def test_whatever_can_be_called_with_two
    block = proc { |input, output| output.write(input.read * 2) }
    [block, method(:doubles), Doubles.new, ->(*ends) { doubles(*ends) }].each do |one|
      assert_equal "aa", pipeline(["printf", "a"], one, ["cat"]).stdout
    end
    assert_equal "", pipeline(["echo"], proc { |input| input.read }, ["cat"]).stdout
  end

  def test_its_ends_are_streams
    told = []
    look = lambda do |input, output|
      told << input.gets(chomp: true) << input.lineno << input.readpartial(100) << input.eof? << input.closed?
      told << input.label << output.label
      output.puts "a", 1
      output.printf("%03d\n", 7)
    end
    result = pipeline(["printf", "é\\nrest"], look, ["cat"], encoding: "UTF-8")
    assert_equal "a\n1\n007\n", result.stdout
    assert_equal ["é", 1, "rest", true, false, "input of the function behind stage 1",
                  "output of the function behind stage 1"], told
    bytes = nil
    pipeline(["printf", "\\377"], ->(input, _) { bytes = input.read }, ["cat"], binmode: true)
    assert_equal ["\xFF".b, Encoding::BINARY], [bytes, bytes.encoding]
  end

  def test_volume_comes_through_whole
    data = Random.bytes(1 << 20) * 4
    result = pipeline(["cat"], COPY, ["cat"], COPY, ["cat"], input: data, binmode: true)
    assert_predicate result, :success?
    assert_equal data, result.stdout
  end

  def test_it_is_called_on_a_thread_of_its_own_that_goes
    threads = Thread.list
    called = nil
    look = lambda do |input, output|
      called = Thread.current
      COPY.call(input, output)
    end
    assert_equal "a\n", pipeline(["echo", "a"], look, ["cat"]).stdout
    refute_same Thread.current, called
    # None of it stays: else this waits for ever.
    (Thread.list - threads).each(&:join)
  end

  def test_its_exception_stops_all_before_the_next_sees_an_end
    fails = lambda do |input, output|
      output << input.gets
      raise Own, "on purpose"
    end
    witness do |reader, file|
      error = assert_raises(Own) { pipeline(shell("echo half; exec sleep 1000"), fails, reader) }
      assert_equal "on purpose", error.message
      assert_nil error.cause
      refute_path_exists file
    end
  end

  def test_what_ends_its_thread_is_an_error
    [-> { Thread.exit }, -> { Thread.current.kill }].each do |ends|
      error = assert_raises(ThreadError) { pipeline(["yes"], ->(_, _) { ends.call }, ["cat"]) }
      assert_includes error.message, "ended its thread"
    end
    assert_raises(UncaughtThrowError) { pipeline(["yes"], ->(_, _) { throw :out }, ["cat"]) }
  end

  def test_of_two_the_one_is_told_that_has_failed
    waits = ->(input, _) { input.read }
    fails = ->(_, _) { raise Own, "the second" }
    _, told = capture_io do
      assert_raises(Own) { pipeline(["sleep", "1000"], waits, ["cat"], fails, ["cat"]) }
    end
    assert_equal "", told
  end

  def test_one_whose_reader_has_enough_is_forgiven
    result = pipeline(["yes"], COPY, ["head", "-1"])
    assert_predicate result, :success?
    assert_equal %i[forgiven success], judged(result)
    assert_equal function(:broken_pipe, :forgiven), result.stages[0].function
    # One that has read enough itself.
    result = pipeline(["yes"], ->(input, output) { output << input.gets }, ["cat"])
    assert_predicate result, :success?
    assert_equal "y\n", result.stdout
    assert_equal %i[forgiven success], judged(result)
  end

  def test_a_broken_pipe_of_something_else_is_an_error
    other = lambda do |_, _|
      reader, writer = IO.pipe
      reader.close
      writer.syswrite("x")
    end
    assert_raises(Errno::EPIPE) { pipeline(["yes"], other, ["cat"]) }
  end

  def test_a_stop_is_no_end_of_its_input
    cancel = Procwright::Cancel.new
    told = []
    reads = lambda do |input, output|
      told << input.gets
      cancel.cancel
      2.times { input.gets.then { |line| told << line } rescue told << $!.class.superclass << $!.message }
      output << "more" rescue told << $!.class.superclass
      raise Own, "what comes of the stop is nobody's affair"
    end
    witness do |reader, file|
      _, words = capture_io do
        error = assert_raises(Procwright::Cancelled) do
          pipeline(shell("printf 'one\\nha'; exec sleep 1000"), reads, reader, cancel: cancel)
        end
        assert_equal function(:cancelled, :collateral), error.result.stages[0].function
      end
      refute_path_exists file
      assert_equal "", words
    end
    # The part of a line is none.
    cancelled = [Errno::ECANCELED, "input of the function behind stage 1: Operation canceled (os error 125)"]
    assert_equal ["one\n", *cancelled, *cancelled], told.first(5)
  end

  def test_one_that_waits_comes_out_of_a_stop
    told = []
    reads = ->(input, _) { input.read rescue told << $!.class.superclass }
    error = assert_raises(Procwright::TimeoutExpired) { pipeline(["sleep", "1000"], reads, ["cat"], timeout: 0.3) }
    assert_equal [Errno::ECANCELED], told
    assert_equal %i[failed collateral], judged(error.result)
    writes = ->(_, output) { output << ("x" * 1_000_000) rescue told << $!.class.superclass }
    # Its programs are gone by then, and nobody reads.
    assert_raises(Procwright::TimeoutExpired) { pipeline(["sleep", "1000"], writes, ["sleep", "1000"], timeout: 0.3) }
    assert_includes [Errno::ECANCELED, Errno::EPIPE], told.last
  end

  def test_one_that_does_not_come_out_is_named_and_its_thread_killed
    left = nil
    stuck = lambda do |_, _|
      left = Thread.current
      sleep
    end
    error = assert_raises(Procwright::TimeoutExpired) do
      pipeline(["yes"], stuck, ["cat"], timeout: 0.3, stop: "KILL")
    end
    assert_includes error.message, "has not returned, and its thread goes on"
    assert_equal function(:running, :failed), error.result.stages[0].function
    left.join
  end

  def test_an_interrupt_of_the_caller_stops_all
    started = Thread::Queue.new
    told = nil
    reads = lambda do |input, _|
      started << true
      input.read
    rescue SystemCallError => e
      told = e
      raise
    end
    caller = Thread.new { pipeline(["sleep", "1000"], reads, ["cat"]) }
    caller.report_on_exception = false
    started.pop
    caller.raise(Own, "enough")
    assert_raises(Own) { caller.value }
    assert_kind_of Errno::ECANCELED, told
    caller = Thread.new { pipeline(["sleep", "1000"], reads, ["cat"]) }
    started.pop
    caller.kill.join
    assert_nil caller.value
  end

  def test_its_own_timeout_strikes_a_read
    theirs, ours = IO.pipe
    waits = lambda do |input, output|
      Timeout.timeout(0.05) { input.gets }
    rescue Timeout::Error
      ours.close
      output << "late\n"
    end
    assert_equal "late\n", pipeline(["cat"], waits, ["cat"], stdin: theirs).stdout
  ensure
    theirs&.close
  end

  def test_a_fork_that_it_makes_is_nobody_else
    forks = lambda do |input, output|
      child = fork { input.gets rescue exit!($!.is_a?(IOError) ? 7 : 1) }
      ::Process.wait(child)
      output << "#{$?.exitstatus} #{input.gets}"
      # One that returns from it ends with that.
      returns = fork
      ::Process.wait(returns) if returns
    end
    assert_equal "7 a\n", pipeline(["echo", "a"], forks, ["cat"]).stdout
  end

  def test_streams_that_were_kept_keep_no_pipe
    kept = []
    assert_predicate pipeline(["yes"], ->(*ends) { kept.concat(ends) }, ["cat"]), :success?
    assert kept.all?(&:closed?)
    assert_raises(IOError) { kept[0].read }
    assert_raises(IOError) { kept[1] << "x" }
  end

  def test_a_close_of_its_own_ends_a_stream
    result = pipeline(["yes"], ->(input, output) { (input.close; input.gets) rescue output.puts($!.class) }, ["cat"])
    assert_equal "Procwright::StreamClosed\n", result.stdout
    closes = lambda do |_, output|
      output << "half"
      output.close
      raise Own
    end
    witness do |reader, file|
      assert_raises(Own) { pipeline(["yes"], closes, reader) }
      refute_path_exists file
    end
  end

  def test_where_it_may_stand
    {
      [COPY, ["cat"]] => /\Astages\[0\] is #<Proc.*by stdin:/,
      [["cat"], COPY] => /\Astages\[1\] is #<Proc.*what comes of/,
      [["cat"], COPY, COPY, ["cat"]] => /\Astages\[2\] is #<Proc.*one function of both/,
      [["cat"], ->(input) { input.read }, ["cat"]] => /\Astages\[1\] is #<Proc.*with its input and its output/,
      [["cat"], ->(_, _, to:) { to }, ["cat"]] => /with its input and its output/,
      [["cat"], $stdout.method(:flush), ["cat"]] => /with its input and its output/
    }.each do |stages, text|
      [:pipeline, :spawn_pipeline].each do |name|
        error = assert_raises(Procwright::InvalidValue) { Procwright.public_send(name, *stages) }
        assert_match text, error.message
      end
    end
    error = assert_raises(Procwright::InvalidValue) { pipeline(["cat"], COPY, ["cat"], elastic: { 0 => true }) }
    assert_match(/\Aelastic\[0\] is true: leave it out/, error.message)
    result = pipeline(["echo", "a"], COPY, ["cat"], ["cat"], elastic: true)
    assert_equal "a\n", result.stdout
    assert_equal [true, false, true], result.stages.map { |stage| stage.elastic.nil? }
  end

  def test_it_is_not_called_if_a_program_cannot_be_started
    called = []
    Dir.mktmpdir do |dir|
      script = File.join(dir, "script")
      File.write(script, "#!/no/such/interpreter\n", perm: 0o755)
      threads = Thread.list
      note = ->(*) { called << true }
      error = assert_raises(Errno::ENOENT) { pipeline(["cat"], note, [script]) }
      assert_equal 1, error.stage
      assert_raises(Errno::ENOENT) { Procwright.spawn_pipeline(["cat"], note, [script]) }
      (Thread.list - threads).each(&:join)
    end
    assert_empty called
  end

  def test_one_in_a_pipeline_that_is_held_is_talked_through
    doubles = ->(input, output) { input.each_line { |line| output.puts(line.chomp * 2) } }
    child = Procwright.spawn_pipeline(["cat"], doubles, ["cat"], stdin: :pipe) do |one|
      %w[pear fig].each do |said|
        one.stdin.puts said
        assert_equal "#{said * 2}\n", one.stdout.gets
      end
      one
    end
    result = child.result
    assert_predicate result, :success?
    assert_equal function(:returned, :success), result.stages[0].function
  end

  def test_an_exception_of_one_in_a_pipeline_that_is_held
    child = Procwright.spawn_pipeline(["yes"], ->(_, _) { raise Own, "on purpose" }, ["cat"])
    error = assert_raises(Own) { child.wait }
    assert_equal "on purpose", error.message
    refute_predicate child, :alive?
    # It is told once, and afterwards that all were stopped.
    error = assert_raises(Procwright::Cancelled) { child.result }
    assert_equal function(:failed, :failed), error.result.stages[0].function
    assert_raises(Own) do
      Procwright.spawn_pipeline(["yes"], ->(_, _) { raise Own }, ["cat"]) { |one| one.stdout.read }
    end
  end

  def test_one_that_does_not_come_out_of_the_stop_of_one_that_is_held
    left = Thread::Queue.new
    stuck = lambda do |_, _|
      left << Thread.current
      sleep
    end
    child = Procwright.spawn_pipeline(["yes"], stuck, ["cat"], stop: "KILL")
    thread = left.pop
    child.stop
    assert_equal :running, child.poll.stages[0].function.end
    thread.join
  end

  def test_the_exception_of_one_ends_the_others_of_a_pipeline_that_is_held
    left = Thread::Queue.new
    stuck = lambda do |_, _|
      left << Thread.current
      sleep
    end
    fails = ->(_, _) { raise Own }
    child = Procwright.spawn_pipeline(["yes"], stuck, ["cat"], fails, ["cat"], stop: "KILL")
    thread = left.pop
    assert_raises(Own) { child.wait }
    thread.join
  end

  def test_a_pipeline_that_nobody_keeps_ends_its_functions
    result = ruby(<<~'RUBY', until: :exit)
      told = Thread::Queue.new
      READS = ->(input, _) { input.read rescue told << $!.class.superclass }
      def start = Procwright.spawn_pipeline(["sleep", "1000"], READS, ["cat"]).pids
      # The stack may still seem to have the last of them.
      while told.empty?
        start
        GC.start
      end
      puts told.pop
    RUBY
    assert_equal "Errno::ECANCELED\n", result.stdout
    assert_includes result.stderr, "nobody keeps the pipeline sleep 1000 | cat"
  end

  def test_descriptors_and_threads_stay_flat
    result = ruby(<<~'RUBY', limit: 100_000)
      def left = [Dir.children("/proc/self/fd").size, Thread.list.size]
      copy = ->(input, output) { IO.copy_stream(input, output) }
      round = -> { Procwright.pipeline(["echo", "a"], copy, ["cat"]).stdout == "a\n" or abort "wrong" }
      3.times { round.call }
      GC.start
      before = left
      100.times { round.call }
      sleep 0.01 until GC.start || left.zip(before).all? { |now, then_| now <= then_ }
      puts "all"
    RUBY
    assert_equal "all\n", result.stdout, result.stderr
  end
end
