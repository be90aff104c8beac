# frozen_string_literal: true

require_relative "sleeper"
require "stringio"
require "tmpdir"

# `spawn_pipeline`: a pipeline that its caller holds.
class TestSpawnPipeline < Minitest::Test
  def spawn_pipeline(...) = Procwright.spawn_pipeline(...)
  def judged(result) = result.stages.map(&:judgement)
  def shell(line) = ["sh", "-c", line]

  def alive?(pid)
    File.read("/proc/#{pid}/stat")[/\) (.)/, 1] !~ /[ZX]/
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end

  def test_a_talk_with_all_stages
    child = nil
    value = spawn_pipeline("cat", "cat", ["cat"], stdin: :pipe) do |one|
      child = one
      %W[pear\n äpple\n].each do |said|
        one.stdin.write(said)
        assert_equal said, one.stdout.gets
      end
      assert_nil one.poll
      assert_nil one.exitstatus
      assert_predicate one, :alive?
      assert_equal 3, one.pids.size
      assert(one.pids.all? { |pid| alive?(pid) })
      :value
    end
    assert_equal :value, value
    refute_predicate child, :alive?
    assert_equal 0, child.exitstatus
    assert_equal [%w[cat]] * 3, child.argvs
    assert_equal %i[success] * 3, judged(child.result)
    assert_includes child.inspect, "ended well"
  end

  def test_lines_and_stderr_of_each_stage
    child = spawn_pipeline(shell("echo one >&2; echo a"), shell("echo two >&2; cat"))
    assert_equal ["a\n"], child.stdout.to_a
    assert_equal %W[one\n two\n], child.stderr.map(&:read)
    assert_nil child.stdin
    assert_predicate child.wait, :success?
    assert_equal ["", ""], [child.result.stdout, child.result.stderr]
  end

  def test_outputs_that_go_elsewhere
    Dir.mktmpdir do |folder|
      child = spawn_pipeline(shell("echo why >&2; echo a"), "cat", stdout: "#{folder}/made", stderr: :null)
      assert_nil child.stdout
      assert_equal [nil, nil], child.stderr
      assert_equal [nil, nil], child.communicate
      assert_equal "a\n", File.read("#{folder}/made")
    end
    assert_equal ["out\nerr\n", nil], spawn_pipeline(shell("echo out; echo err >&2"), "cat", stderr: :merged).communicate
  end

  def test_communicate_takes_more_than_pipes_hold
    data = "x" * 3_000_000
    child = spawn_pipeline("cat", "cat", stdin: :pipe)
    assert_equal [data, ""], child.communicate(data)
    assert_equal data, child.result.stdout
    assert_same child.result, child.result
    assert_raises(Procwright::InvalidValue) { child.communicate("x") }
    assert_equal ["a\nb\n", ""], spawn_pipeline("cat", "sort", input: "b\na\n").communicate
  end

  def test_it_is_judged_as_one_that_is_run
    [
      [["yes", %w[head -1]], {}], [["yes", %w[head -1]], { success: :strict }], [%w[false cat], {}],
      [%w[false true], { success: :last }], [[%w[echo a], %w[grep b]], { ok_codes: { 1 => [1] } }],
      [["yes", shell("read x; echo why >&2; exit 3")], {}], [[shell("echo half; exit 3"), "cat"], { elastic: true }],
      [[{ argv: ["echo $W"], shell: true, extra_env: { "W" => "own" } }, "cat"], {}]
    ].each do |stages, options|
      run = Procwright.pipeline(*stages, **options)
      held = spawn_pipeline(*stages, **options).result
      facts = %i[success? outcome rule reason exitstatus termsig stdout stderr explanation]
      assert_equal facts.map { |one| run.public_send(one) }, facts.map { |one| held.public_send(one) }
      assert_equal judged(run), judged(held)
    end
  end

  def test_a_wait_says_which_stages_have_not_ended
    child = spawn_pipeline("true", %w[sleep 1000], "cat", stop: :KILL)
    # A time of a second or more has a look at why.
    with_time(1) do |seconds|
      error = assert_raises(Procwright::WaitTimeout) { child.wait(timeout: seconds) }
      assert_includes error.message, "true | sleep 1000 | cat did not end within "
      assert_includes error.message, "stage 2 of 3 has not ended: sleep 1000 (pid #{child.pids[1]})"
      assert_includes error.message, "why: "
    end
    assert_raises(Procwright::WaitTimeout) { child.communicate(timeout: 0) }
    assert_raises(Procwright::WaitTimeout) { child.result(timeout: 0.01) }
  ensure
    assert_empty child.stop
    assert_equal :cancelled, child.result.reason
  end

  def test_a_limit_holds_and_names_who_held_up_the_rest
    child = nil
    # Until then the pipe that nobody reads has to be full.
    with_time(1) do |seconds|
      child = spawn_pipeline("yes", %w[sleep 1000], "cat", timeout: seconds, stop: :KILL)
      2.times do
        error = assert_raises(Procwright::TimeoutExpired) { child.wait }
        assert_includes error.message, "stage 2 of 3 held up the rest: sleep 1000"
      end
    end
    error = assert_raises(Procwright::TimeoutExpired) { child.communicate }
    assert_equal %i[collateral failed collateral], judged(error.result)
    assert_equal :timeout, spawn_pipeline(%w[sleep 1000], timeout: 0.2, on_timeout: :return).result.reason
    assert_raises(Procwright::IdleTimeout) { spawn_pipeline(%w[sleep 1000], "cat", idle_timeout: 0.2).wait }
    limit = Procwright::Limit.new(1000, beyond: :fail)
    assert_raises(Procwright::OutputLimitExceeded) { spawn_pipeline("yes", "cat", limit: limit).wait }
    cancel = Procwright::Cancel.new
    child = spawn_pipeline(%w[sleep 1000], "cat", cancel: cancel)
    cancel.cancel
    assert_raises(Procwright::Cancelled) { child.wait }
  end

  def test_stop_and_kill
    child = spawn_pipeline(%w[sleep 1000], %w[sleep 1000])
    assert_empty child.stop
    refute(child.pids.any? { |pid| alive?(pid) })
    # Who has stopped it needs no exception for that.
    refute_predicate child.wait, :success?
    stubborn = shell("trap '' TERM; while :; do sleep 1; done")
    child = spawn_pipeline(stubborn, stubborn, stop: Procwright::Stop.new(:TERM, grace: 1000))
    child.kill
    child.wait
    assert_equal 9, child.result.stages.first.termsig
    assert_empty child.stop
  end

  def test_an_interrupt_ends_the_grace
    child = spawn_pipeline(shell("trap '' TERM; echo up; while :; do sleep 1; done"), "cat", stop: Procwright::Stop.new(:TERM, grace: 1000))
    assert_equal "up\n", child.stdout.gets
    thread = Thread.new { child.stop }
    thread.report_on_exception = false
    sleep 0.01 until thread.status == "sleep"
    thread.raise(KeyError)
    assert_raises(KeyError) { thread.value }
    refute alive?(child.pids.first)
  end

  def test_a_block_leaves_nothing_running
    pids = nil
    assert_raises(KeyError) do
      spawn_pipeline(%w[sleep 1000], "cat", stop: :KILL) do |child|
        pids = child.pids
        raise KeyError
      end
    end
    refute(pids.any? { |pid| alive?(pid) })
    assert_equal(:out, spawn_pipeline(%w[sleep 1000], "cat", stop: :KILL) { |_| break :out })
  end

  def test_all_are_started_or_none
    Dir.mktmpdir do |folder|
      error = assert_raises(Errno::ENOENT) { spawn_pipeline(["mkdir", "#{folder}/made"], "cat", "no-such-program") }
      assert_equal 2, error.stage
      refute_path_exists "#{folder}/made"
    end
  end

  def test_bad_values
    {
      [["cat"], { check: true }] => "call check! of the child's result",
      [["cat"], { pty: true }] => "a terminal has both ends",
      [["cat"], { detach: true }] => "it is ended with us",
      [["cat"], { overflow: :block }] => "overflow is :block: the outputs of a pipeline are read ahead",
      [["cat"], { stall_after: "x" }] => 'stall_after is "x"',
      [["cat"], { stdin: StringIO.new }] => "stdin is ",
      [[], {}] => "stages is []"
    }.each do |(stages, options), words|
      error = assert_raises(Procwright::InvalidValue) { spawn_pipeline(*stages, **options) }
      assert_includes error.message, words
    end
  end

  def test_it_takes_what_pipeline_takes
    options = Procwright.const_get(:Options)
    assert_equal %i[overflow stall_after], options::SPAWN_PIPELINE.keys - options::PIPELINE.keys
    assert_empty options::PIPELINE.keys - options::SPAWN_PIPELINE.keys
  end

  def test_unread_output_is_a_stall
    overflow = Procwright::Overflow.new(memory: 65_536, disk: 0)
    child = spawn_pipeline("yes", "cat", overflow: overflow, stall_after: 0.2)
    error = assert_raises(Procwright::Stalled) { child.wait }
    assert_includes error.message, "cat cannot go on: its stdout is full"
    child.stop
  end

  def test_it_is_waited_for_with_others
    child = spawn_pipeline("cat", "cat", stdin: :pipe)
    refute_predicate Procwright.wait([child], timeout: 0), :all?
    child.stdin.close
    assert_equal [child], Procwright.wait([child, $$], mode: :any).done
    refute_predicate child, :alive?
  end

  def test_who_holds_the_output_of_a_stage_is_told
    Dir.mktmpdir do |folder|
      File.mkfifo(gate = "#{folder}/gate")
      kinds = []
      # What it leaves behind has its stderr until it may go on.
      child = spawn_pipeline(shell("cat #{gate} >/dev/null & exit 0"), "cat", on_event: ->(event) { kinds << event.kind })
      sleep 0.01 while child.poll.nil? && kinds.empty?
      assert_equal [:held], kinds
      File.write(gate, "")
      assert_predicate child.wait, :success?
    end
  end

  def test_what_nobody_keeps_is_told_of_and_stopped
    result = ruby(<<~RUBY, until: :exit)
      told = []
      Warning.define_singleton_method(:warn) { |text, **| told << text }
      def start = Procwright.spawn_pipeline(["sleep", "1000"], ["sleep", "1000"]).pids
      # The stack may still seem to have the last of them.
      until told.any?
        start
        GC.start
      end
      puts told.first
    RUBY
    assert_match(/nobody keeps the pipeline sleep 1000 \| sleep 1000 \(pids \d+, \d+\)/, result.stdout, result.stderr)
  end

  def test_at_the_end_of_ruby_nobody_keeps_it
    result = ruby(<<~RUBY, until: :exit)
      child = Procwright.spawn_pipeline(["sleep", "1000"], ["sleep", "1000"])
      puts child.pids
    RUBY
    assert_match(/nobody keeps the pipeline/, result.stderr)
    pids = result.stdout.lines.map(&:to_i)
    assert_equal 2, pids.size
    refute(pids.any? { |pid| alive?(pid) })
  end
end
