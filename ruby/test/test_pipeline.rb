# frozen_string_literal: true

require_relative "sleeper"
require "pathname"
require "stringio"
require "timeout"
require "tmpdir"

# `pipeline`: every status, one deadline, no false alarm.
class TestPipeline < Minitest::Test
  def pipeline(...) = Procwright.pipeline(...)
  def judged(result) = result.stages.map(&:judgement)
  def shell(line) = ["sh", "-c", line]

  def test_a_reader_that_has_read_enough_is_no_alarm
    result = Procwright.pipeline!(["yes"], ["head", "-1"])
    assert_equal "y\n", result.stdout
    assert_predicate result, :success?
    assert_equal [0, nil], [result.exitstatus, result.termsig]
    assert_equal %i[forgiven success], judged(result)
    assert_equal "SIGPIPE", result.stages[0].status.signal_name
    assert_equal [:finished, :forgiving, "ended well", []], [result.reason, result.rule, result.outcome, result.failed]
    refute_predicate result, :timed_out?
  end

  def test_what_catches_the_error_is_forgiven_by_its_words
    ruby = "begin; loop { $stdout.syswrite(%(y\n)) }; rescue Errno::EPIPE => e; abort e.message; end"
    result = pipeline([RbConfig.ruby, "--disable-gems", "-e", ruby], ["head", "-1"])
    assert_equal %i[forgiven success], judged(result)
    assert_match(/Broken pipe/, result.stages[0].stderr)
  end

  {
    "exit 1" => ["cat", %i[failed success], 1, nil],
    "echo x; exit 3" => ["cat", %i[failed success], 3, nil],
    "exec yes" => ["read x; exit 3", %i[collateral failed], 3, nil],
    "kill -KILL $$" => ["cat", %i[failed success], nil, 9],
    "exit 4" => ["cat; exit 3", %i[failed failed], 3, nil]
  }.each do |first, (second, judgements, code, signal)|
    define_method("test_every_status_counts: #{first} | #{second}") do
      result = pipeline(shell(first), shell(second))
      refute_predicate result, :success?
      assert_equal [judgements, code, signal], [judged(result), result.exitstatus, result.termsig]
      error = assert_raises(Procwright::CommandFailed) { result.check! }
      assert_same result, error.result
      assert_match(/stage/, error.message)
    end
  end

  def test_the_error_names_the_stage_its_stderr_and_who_is_collateral
    error = assert_raises(Procwright::CommandFailed) do
      Procwright.pipeline!(["yes"], shell("read x; echo why >&2; exit 3"))
    end
    assert_includes error.message, "stage 2 of 2: sh -c 'read x; echo why >&2; exit 3' exited with code 3"
    assert_includes error.message.split("the end of stderr:").last, "why"
    assert_includes error.message, "stage 1 of 2: yes was killed by SIGPIPE, since the next one had failed"
    assert_equal "why\n", error.result.stderr
    assert_equal ["sh"], error.result.failed.map { |stage| stage.argv.first }
  end

  def test_rules_and_codes
    assert_equal %i[failed success], judged(pipeline(["yes"], ["head", "-1"], success: :strict))
    last = pipeline(["false"], ["true"], success: "last")
    assert_predicate last, :success?
    assert_equal %i[ignored success], judged(last)
    assert_predicate pipeline(%w[echo a], %w[grep b], ok_codes: { 1 => [1] }), :success?
    refute_predicate pipeline(%w[echo a], %w[grep b], ok_codes: { 0 => [1] }), :success?
  end

  def test_what_the_first_reads
    assert_equal "a\nb\n", pipeline("cat", "sort", input: "b\na\n").stdout
    assert_equal "a\nb\n", pipeline("cat", "sort", stdin: %W[b\n a\n].each).stdout
    assert_equal "a\nb\n", pipeline("cat", "sort", stdin: StringIO.new("b\na\n")).stdout
    assert_equal "", pipeline("cat", "sort").stdout
    much = "x" * 1_000_000
    assert_equal much.bytesize, pipeline("cat", "cat", "cat", input: much).stdout.bytesize
    assert_predicate pipeline("true", "cat", input: much), :success?
    Dir.mktmpdir do |folder|
      File.write("#{folder}/in", "b\na\n")
      assert_nil pipeline("cat", "sort", stdin: Pathname("#{folder}/in"), stdout: "#{folder}/out").stdout
      assert_equal "a\nb\n", File.read("#{folder}/out")
    end
  end

  def test_options_of_all_and_of_a_stage
    own = { argv: "echo $WORD", shell: true, extra_env: { "WORD" => "own" } }
    assert_equal "own\n", pipeline(own, "cat", extra_env: { "WORD" => "all" }).stdout
    assert_equal "all\n", pipeline(shell("echo $WORD"), "cat", extra_env: { "WORD" => "all" }).stdout
    assert_equal "first\n", pipeline([{ "WORD" => "first" }, *shell("echo $WORD")], "cat").stdout
    assert_equal "/\n", pipeline("pwd", "cat", chdir: "/").stdout
    assert_equal "out\nerr\n", pipeline(shell("echo out; echo err >&2"), "cat", stderr: :merged).stdout
    each = pipeline(shell("echo one >&2"), shell("echo two >&2"))
    assert_equal ["one\ntwo\n", %W[one\n two\n]], [each.stderr, each.stages.map(&:stderr)]
    assert_nil pipeline("true", "true", stderr: :null).stderr
    assert_equal [Encoding::BINARY], pipeline("echo", "cat", binmode: true).stages.map { |one| one.stderr.encoding }.uniq
    assert_equal "019\n", pipeline(%w[echo 0123456789], "cat", limit: 4).stdout
  end

  def test_the_one_that_holds_up_the_rest_is_named
    error = assert_raises(Procwright::TimeoutExpired) { pipeline(%w[sleep 1000], "cat", "cat", timeout: 0.3) }
    assert_kind_of Timeout::Error, error
    assert_includes error.message, "stage 1 of 3 held up the rest: sleep 1000"
    assert_equal %i[failed collateral collateral], judged(error.result)
    assert_predicate error.result, :timed_out?
    returned = pipeline(%w[sleep 1000], "cat", timeout: 0.3, on_timeout: :return)
    assert_equal [:timeout, false], [returned.reason, returned.success?]
    assert_raises(Procwright::IdleTimeout) { pipeline(%w[sleep 1000], "cat", idle_timeout: 0.3) }
    assert_raises(Procwright::OutputLimitExceeded) { pipeline("yes", "cat", limit: Procwright::Limit.new(1000, beyond: :fail)) }
    # That of a stage alone stops all as well.
    own = { argv: %w[sleep 1000], timeout: 0.3 }
    assert_equal %i[failed collateral], judged(pipeline(own, "cat", on_timeout: :return))
  end

  def test_a_cancel_stops_all
    cancel = Procwright::Cancel.new
    # One that is cancelled before its start has no result.
    running = thread { pipeline(%w[sleep 1000], [marked, "cat"], cancel: cancel) }
    eventually { !gone? }
    cancel.cancel
    error = running.value
    assert_instance_of Procwright::Cancelled, error
    assert_equal :cancelled, error.result.reason
    assert_nil assert_raises(Procwright::Cancelled) { pipeline("true", "true", cancel: cancel) }.result
  end

  def test_what_feeds_it_and_raises_stops_all
    source = Enumerator.new { |to| to << "x"; raise KeyError, "mine" }
    assert_equal "mine", assert_raises(KeyError) { pipeline("cat", "cat", stdin: source) }.message
  end

  def test_an_event_of_a_stage
    events = Thread::Queue.new
    holder = [CHILD, "fork-holder", "0", "--print-ready", "--say", "own"]
    running = thread { pipeline("true", holder, on_event: ->(event) { events << event }) }
    event = events.pop
    assert_equal :held, event.kind
    Process.kill(:KILL, event.holders.first.pid)
    assert_predicate running.value, :success?
    assert_raises(KeyError) { pipeline("true", holder, on_event: ->(_event) { raise KeyError }) }
  end

  def test_all_are_started_or_none
    Dir.mktmpdir do |folder|
      error = assert_raises(Errno::ENOENT) { pipeline(["mkdir", "#{folder}/made"], "cat", "no-such-program") }
      assert_kind_of Procwright::SpawnError, error
      assert_equal [2, :exec], [error.stage, error.step]
      assert_match(/stage 3 of 3, no-such-program/, error.message)
      assert_empty Dir.children(folder)
    end
    assert_nil assert_raises(Procwright::SpawnError) { Procwright.run("no-such-program") }.stage
  end

  {
    [] => "stages is []: a pipeline has one program at least; ", ["cat x"] => 'stage 1: the program and its arguments are one string, "cat x". Pass ["cat", "x"] for it', ["cat", ["cat", nil]] => "stage 2: argv[1] is nil: ",
    ["cat", []] => "stage 2: argv is [], which is empty: ", ["cat", [""]] => "stage 2: argv",
    ["cat", { cwd: "/" }] => "stage 2: it is #{{ cwd: '/' }}, which has no argv: ",
    ["cat", { argv: ["cat"], stdin: :null }] => "stage 2: stdin is :null, and a stage has no such keyword: it is one of the whole",
    ["cat", { argv: ["cat"], nice: "x" }] => 'stage 2: nice is "x": ',
    ["cat", { argv: ["cat"], user: "no such" }] => 'stage 2: user is "no such", which is not known'
  }.each do |stages, text|
    define_method("test_a_bad_stage: #{stages}") do
      error = assert_raises(Procwright::InvalidValue) { pipeline(*stages) }
      assert_operator error.message, :start_with?, text
    end
  end

  {
    { pty: true } => "pty is true, and pipeline has no such keyword: a terminal has both ends",
    { pipefail: true } => "pipefail is true, and pipeline has no such keyword: pass success: :strict",
    { check: true } => "check is true, and pipeline has no such keyword: use pipeline!",
    { success: :maybe } => "success is :maybe: use :forgiving, :strict or :last",
    { ok_codes: { 1 => [1] } } => "a stage in ok_codes is 1: ", { ok_codes: { 0 => [256] } } => "ok_codes[0][0] is 256: ",
    { elastic: { 0 => true } } => "a stage in elastic is 0: pass true, ", { elastic: 5 } => "elastic is 5: ",
    { overflow: :spill } => "overflow is :spill, and pipeline has no such keyword: pass elastic:",
    { input: "", stdin: :null } => "stdin and input are both given",
    { user: "no such" } => 'user is "no such", which is not known',
    { idle_timeout: 1, stdout: :null, stderr: :null } => "idle_timeout is 1, which needs a captured stream"
  }.each do |options, text|
    define_method("test_a_bad_option: #{options}") do
      error = assert_raises(Procwright::InvalidValue) { pipeline("cat", **options) }
      assert_operator error.message, :start_with?, text
    end
  end

  def burst(folder)
    gate = "#{folder}/gate"
    File.mkfifo(gate)
    [["sh", "-c", "head -c 4000000 /dev/zero; echo written > #{gate}"], ["sh", "-c", "read line < #{gate}; wc -c"]]
  end

  {
    "true" => true, "a stage" => { 0 => true }, "a policy" => Procwright::Overflow.new(:drop_newest, memory: "8MiB"),
    "a policy of a stage" => { 0 => Procwright::Overflow.new(memory: "64KiB", disk: "64MiB") }
  }.each do |name, elastic|
    define_method("test_a_buffer_lets_a_stage_end_at_its_own_speed: #{name}") do
      Dir.mktmpdir do |folder|
        # Without a buffer each would wait for the other.
        result = Procwright.pipeline!(*burst(folder), elastic: elastic)
        assert_equal "4000000", result.stdout.strip
        first, second = result.stages
        assert_equal [4_000_000, 4_000_000, 0], first.elastic.values_at(:bytes_in, :bytes_out, :lag_bytes)
        assert_operator first.elastic[:peak_bytes], :>, 3_000_000
        assert_equal first.elastic, result.to_h[:stages][0][:elastic]
        assert_nil second.elastic
      end
    end
  end

  def test_no_buffer_where_none_is_asked_for
    [false, {}, { 0 => false }, Procwright::Overflow.new(:block)].each do |elastic|
      assert_equal [nil, nil], pipeline("true", "cat", elastic: elastic).stages.map(&:elastic)
    end
    assert_equal [true, false, true], pipeline("true", "cat", "cat", elastic: { 1 => true }).stages.map { |stage| stage.elastic.nil? }
    error = assert_raises(Procwright::InvalidValue) { pipeline("true", "cat", elastic: { 0 => :spill }) }
    assert_operator error.message, :start_with?, "elastic[0] is :spill: "
  end

  def test_stages_do_not_cut_off_each_others_file
    Dir.mktmpdir do |folder|
      log = "#{folder}/log"
      error = assert_raises(Procwright::InvalidValue) { pipeline("true", "true", stderr: log) }
      assert_match(/\Astderr is .*: two stages would open that file/, error.message)
      refute_path_exists log
      pipeline(shell("echo one >&2"), shell("cat; echo two >&2"), stderr: [log, "a"])
      assert_equal "one\ntwo\n", File.read(log)
      pipeline("true", "true", stderr: File::NULL)
    end
  end

  def test_plain_values
    result = pipeline("false", "cat")
    parts = result.to_h
    assert_equal [false, :failed, ""], [parts[:success], parts[:stages][0][:judgement], parts[:stages][1][:stdout]]
    assert_equal "#<Procwright::PipelineResult failed: stage 1 of 2 exited with code 1 (false: failed, cat: success)>", result.inspect
    assert_equal "false | cat failed: stage 1 of 2 exited with code 1", result.summary
    case result
    in { success: false, failed: [{ argv: ["false"], judgement: :failed, exitstatus: 1 }] } then pass
    end
    assert_kind_of Procwright::Result, result.stages.first
  end

  def test_nothing_is_left
    pipeline("true", "cat")
    before = fds
    20.times { pipeline("yes", "cat", %w[head -1]) }
    20.times { raised { pipeline("yes", "no-such-program") } }
    # Descriptors of other tests may go meanwhile; the stack may seem to have some of these still.
    eventually { fds <= before + 10 || (GC.start; false) }
  end
