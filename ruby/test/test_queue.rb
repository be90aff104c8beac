# frozen_string_literal: true

require_relative "queue_helper"

# Messages, their order, values and ends.
class TestQueue < Minitest::Test
  include QueueHelper

  def test_messages_are_bytes_in_their_order
    receiver = receiver()
    sender = receiver.sender
    texts = ["", "ä\0b", "x" * 10, "y" * 100_000, "\xff".b]
    texts.each { |text| assert_same sender, sender << text }
    texts.each do |text|
      message = receiver.recv
      assert_equal [text.b, Encoding::BINARY, false], [message, message.encoding, message.frozen?]
    end
    assert_nil receiver.try_recv
    sender.close
    assert_raises(Q::Closed) { receiver.recv }
    assert_raises(Q::Closed) { receiver.try_recv }
  end

  def test_as_of_thread_queue
    receiver = receiver()
    sender = receiver.sender
    assert_same sender, sender.push("a").enq("b")
    assert_equal %w[a b], [receiver.pop, receiver.shift]
    assert_nil receiver.pop(timeout: 0.01)
    assert_raises(ThreadError) { receiver.pop(true) }
    assert_raises(ArgumentError) { receiver.pop(true, timeout: 1) }
    sender.push("c", true)
    assert_equal "c", receiver.deq(true)
    sender.close
    assert_nil receiver.pop
    assert_raises(Q::Empty) { receiver.pop(true) }
    receiver, sender = full
    assert_nil sender.push("more" * 1000, timeout: 0.01)
    assert_raises(ThreadError) { sender.push("more" * 1000, true) }
    receiver.close
    assert_raises(ClosedQueueError) { sender.push("x") }
  end

  def test_the_end_ends_a_loop_and_each
    receiver = receiver()
    sender = receiver.sender
    sender.send_many(%w[a b c])
    other = sender.dup
    other << "d"
    [sender, other].each(&:close)
    found = []
    loop { found << receiver.recv }
    assert_equal %w[a b c d], found.sort
    assert_equal [], receiver.to_a
    sender = receiver.sender
    sender.send_many(%w[e f g])
    assert_equal %w[e f], receiver.first(2)
    assert_equal "g", receiver.each.next
    # Another queue's end is not taken for this one's.
    sender << "h"
    assert_raises(Q::Closed) { receiver.each { raise Q::Closed } }
  end

  def test_many_at_once
    receiver = receiver()
    sender = receiver.sender
    assert_equal 3000, sender.send_many((1..3000).map(&:to_s))
    found = []
    found.concat(receiver.recv_many(700)) while found.size < 3000
    assert_equal (1..3000).map(&:to_s), found
    assert_raises(Q::TimedOut) { receiver.recv_many(1, timeout: 0.01) }
    assert_raises(Procwright::InvalidValue) { receiver.recv_many(0) }
    assert_raises(Procwright::InvalidValue) { sender.send_many(["a", 1]) }
    assert_equal 0, sender.send_many([])
    assert_nil receiver.try_recv
  end

  def test_many_wait_for_room
    receiver = receiver(**SMALL)
    sender = receiver.sender
    messages = Array.new(5000) { |n| n.to_s * 20 }
    sending = thread { sender.send_many(messages) }
    found = Array.new(5000) { receiver.recv }
    assert_equal 5000, sending.value
    assert_equal messages, found
  end

  def test_what_was_sent_of_many_is_told
    receiver = receiver(**SMALL)
    sender = receiver.sender
    error = assert_raises(Q::TimedOut) { sender.send_many(["x" * 1000] * 200, timeout: 0.02) }
    assert_kind_of Timeout::Error, error
    assert_includes 1..199, error.sent
    error.sent.times { assert_equal 1000, receiver.recv.bytesize }
    assert_nil receiver.try_recv
    error = assert_raises(Q::TooLarge) { sender.send_many(["a", "x" * 100_000, "b"]) }
    assert_equal 1, error.sent
    sender.overflow = :fail
    error = assert_raises(Q::Full) { sender.send_many(["x" * 1000] * 200) }
    assert_includes 1..199, error.sent
    sender.overflow = :drop_newest
    assert_operator sender.send_many(["x" * 1000] * 200), :<, 200
    assert_operator sender.dropped, :>, 0
  end

  def test_no_room
    receiver, sender = full(overflow: :drop_newest)
    assert_same sender, sender.send("x" * 5000)
    assert_equal 1, sender.dropped
    assert_raises(Q::TimedOut) { sender.send("x" * 5000, timeout: 0.01) }
    assert_equal 1, sender.dropped
    twin = sender.dup
    assert_equal [:drop_newest, 0], [twin.overflow, twin.dropped]
    sender.overflow = :fail
    assert_raises(Q::Full) { sender.send("x" * 5000) }
    refute sender.try_send("x" * 5000)
    assert_raises(Procwright::InvalidValue) { sender.overflow = :sometimes }
    assert_raises(Procwright::InvalidValue) { receiver.sender(overflow: "block") }
    error = assert_raises(Q::TooLarge) { sender.send("x" * 1_000_000) }
    assert_equal [1_000_000, ArgumentError], [error.length, error.class.superclass.superclass]
    assert_operator error.most, :<, 64 * 1024
  end

  def test_wrong_values
    assert_raises(Procwright::InvalidValue) { Q::Receiver.new(lanes: 0) }
    assert_raises(Procwright::InvalidValue) { Q::Receiver.new(lanes: 5000) }
    error = assert_raises(Procwright::InvalidValue) { Q::Receiver.new(first: "1MiB", limit: "64KiB") }
    assert_includes error.message, "first is 1048576, and limit is 65536"
    error = assert_raises(Procwright::InvalidValue) { Q::Receiver.new(limit: 1024) }
    assert_includes error.message, "at least 4096"
    small = Q::Receiver.new(limit: "8KiB")
    only = small.sender(overflow: :fail)
    sent = 0
    assert_raises(Q::Full) { loop { only.send("x" * 100) && sent += 100 } }
    assert_operator sent, :<, 8192
    [only, small].each(&:close)
    receiver = receiver()
    sender = receiver.sender
    assert_raises(Procwright::InvalidValue) { sender << 1 }
    assert_raises(Procwright::InvalidValue) { sender.send(nil) }
    sender << "kept"
    assert_raises(Procwright::InvalidValue) { receiver.recv(timeout: Float::NAN) }
    assert_raises(Procwright::InvalidValue) { receiver.recv(timeout: "1") }
    assert_equal "kept", receiver.recv
    assert_raises(Procwright::InvalidValue) { Q::Sender.attach("x") }
    assert_raises(Procwright::InvalidValue) { Q::Sender.open("no/name") }
    assert_raises(Procwright::InvalidValue) { Q::Invitation.new([0, 1], "no ticket") }
    assert_raises(Procwright::InvalidValue) { Q::Invitation.new([0], "no ticket") }
    assert_raises(Errno::EBADF) { Q::Invitation.new([987_654, 1], "x") }
    assert_raises(TypeError) { receiver.dup }
    assert_raises(NoMethodError) { Q::Sender.new }
    assert_equal [false, false], [sender.__send__(:closed?), sender.public_send(:closed?)]
  end

  def test_lanes
    receiver = receiver(lanes: 2)
    one = receiver.sender
    two = one.clone
    error = assert_raises(Q::NoLane) { one.dup }
    assert_kind_of Errno::EBUSY, error
    assert_kind_of Procwright::Error, error
    two.close
    one << "x"
    assert_equal "x", receiver.recv
    # The receiver takes the lane back, when it looks.
    assert_nil receiver.try_recv
    @ends << one.dup
  end

  # As threads come and go: their senders had nothing to send, or all of it was received.
  def test_lanes_of_threads_that_have_ended
    receiver = receiver(lanes: 4)
    sender = receiver.sender
    @ends << sender
    100.times do |round|
      Thread.new { sender.dup.tap { |one| one << "x" if round.odd? }.close }.join
      assert_equal "x", receiver.recv if round.odd?
    end
  end

  # What nobody has any more is collected before a lane is refused.
  def test_lanes_of_senders_that_nobody_has_any_more
    receiver = receiver(lanes: 4)
    sender = receiver.sender
    @ends << sender
    100.times { sender.dup }
    100.times { sender.clone }
    100.times { receiver.sender }
  end

  def test_waiting_for_a_lane
    receiver = receiver(lanes: 2)
    kept = receiver.sender
    other = kept.dup
    @ends << kept
    invitation = receiver.invite
    error = assert_raises(Q::TimedOut) { kept.dup(wait: 0.02) }
    assert_kind_of Timeout::Error, error
    assert_includes error.message, "lanes"
    assert_raises(Q::TimedOut) { Q::Sender.attach(invitation, wait: 0.02) }
    assert_raises(Q::NoLane) { Q::Sender.attach(invitation) }
    waiting = thread { Q::Sender.attach(invitation, wait: nil) }
    until_blocked(waiting)
    other.close
    waiting.value.close
    interrupted = thread { kept.dup.then { kept.dup(wait: nil) } }
    until_blocked(interrupted)
    interrupted.raise(Boom)
    assert_kind_of Boom, interrupted.value
    GC.start
    assert_raises(Procwright::InvalidValue) { kept.dup(wait: "1") }
  end

  def test_closing
    receiver = receiver()
    sender = receiver.sender
    [receiver, sender].each { |one| refute_predicate one, :closed? }
    sender.close
    assert_raises(IOError) { sender << "x" }
    assert_raises(Q::EndClosed) { sender.dup }
    2.times { receiver.close }
    assert_raises(Q::EndClosed) { receiver.recv }
    assert_raises(Q::EndClosed) { receiver.pop }
    assert_raises(Q::EndClosed) { receiver.invite }
    assert_raises(Q::EndClosed) { receiver.readiness_fd }
    [receiver, sender].each { |one| assert_predicate one, :closed? }
    invitation = receiver().invite
    invitation.close
    assert_raises(Q::EndClosed) { invitation.fds }
    assert_match(/used up/, raised { Q::Sender.attach(invitation) }.message)
  end
end
