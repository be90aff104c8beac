# frozen_string_literal: true

require_relative "queue_helper"

# What a call raises whose program has gone: it says why.
class TestOtherSide < Minitest::Test
  include QueueHelper

  SOON = Procwright::Stop.new(grace: 0.02)
  SHORT = 0.05
  FAILS = ["sh", "-c", "echo 'the reason' >&2; exit 3"].freeze

  # Repeats a call that does not wait until it says why: the end of a pipe or queue comes before that
  # of the program.
  UNTIL_TOLD = lambda do |call|
    call.() while true
  rescue Errno::EPIPE, Q::Closed, Q::ReceiverDead => e
    raise if e.cause

    Thread.pass
    retry
  end

  # Each with the options of the child, and what is called on it once it has gone.
  CALLS = {
    "recv" => [{ channel: :from_child }, ->(one) { one.receiver.recv }],
    "recv with a time" => [{ channel: :from_child }, ->(one) { one.receiver.recv(timeout: 100) }],
    "recv_many" => [{ channel: :from_child }, ->(one) { one.receiver.recv_many(2) }],
    "sender" => [{ channel: :to_child }, lambda(&:sender)],
    "write" => [{ stdin: :pipe }, ->(one) { loop { one.stdin.write("x") } }],
    "write much" => [{ stdin: :pipe }, ->(one) { loop { one.stdin.write("x" * (1 << 20)) } }],
    "puts" => [{ stdin: :pipe }, ->(one) { loop { one.stdin.puts("x") } }],
    "print" => [{ stdin: :pipe }, ->(one) { loop { one.stdin.print("x") } }],
    "write_nonblock" => [{ stdin: :pipe }, ->(one) { UNTIL_TOLD.(-> { one.stdin.write_nonblock("x", exception: false) }) }]
  }.freeze

  def sleeper(**options) = Procwright.spawn(CHILD, "sleep-forever", stop: SOON, timeout: SHORT, **options)

  def test_of_one_that_its_timeout_has_stopped_a_call_raises_that
    CALLS.each do |name, (options, call)|
      error = assert_raises(Procwright::TimeoutExpired, name) { call.(sleeper(**options)) }
      assert_equal :timeout, error.result.reason
      assert_kind_of StandardError, error.cause
      assert_raises(Procwright::TimeoutExpired, name) do
        Procwright.spawn(CHILD, "sleep-forever", stop: SOON, timeout: SHORT, **options, &call)
      end
    end
  end

  def test_a_stop_that_lasts_is_waited_for
    # It lets go of its stdin at once, and ends with the grace.
    argv = ["sh", "-c", "trap '' TERM; exec <&-; sleep 1000 & wait; wait"]
    one = Procwright.spawn(*argv, stdin: :pipe, stop: Procwright::Stop.new(grace: 1.5), timeout: SHORT)
    assert_raises(Procwright::TimeoutExpired) { loop { one.stdin.write("x") } }
  end

  def test_a_stop_of_a_pipeline_that_lasts_is_waited_for
    argv = ["sh", "-c", "trap '' TERM; exec <&-; sleep 1000 & wait; wait"]
    stop = Procwright::Stop.new(grace: 1.5)
    one = Procwright.spawn_pipeline(argv, ["cat"], stdin: :pipe, stop: stop, timeout: SHORT)
    error = assert_raises(Procwright::TimeoutExpired) { loop { one.stdin.write("x") } }
    assert_equal 2, error.result.stages.size
    assert_kind_of Errno::EPIPE, error.cause
  end

  def test_an_iteration_ends_and_the_block_tells
    assert_raises(Procwright::TimeoutExpired) do
      Procwright.spawn(CHILD, "sleep-forever", channel: :from_child, stop: SOON, timeout: SHORT) do |one|
        assert_empty one.receiver.to_a
        assert_nil one.receiver.pop
      end
    end
  end

  def test_of_one_that_has_died_the_error_says_how
    CALLS.each do |name, (options, call)|
      error = assert_raises(Q::Closed, Q::NoChannel, Errno::EPIPE, name) { call.(Procwright.spawn(*FAILS, **options)) }
      assert_includes error.message, "exited with code 3"
      assert_kind_of Procwright::CommandFailed, error.cause
      assert_includes error.cause.message, "the reason"
    end
  end

  def test_of_one_that_has_ended_well_nothing_is_said
    error = assert_raises(Q::Closed) { Procwright.spawn("true", channel: :from_child).receiver.recv }
    refute_includes error.message, "true"
    assert_nil error.cause
  end

  def test_of_one_that_lives_on_nothing_is_said
    one = Procwright.spawn("sh", "-c", "exec <&-; echo closed; sleep 1000", stdin: :pipe, stop: SOON)
    assert_equal "closed\n", one.stdout.gets
    error = assert_raises(Errno::EPIPE) { one.stdin.write("x") }
    refute_includes error.message, "killed"
    assert_nil error.cause
    one.stop
  end

  def test_senders_of_a_child_that_goes_away_say_why
    lines = 'Procwright::Queue::Receiver.of_parent { |receiver| receiver.recv; warn "the reason"; exit!(1) }'
    [->(sender) { sender.send("x") }, ->(sender) { sender << "x" }, ->(sender) { sender.try_send("x") },
     ->(sender) { sender.dup.send_many(["x"]) }].each do |call|
      one = spawn_ruby(lines, channel: :to_child)
      # On a busy machine it ends more than a second behind its queue, for which nobody waits.
      error = assert_raises(Q::Closed, Q::ReceiverDead) { UNTIL_TOLD.(-> { call.(one.sender) }) }
      assert_includes error.message, "exited with code 1"
      assert_includes error.cause.message, "the reason"
    end
  end

  def test_a_pipeline_tells_as_well
    sleeps = [CHILD, "sleep-forever"]
    # Where its stop lasts longer than it is waited for, the block tells.
    error = assert_raises(Procwright::TimeoutExpired) do
      Procwright.spawn_pipeline(sleeps, sleeps, stdin: :pipe, stop: SOON, timeout: SHORT) { |one| write_on(one) }
    end
    assert_equal 2, error.result.stages.size
    two = Procwright.spawn_pipeline(FAILS, ["cat"], stdin: :pipe)
    two.wait
    assert_includes assert_raises(Errno::EPIPE) { write_on(two) }.message, "stage 1 of 2 exited with code 3"
  end

  def test_a_block_tells_of_a_stop_that_lasts_longer_than_it_is_waited_for
    # It lets go of its stdin at once, and ends with the grace.
    argv = ["sh", "-c", "trap '' TERM; exec <&-; sleep 1000 & wait; wait"]
    error = assert_raises(Procwright::TimeoutExpired) do
      Procwright.spawn_pipeline(argv, ["cat"], stdin: :pipe, stop: Procwright::Stop.new(grace: 2), timeout: SHORT) do |one|
        write_on(one)
      end
    end
    assert_kind_of Errno::EPIPE, error.cause
  end

  def test_a_block_leaves_errors_of_others_as_they_are
    other = Procwright.spawn(*FAILS, stdin: :pipe)
    assert_raises(Errno::EPIPE) do
      Procwright.spawn(CHILD, "sleep-forever", stop: SOON, timeout: SHORT) do |one|
        assert_nil one.stdout.gets
        write_on(other)
      end
    end
  end

  def test_a_thread_that_is_told_takes_nothing_from_the_block
    argv = [CHILD, "sleep-forever"]
    options = { stdin: :pipe, stop: SOON, timeout: SHORT }
    one = ->(&block) { Procwright.spawn(*argv, **options, &block) }
    many = ->(&block) { Procwright.spawn_pipeline(argv, argv, **options, &block) }
    [one, many].each { |open| left_with(Procwright::TimeoutExpired, open) }
  end

  def test_what_a_function_has_raised_is_for_the_block
    mine = Boom.new("mine")
    fails = ->(_, _) { raise mine }
    open = lambda do |&block|
      Procwright.spawn_pipeline([CHILD, "sleep-forever"], fails, ["cat"], stdin: :pipe, stop: SOON, &block)
    end
    [->(_) {}, :wait.to_proc, :result.to_proc].each do |leave|
      left, told = left_with(Boom, open, leave)
      assert_same mine, left
      assert_kind_of Errno::EPIPE, told
    end
    assert_same mine, assert_raises(Boom) { open.call { |one| write_on(one) } }
    assert_nil mine.cause
  end

  def test_a_thread_that_communicates_changes_no_error
    # Its sleep holds the output alone, so that the other thread waits on.
    lines = 'spawn("sleep", "1000", in: File::NULL, close_others: true); $stdin.read; exit!(3)'
    one = spawn_ruby(lines, stdin: :pipe, channel: :from_child)
    told = nil
    consumer = Thread.new do
      one.receiver.recv
    rescue StandardError => e
      told = e
    ensure
      one.stop
    end
    one.communicate
    consumer.join
    assert_kind_of Q::Closed, told
    assert_includes told.message, "exited with code 3"
  end

  def test_a_thread_that_communicates_with_a_pipeline_can_be_asked_beside
    one = Procwright.spawn_pipeline(["sh", "-c", "exec <&-; sleep 1000"], ["cat"], stdin: :pipe, stop: SOON)
    talker = Thread.new { one.communicate }
    Thread.pass until talker.stop?
    assert_nil one.poll
    one.stop
    talker.join
    refute_nil one.poll
  end

  def test_an_error_of_asking_changes_no_error
    one = Procwright.spawn(*FAILS, stdin: :pipe)
    one.define_singleton_method(:stop_reason) { raise "in vain" }
    assert_nil assert_raises(Errno::EPIPE) { write_on(one) }.cause
    assert_raises(Errno::EPIPE) do
      Procwright.spawn(*FAILS, stdin: :pipe) do |held|
        held.define_singleton_method(:stop_reason) { raise "in vain" }
        write_on(held)
      end
    end
  end

  # Lets go of its end of the queue and lives on, also when it is told to stop.
  LIVES_ON = <<~RUBY
    Signal.trap("TERM") { $stdout.syswrite("stopping\n") }
    if ARGV[0] == "from_child"
      Procwright::Queue::Sender.of_parent.close
    else
      Procwright::Queue::Receiver.of_parent { |receiver| receiver.recv }
    end
    $stdout.syswrite("closed\n")
    sleep
  RUBY

  # Calls that do not wait, each with the channel.
  AT_ONCE = {
    "try_recv" => [:from_child, lambda(&:try_recv)],
    "try_send" => [:to_child, ->(sender) { sender.try_send("x") }],
    "push" => [:to_child, ->(sender) { sender.push("x", true) }],
    "send for no time" => [:to_child, ->(sender) { sender.send("x", timeout: 0) }],
    "send_many for no time" => [:to_child, ->(sender) { sender.send_many(["x"], timeout: 0) }],
    "send of one that does not wait for room" => [:to_child, ->(sender) { sender.overflow = :fail and sender.send("x") }]
  }.freeze

  def test_a_call_that_does_not_wait_does_not_wait_for_the_reason_either
    AT_ONCE.each do |name, (channel, call)|
      lives_on(channel) do |_, queue_end, waits|
        3.times { assert_raises(Q::Closed, name) { call.(queue_end) } }
        assert_empty waits, name
      end
    end
    one = Procwright.spawn("sh", "-c", "exec <&-; echo closed; exec sleep 1000", stdin: :pipe, stop: SOON)
    one.stdout.gets
    waits = waits_of(one)
    2.times { assert_raises(Errno::EPIPE) { one.stdin.write_nonblock("x") } }
    assert_empty waits
    one.stop
  end

  def test_the_time_of_the_call_holds_for_the_reason_too
    lives_on(:from_child) do |_, receiver, waits|
      assert_raises(Q::Closed) { receiver.recv(timeout: SHORT) }
      assert_equal 1, waits.size
      assert_includes 0..SHORT, waits[0]
    end
  end

  def test_one_wait_for_the_reason_does_for_all_calls
    lives_on(:from_child) do |_, receiver, waits|
      2.times { assert_raises(Q::Closed) { receiver.recv } }
      assert_raises(Q::Closed) { receiver.recv_many(2) }
      assert_equal [1.0], waits
    end
    lives_on(:to_child) do |_, sender, waits|
      2.times { assert_raises(Q::Closed) { sender.send("x") } }
      assert_equal [1.0], waits
    end
  end

  def test_a_stop_that_lasts_is_not_waited_for_by_who_does_not_wait
    cancel = Procwright::Cancel.new
    # A wait for this grace would never come back.
    lives_on(:from_child, cancel: cancel, stop: Procwright::Stop.new(grace: 1e6)) do |one, receiver, waits|
      cancel.cancel
      assert_equal "stopping\n", one.stdout.gets
      [-> { receiver.try_recv }, -> { receiver.recv(timeout: SHORT) }].each do |call|
        assert_nil assert_raises(Q::Closed, &call).cause
      end
      assert_equal 1, waits.size
      assert_includes 0..SHORT, waits[0]
      # Once it is over the reason is known.
      one.process.kill if one.status.nil?
      assert_raises(Procwright::Cancelled) { one.wait }
      assert_raises(Procwright::Cancelled) { receiver.try_recv }
    end
  end

  private

  # A child that has closed its end, our end, and the waits for the child.
  def lives_on(channel, **options)
    one = spawn_ruby(LIVES_ON, channel.name, channel: channel, **options)
    queue_end = channel == :from_child ? one.receiver : one.sender
    queue_end.send("x") if channel == :to_child
    assert_equal "closed\n", one.stdout.gets
    yield one, queue_end, waits_of(one)
  ensure
    one.process.kill if one.status.nil?
  end

  # The seconds of each wait for the end of the child, from now on.
  def waits_of(child)
    [].tap do |waits|
      child.define_singleton_method(:await_end) do |seconds|
        waits << seconds
        super(seconds)
      end
    end
  end

  def write_on(one)
    one.stdin.write("x") while true
  end

  # The error that leaves a block in which another thread writes, and what that was told.
  def left_with(kind, open, leave = ->(_) {})
    told = nil
    left = assert_raises(kind) do
      open.call do |one|
        feeder = Thread.new do
          write_on(one)
        rescue StandardError => e
          told = e
        end
        assert_nil one.stdout.gets
        feeder.join
        leave.call(one)
      end
    end
    refute_nil told
    [left, told]
  end
end
