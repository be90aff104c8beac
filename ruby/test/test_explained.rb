# frozen_string_literal: true

require_relative "helper"

# What a program waits for, and why it does not end.
class TestExplained < Minitest::Test
  # Reads its stdin in a child of its own.
  READER = ["sh", "-c", "cat; exit 3"].freeze
  NOWHERE = { stdout: :null, stderr: :null }.freeze

  # What it waits for, once that is as it should be: nothing announces it.
  def waits_for(child, kind)
    loop do
      waiting = child.waiting_for
      return waiting if waiting.kind == kind
    end
  end

  def test_a_wait_for_a_word_says_why_there_is_none
    child = Procwright.spawn("cat", stdin: :pipe)
    sleep 0.001 until child.waiting_for.kind == :input
    [-> { child.wait_for("x", timeout: 1) }, -> { child.stdout.gets(timeout: 1) }].each do |call|
      error = assert_raises(Procwright::WaitTimeout, &call)
      assert_match(/^  why: cat \(#{child.pid}\) waits for input on stdin, pipe /, error.message)
    end
    error = assert_raises(Procwright::WaitTimeout) { child.stdout.gets(timeout: 0.05) }
    refute_includes error.message, "why:"
    error = assert_raises(Procwright::EndedBeforeMatch) { Procwright.spawn("exit 4", shell: true).wait_for("x") }
    assert_includes error.message, " exited with code 4 before it said /x/"
  ensure
    child&.stop
  end

  def test_a_wait_for_a_word_says_what_its_processes_do_where_it_waits_for_nobody
    child = Procwright.spawn("while :; do :; done", shell: true)
    [-> { child.wait_for("x", timeout: 1) }, -> { child.stdout.gets(timeout: 1) }].each do |call|
      error = assert_raises(Procwright::WaitTimeout, &call)
      assert_match(/\n  its processes:\n    sh \(pid #{child.pid}\)/, error.message)
    end
    error = assert_raises(Procwright::WaitTimeout) { child.wait_for("x", timeout: 0.05) }
    refute_includes error.message, "its processes"
  ensure
    child&.stop
  end

  def test_input_on_stdin_is_held_by_us
    child = Procwright.spawn(*READER, stdin: :pipe, **NOWHERE)
    waiting = waits_for(child, :input)
    assert_equal ["cat", 0, false], [waiting.name, waiting.fd, waiting.terminal?]
    refute_equal child.pid, waiting.pid
    assert waiting.to_s.start_with?("cat (#{waiting.pid}) waits for input on stdin, pipe "), waiting.to_s
    ours = waiting.holders.find { |holder| holder.pid == ::Process.pid }
    assert_equal ::Process.pid, ours.process.pid
    with_time do |seconds|
      error = assert_raises(Procwright::WaitTimeout) { child.wait(timeout: seconds) }
      assert_match(/\n  why: cat \(\d+\) waits for input on stdin/, error.message)
    end
    child.stdin.close
    child.wait
    assert_equal "sh (#{child.pid}) has ended", child.waiting_for.message
  end

  def test_why_it_does_not_end
    child = Procwright.spawn(*READER, stdin: :pipe, **NOWHERE)
    waits_for(child, :input)
    diagnosis = child.explain
    assert_equal :input, diagnosis.waiting.kind
    assert_equal diagnosis.waiting.message, diagnosis.why
    assert_equal diagnosis.verdict.to_s, diagnosis.to_h["verdict"]
    assert_includes diagnosis.to_s, "Looked twice"
    child.stdin.close
    child.wait
    assert_raises(Procwright::NoSuchProcess) { child.explain }
  end

  def test_it_is_told_while_it_goes_on
    theirs, ours = IO.pipe
    events = []
    tell = lambda do |event|
      events << event
      # Now its input ends, and with it the program.
      ours.close
    end
    result = Procwright.run(*READER, stdin: theirs, explain_after: 0.3, on_event: tell)
    assert_equal 3, result.exitstatus
    assert_equal [:explained], events.map(&:kind)
    assert events[0].to_s.start_with?("sh -c 'cat; exit 3' has not ended after 0.3 s: "), events[0].to_s
    assert_instance_of Procwright::Diagnosis, events[0].diagnosis
  ensure
    theirs.close
  end

  def test_nothing_is_told_of_a_run_that_is_over_first
    events = []
    assert Procwright.run("true", explain_after: 600, on_event: ->(event) { events << event }).success?
    assert_empty events
  end

  def test_a_timeout_says_why
    (0..).each do |doubled|
      theirs, ours = IO.pipe
      error = assert_raises(Procwright::TimeoutExpired) { Procwright.run(*READER, stdin: theirs, timeout: [2**doubled, 20].min) }
      # A busy machine takes a longer limit, a quarter of which is for the look, up to 5 s.
      next unless error.message.include?("\n  why: ")

      assert_includes error.message, "waits for input on stdin, pipe "
      assert_equal error.message[/\n  why: (.*)/, 1], error.result.why
      assert_equal error.result.why, error.result.to_h[:why]
      break
    ensure
      [theirs, ours].each(&:close)
    end
  end

  # The text of the error of a block that is given a limit which leaves enough time.
  def says_why
    [1, 2, 4, 8, 20].each do |limit|
      theirs, ours = IO.pipe
      error = assert_raises(Procwright::TimeoutExpired) { yield limit, theirs }
      return error.message if error.message.include?("why: ")
    ensure
      [theirs, ours].each(&:close)
    end
    flunk "no look was over within 5 s, a quarter of the longest limit"
  end

  def test_a_child_that_comes_to_its_limit_says_why
    text = says_why { |timeout, stdin| Procwright.spawn(*READER, stdin: stdin, timeout: timeout).result }
    assert_match(/\n  why: cat \(\d+\) waits for input on stdin, pipe /, text)
  end

  def test_a_pipeline_says_which_stage_holds_up_the_rest_and_why
    text = says_why { |timeout, stdin| Procwright.pipeline(READER, %w[wc], stdin: stdin, timeout: timeout) }
    assert_includes text, "\n  stage 1 of 2 held up the rest: sh -c 'cat; exit 3' timed out"
    assert_match(/\n    why: cat \(\d+\) waits for input on stdin, pipe /, text)
  end

  def test_what_makes_no_sense_is_refused
    assert_raises(Procwright::InvalidValue) { Procwright.run("true", explain_after: Float::NAN) }
    assert_raises(Procwright::InvalidValue) { Procwright.spawn("true", explain_after: 1) }
    assert_raises(Procwright::InvalidValue) { Procwright.map([%w[true]], explain_after: 1) }
  end
end
