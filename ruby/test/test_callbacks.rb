# frozen_string_literal: true

require_relative "helper"

# Callbacks that take their time, never return, or raise: no deadline waits for them, they
# have the grace of the stop, and no exception is lost.
class TestCallbacks < Minitest::Test
  include Helper

  class Boom < StandardError; end

  SOON = Procwright::Stop.new(grace: 0.05)
  LATER = Procwright::Stop.new(grace: 1000)
  LINES = "i=0; while [ $i -lt 100 ]; do echo $i; i=$((i+1)); done; exec sleep 1000000"

  # A callback that is at work until the run is over, and says so.
  class Stuck
    attr_reader :reached, :passed

    def call(*)
      @reached = true
      sleep 20
      @passed = true
    end
  end

  def test_an_event_hook_that_blocks_holds_up_no_deadline
    stuck = Stuck.new
    error = assert_raises(Procwright::TimeoutExpired) do
      Procwright.run(CHILD, "fork-holder", "0", timeout: 1.3, stop: SOON, on_event: stuck)
    end
    assert stuck.reached
    refute stuck.passed
    assert_empty error.result.survivors
  end

  def test_an_event_hook_is_interrupted_with_its_run
    inside = Queue.new
    thread = thread do
      Procwright.run(CHILD, "fork-holder", "0", stop: SOON, on_event: ->(_) { inside << 1; sleep })
    end
    inside.pop
    thread.raise(Boom)
    assert_instance_of Boom, thread.value
  end

  # An `ensure` that takes its time is not waited for.
  def test_the_end_of_a_callback_holds_up_nothing
    %i[on_line on_event].each do |name|
      left = false
      callback = lambda do |*|
        sleep
      ensure
        sleep 20
        left = true
      end
      assert_raises(Procwright::TimeoutExpired) do
        Procwright.run(CHILD, "fork-holder", "0", "--say", "own", timeout: 1.3, stop: SOON, name => callback)
      end
      refute left
    end
  end

  def test_a_line_callback_has_the_grace
    lines = []
    slow = lambda do |line|
      sleep 0.015
      lines << line
    end
    error = assert_raises(Procwright::TimeoutExpired) do
      Procwright.run(LINES, shell: true, timeout: 0.2, stop: LATER, on_stdout_line: slow)
    end
    assert_equal 100, lines.size
    assert_equal 0, error.result.stdout_info.undelivered_bytes
  end

  def test_the_second_exception_is_told
    ended = Struct.new(:error)
    callbacks = [ended.new(Boom.new("first")), ended.new(nil), ended.new(Boom.new("second"))]
    threads = Procwright.const_get(:CallbackThread)
    _, told = capture_io do
      error = assert_raises(Boom) { threads.raising_errors_of(callbacks) { raise Procwright::InternalError, "x" } }
      assert_equal "first", error.message
    end
    assert_match(/second \(TestCallbacks::Boom\)/, told)
    refute_match(/first/, told)
  end
end
