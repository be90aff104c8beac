# frozen_string_literal: true

require_relative "queue_helper"

# Threads that wait for messages or for room, and what resumes or interrupts them.
class TestQueueThreads < Minitest::Test
  include QueueHelper

  def test_close_resumes_who_waits
    receiver = receiver()
    sender = receiver.sender
    waiting = [-> { receiver.recv }, -> { receiver.pop }, -> { receiver.recv_many(3) }, -> { receiver.each { nil } }]
    waiting = waiting.map { |call| thread(&call) }
    waiting.each { |one| until_blocked(one) }
    receiver.close
    waiting.each { |one| assert_kind_of Q::EndClosed, one.value }
    assert_raises(Q::Closed) { sender << "x" }
    receiver, sender = full
    waiting = Array.new(3) { |n| thread { n.zero? ? sender.send_many(["x" * 5000]) : sender.push("x" * 5000) } }
    waiting.each { |one| until_blocked(one) }
    sender.close
    waiting.each { |one| assert_kind_of Q::EndClosed, one.value }
    assert_equal 0, receiver.count { |message| message.bytesize > 1000 }
  end

  def test_a_receiver_that_is_closed_resumes_who_waits_for_room
    receiver, sender = full
    waiting = thread { sender.push("x" * 5000) }
    until_blocked(waiting)
    receiver.close
    assert_kind_of ClosedQueueError, waiting.value
  end

  # Each message once, whoever takes it, and nobody sleeps while there is one.
  def test_many_threads_receive_and_send
    receiver = receiver(**SMALL)
    sender = receiver.sender
    takers = Array.new(4) { thread { receiver.to_a } }
    givers = Array.new(3) { |n| thread { 500.times { |m| sender << "#{n} #{m}" } } }
    givers << thread { 20.times { |m| sender.dup.tap { |one| one << "3 #{m}" }.close } }
    assert_equal [500, 500, 500, 20], givers.map(&:value)
    sender.close
    found = takers.flat_map(&:value).sort
    sent = [500, 500, 500, 20].each_with_index.flat_map { |count, n| Array.new(count) { |m| "#{n} #{m}" } }
    assert_equal [[], 1520], [found - sent, found.uniq.size]
    assert_equal 1520, found.size
  end

  def test_who_sleeps_is_told_although_another_took_the_first
    receiver = receiver()
    sender = receiver.sender
    200.times do
      waiting = Array.new(3) { thread { receiver.recv } }
      waiting.each { |one| until_blocked(one) }
      sender.send_many(%w[a b c])
      assert_equal %w[a b c], waiting.map(&:value).sort
    end
  end

  BLOCKING = {
    "recv" => ->(receiver, _) { receiver.recv },
    "recv with a timeout" => ->(receiver, _) { receiver.recv(timeout: 100_000) },
    "recv_many" => ->(receiver, _) { receiver.recv_many(2) },
    "each" => ->(receiver, _) { receiver.each { nil } },
    "wait" => ->(receiver, _) { Procwright.wait([receiver]) },
    "send" => ->(_, sender) { sender.send("x" * 5000) },
    "send with a timeout" => ->(_, sender) { sender.send("x" * 5000, timeout: 100_000) },
    "send_many" => ->(_, sender) { sender.send_many(["x" * 5000] * 2) }
  }.freeze

  BLOCKING.each do |name, call|
    # What is blocked, and the thread that it blocks.
    define_method("blocked_#{name}") do
      receiver, sender = full
      nil while name.match?(/recv|each|wait/) && receiver.try_recv
      thread = Thread.new { call.call(receiver, sender) }
      thread.report_on_exception = false
      until_blocked(thread)
      [thread, receiver, sender]
    end

    define_method("test_interrupts_in_#{name}") do
      thread, receiver, sender = __send__("blocked_#{name}")
      thread.raise(Boom)
      assert_raises(Boom) { thread.value }
      thread = Thread.new { call.call(receiver, sender) }
      until_blocked(thread)
      thread.kill
      assert_nil thread.value
      assert_raises(Timeout::Error) { Timeout.timeout(0.02) { call.call(receiver, sender) } }
      # And nothing is held up by that.
      nil while receiver.try_recv
      sender << "still there"
      assert_equal "still there", receiver.recv
    end
  end

  # Sends signals to the process, each once that sleeps: as it does in the calls that follow. The
  # handler of each but the last says that it has run: Ruby may sleep on a while after the kernel
  # has told it, and handles two signals in the order of their numbers.
  ASLEEP = <<~'RUBY'
    $heard, $tells = IO.pipe
    def heard = $tells.syswrite("x")

    def once_asleep(*signals)
      pid = $$
      fork do
        asleep = -> { sleep 0.02; File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] == "S" }
        signals.each_with_index do |signal, place|
          $heard.getbyte if place > 0
          nil until Array.new(5) { asleep.call }.all?
          Process.kill(signal, pid)
        end
        exit!
      end
    end
  RUBY

  def test_signals
    %w[recv send].each do |what|
      result = ruby(<<~RUBY, what)
        receiver = Procwright::Queue::Receiver.new(first: 4096, limit: 65_536)
        sender = receiver.sender
        nil while ARGV == ["send"] && sender.try_send("x" * 1000)
        caught = 0
        trap("USR1") { (caught += 1) && heard }
        trap("INT") { raise Interrupt }
        #{ASLEEP}
        begin
          once_asleep("USR1", "INT")
          ARGV == ["send"] ? sender.push("x" * 5000) : receiver.recv
        rescue Interrupt
          puts "interrupted \#{caught}"
        end
      RUBY
      assert_equal "interrupted 1\n", result.stdout, result.stderr
    end
  end

  def test_handlers_may_use_what_they_interrupt
    result = ruby(<<~RUBY)
      receiver = Procwright::Queue::Receiver.new(first: 4096, limit: 65_536)
      sender = receiver.sender
      nil while sender.try_send("x" * 1000)
      trap("USR1") do
        puts sender.try_send("y" * 5000), (sender.push("y" * 5000) rescue $!.class)
        nil while receiver.try_recv
        heard
      end
      trap("USR2") { sender.close }
      #{ASLEEP}
      once_asleep("USR1", "USR2")
      begin
        # It has made room itself; then there is none once more.
        loop { sender.push("z" * 5000) }
      rescue IOError
        puts $!.class
      end
      receiver = Procwright::Queue::Receiver.new
      sender = receiver.sender
      trap("USR1") { sender << "from a handler" }
      once_asleep("USR1")
      puts receiver.recv
    RUBY
    assert_equal %w[false Procwright::Queue::Busy Procwright::Queue::EndClosed] + ["from a handler"],
                 result.stdout.lines(chomp: true), result.stderr
  end

  def test_other_threads_go_on
    receiver, sender = full
    waiting = [thread { sender.push("x" * 5000) }]
    other = receiver()
    kept = other.sender
    waiting << thread { other.recv }
    waiting.each { |one| until_blocked(one) }
    assert_equal 499_500, Array.new(1000) { |n| n }.sum
    kept << "x"
    nil while receiver.try_recv
    assert_equal [sender, "x"], waiting.map(&:value)
  end

  def test_readiness
    receiver = receiver()
    sender = receiver.sender
    io = receiver.readiness_io
    assert_same io, receiver.readiness_io
    nil while receiver.try_recv
    assert_nil IO.select([io], nil, nil, 0)
    3.times do |n|
      sender << n.to_s
      assert IO.select([io])
      assert_equal n.to_s, receiver.try_recv
      assert_nil receiver.try_recv
    end
    waiting = thread { IO.select([io]) }
    until_blocked(waiting)
    sender << "x"
    assert waiting.value
  end

  def test_in_a_wait_beside_others
    receiver = receiver()
    sender = receiver.sender
    child = Procwright.spawn(CHILD, "sleep-forever")
    assert_equal [receiver, child], Procwright.wait([receiver, child], timeout: 0.01).pending
    sender << "a" << "b"
    assert_equal [receiver], Procwright.wait([receiver, child], mode: :any).done
    # What it was told of once it is told of again, until it was received.
    assert_equal [receiver], Procwright.wait([receiver, child], mode: :any).done
    assert_equal %w[a b], [receiver.recv, receiver.recv]
    assert_empty Procwright.wait([receiver], timeout: 0.01).done
    waiting = thread { Procwright.wait([receiver, child], mode: :all) }
    until_blocked(waiting)
    sender << "c"
    child.kill
    assert_predicate waiting.value, :all?
    assert_equal "c", receiver.recv
    waiting = thread { Procwright.wait([receiver]).done }
    until_blocked(waiting)
    receiver.close
    assert_equal [receiver], waiting.value
    assert_raises(Q::EndClosed) { Procwright.wait([receiver]) }
  ensure
    child&.stop
  end

  def test_a_wait_goes_on_if_another_takes_the_message
    receiver = receiver()
    sender = receiver.sender
    waiting = thread { Procwright.wait([receiver]).done }
    until_blocked(waiting)
    taking = thread { 2000.times { receiver.recv } }
    2000.times { |n| sender << n.to_s }
    taking.value
    sender << "last"
    assert_equal [receiver], waiting.value
  end
end
