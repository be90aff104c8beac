# frozen_string_literal: true

require_relative "helper"

# Limits of a child that is held, and what a wait says that has come to its time.
class TestSpawnLimits < Minitest::Test
  SOON = Procwright::Stop.new(grace: 0.02)
  SHORT = 0.05

  def sleeper(**options) = Procwright.spawn(CHILD, "sleep-forever", stop: SOON, **options)

  # Whatever may be called next.
  WAYS = %i[wait communicate result].freeze

  def test_a_time_that_is_over_stops_it_and_is_raised
    [[{ timeout: SHORT }, Procwright::TimeoutExpired, :timeout],
     [{ timeout: 0 }, Procwright::TimeoutExpired, :timeout],
     [{ idle_timeout: SHORT }, Procwright::IdleTimeout, :idle_timeout]].each do |options, error, reason|
      WAYS.each do |way|
        child = sleeper(**options)
        # Each time, and not by those that only ask.
        2.times do
          raised = assert_raises(error) { child.public_send(way) }
          assert_equal reason, raised.result.reason
          refute_empty raised.result.processes
        end
        assert_equal "TERM", child.status.signal_name.delete_prefix("SIG")
      end
    end
  end

  def test_a_search_that_ends_with_a_limit_says_which
    [[{ timeout: SHORT }, Procwright::TimeoutExpired, :timeout],
     [{ idle_timeout: SHORT }, Procwright::IdleTimeout, :idle_timeout]].each do |options, error, reason|
      child = sleeper(**options)
      # Also once it is known to have ended.
      2.times { assert_equal reason, assert_raises(error) { child.wait_for(/never/) }.result.reason }
    end
    flood = Procwright.spawn("yes", stop: SOON, limit: Procwright::Limit.new(1000, beyond: :fail))
    assert_raises(Procwright::OutputLimitExceeded) { flood.wait_for(/never/) }
    cancel = Procwright::Cancel.new
    child = sleeper(cancel: cancel)
    cancel.cancel
    assert_raises(Procwright::Cancelled) { child.wait_for(/never/) }
    child = sleeper(timeout: SHORT, on_timeout: :return)
    assert_raises(Procwright::EndedBeforeMatch) { child.wait_for(/never/) }
    assert_equal :timeout, child.result.reason
  end

  def test_a_block_that_ends_is_told
    assert_raises(Procwright::TimeoutExpired) { Procwright.spawn(CHILD, "sleep-forever", stop: SOON, timeout: SHORT) { nil } }
  end

  def test_what_was_written_is_in_the_result
    %i[communicate result].each do |way|
      with_time do |seconds|
        child = Procwright.spawn("sh", "-c", "echo out; echo err >&2; sleep 1000", timeout: seconds)
        raised = assert_raises(Procwright::TimeoutExpired) { child.public_send(way) }
        assert_equal %W[out\n err\n], [raised.result.stdout, raised.result.stderr]
        assert_includes raised.message, "the end of stderr:\n    err"
      end
    end
  end

  def test_on_timeout_return
    child = sleeper(timeout: SHORT, on_timeout: :return)
    assert_nil child.wait.exitstatus
    assert_equal ["", ""], child.communicate
    assert_equal :timeout, child.result.reason
  end

  def test_a_child_that_ends_in_time
    cancel = Procwright::Cancel.new
    limit = Procwright::Limit.new(2, beyond: :fail)
    child = Procwright.spawn(CHILD, "echo", "x", timeout: 3600, idle_timeout: 3600, limit: limit, cancel: cancel)
    assert_equal ["x\n", ""], child.communicate
    assert_equal 0, child.wait.exitstatus
  end

  def test_a_limit_of_output
    child = Procwright.spawn(CHILD, "flood-forever", stop: SOON, limit: Procwright::Limit.new("64KiB", beyond: :fail))
    raised = assert_raises(Procwright::OutputLimitExceeded) { child.communicate }
    assert_equal 65_536, raised.result.stdout.bytesize
  end

  def test_whoever_reads_gets_the_limit_and_not_a_byte_more
    read = nil
    # It goes on writing for all of the grace.
    raised = assert_raises(Procwright::OutputLimitExceeded) do
      Procwright.spawn("trap '' TERM; exec yes", shell: true, stop: SOON, limit: Procwright::Limit.new("64KiB", beyond: :fail)) do |child|
        read = child.stdout.read
      end
    end
    assert_equal 65_536, read.bytesize
    info = raised.result.stdout_info
    assert_operator info.dropped_bytes, :>, 0
    assert_equal info.bytes, info.kept_bytes + info.dropped_bytes
  end

  def test_a_cancel
    cancel = Procwright::Cancel.new
    children = Array.new(4) { sleeper(cancel: cancel) }
    Thread.new { cancel.cancel }
    children.each { |child| assert_raises(Procwright::Cancelled) { child.wait } }
    assert_raises(Procwright::Cancelled) { sleeper(cancel: cancel) }
  end

  def test_until_exit
    child = Procwright.spawn("sh", "-c", "sleep 1000 & echo $!; exit 3", until: :exit)
    pid = Integer(child.stdout.read)
    assert_equal 3, child.result.exitstatus
    assert_equal [pid], child.result.stderr_info.held_by.map(&:pid)
  ensure
    Process.kill(:KILL, pid) if pid
  end

  def test_what_makes_no_sense_is_refused
    fails = Procwright::Limit.new(9, beyond: :fail)
    { { limit: 9 } => "limit is 9, which ", { limit: fails, overflow: :block } => "limit is ",
      { idle_timeout: 9, overflow: :block } => "idle_timeout is 9, which needs the streams to be read ahead",
      { until: :exit, overflow: :block } => "until is :exit, which needs the streams" }.each do |options, text|
      error = assert_raises(Procwright::InvalidValue) { Procwright.spawn("x", **options) }
      assert error.message.start_with?(text), error.message
    end
  end

  def test_a_wait_that_times_out_says_what_it_does
    child = sleeper
    WAYS.each do |way|
      error = assert_raises(Procwright::WaitTimeout) { child.public_send(way, timeout: 0.2) }
      assert error.message.start_with?("#{CHILD} sleep-forever did not end within 0.2 s\n  its processes:"), error.message
    end
    # Who asks again and again is not kept by a look at all processes.
    error = assert_raises(Procwright::WaitTimeout) { child.wait(timeout: 0.01) }
    assert_equal "#{CHILD} sleep-forever did not end within 0.01 s", error.message
    child.stop
  end

  def test_it_tells_an_exit_from_a_stream_that_others_hold
    # By the time of the words it is called so.
    named = "until read name < /proc/$!/comm && [ $name = sleep ]; do :; done"
    child = Procwright.spawn("sh", "-c", "sleep 1000 & #{named}; echo $! words >&2; exit 3")
    assert_equal 3, child.wait.exitstatus
    %i[communicate result].each do |way|
      error = assert_raises(Procwright::WaitTimeout) { child.public_send(way, timeout: 0.5) }
      told = /exited with code 3; after 0\.5 s stdout and stderr are still held open by sleep \(pid (\d+)\)/
      assert_match told, error.message
      assert_match(/the end of stderr:\n {4}#{error.message[told, 1]} words/, error.message)
    end
    child.stop
  end
end