end

# Interrupts and fibers in a pipeline.
class TestPipelineInterrupts < Minitest::Test
  include Sleeper

  def running(**options)
    stages = [[marked, CHILD, "ignore-term", "--print-ready"], [marked, CHILD, "cat"]]
    Thread.new { Procwright.pipeline(*stages, **options) }.tap { |thread| thread.report_on_exception = false }
  end

  def processes
    Dir.glob("/proc/[0-9]*/environ").count { |file| File.binread(file).include?("PROCWRIGHT_MARK=#{mark}") rescue false }
  end

  # The child of the test is one of those with the mark.
  def until_all_run = eventually { processes > 2 }

  %i[raise kill].each do |how|
    define_method("test_#{how}_leaves_nothing_behind") do
      thread = running(stop: { grace: 0 })
      until_all_run
      how == :raise ? thread.raise(Boom) : thread.kill
      assert_equal(how == :raise ? Boom : NilClass, raised { thread.value }.class)
      @child.stop
      eventually { gone? }
    end
  end

  def test_a_second_time_ends_the_grace
    thread = running(stop: { grace: 100_000 })
    until_all_run
    # Whether or not it ignores the signal by then: the first exception is the one that comes.
    thread.raise(Boom, "first")
    thread.raise(Boom, "second")
    assert_equal "first", assert_raises(Boom) { thread.value }.message
    @child.stop
    eventually { gone? }
  end

  def test_a_signal_handler_stops_all
    code = <<~RUBY
      trap(:USR1) { raise KeyError, "rung" }
      child = ENV.fetch("PROCWRIGHT_TEST_CHILD")
      begin
        Thread.new do
          sleep 0.01 until Dir.glob("/proc/self/task/*/children").sum { |file| File.read(file).split.size rescue 0 } > 1
          Process.kill(:USR1, $$)
        end
        Procwright.pipeline([child, "sleep-forever"], [child, "cat"])
      rescue KeyError => e
        puts e.message
      end
      puts Dir.glob("/proc/self/task/*/children").sum { |file| File.read(file).split.size rescue 0 }
    RUBY
    assert_equal "rung\n0\n", ruby(code).stdout
  end

  def test_timeout_acts
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { Procwright.pipeline([marked, CHILD, "sleep-forever"], "cat") } }
    @child.stop
    eventually { gone? }
  end

  def test_a_fork_of_a_handler_has_none_of_it
    code = <<~RUBY
      child = ENV.fetch("PROCWRIGHT_TEST_CHILD")
      forked = nil
      cancel = Procwright::Cancel.new
      trap(:USR1) { forked ||= fork }
      Thread.new do
        sleep 0.01 until Dir.glob("/proc/self/task/*/children").sum { |file| File.read(file).split.size rescue 0 } > 1
        Process.kill(:USR1, $$)
        sleep 0.01 until forked
        Process.wait(forked)
        puts "parent"
        $stdout.flush
        cancel.cancel
      end
      begin
        Procwright.pipeline([child, "sleep-forever"], [child, "cat"], cancel: cancel)
      rescue Errno::ECHILD
        print "fork "
        $stdout.flush
        exit!
      rescue Procwright::Cancelled => e
        puts e.result.reason
      end
    RUBY
    assert_equal "fork parent\ncancelled\n", ruby(code).stdout
  end
end
