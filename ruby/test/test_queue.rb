# frozen_string_literal: true

require_relative "helper"
require "socket"
require "timeout"
require "tmpdir"

class TestQueue < Minitest::Test
  Q = Procwright::Queue
  # A lane that is full after some messages.
  SMALL = { first: 4096, limit: 64 * 1024, keep: 0 }.freeze

  class Boom < StandardError; end

  def setup
    super
    @ends = []
  end

  def teardown
    @ends.each(&:close)
    super
  end

  def receiver(**shape) = Q::Receiver.new(**shape).tap { |one| @ends << one }

  # A receiver and a sender whose lane has no room left.
  def full(**options)
    receiver = receiver(**SMALL)
    sender = receiver.sender(**options)
    @ends << sender
    nil while sender.try_send("x" * 1000)
    [receiver, sender]
  end

  # Another Ruby, which has `name` to talk by.
  def spawn_ruby(lines, *args, **options, &block)
    Procwright.spawn({ "PROCWRIGHT_QUEUE_DIR" => @names }, RbConfig.ruby, "--disable-gems", "-w", "-I#{LIB}",
                     "-rprocwright", "-e", lines, *args, **options, &block)
  end

  # What a fork does; nothing if it raises nothing.
  def in_a_fork
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      begin
        yield
      rescue Exception => e # rubocop:disable Lint/RescueException
        writer.write(e.full_message)
      end
      writer.close
      exit!(0)
    end
    writer.close
    assert_equal "", reader.read
    reader.close
    assert_predicate Process.wait2(pid)[1], :success?
  end

  def with_names
    Dir.mktmpdir do |directory|
      before = ENV.fetch("PROCWRIGHT_QUEUE_DIR", nil)
      ENV["PROCWRIGHT_QUEUE_DIR"] = @names = File.join(directory, "queues")
      yield
    ensure
      ENV["PROCWRIGHT_QUEUE_DIR"] = before
    end
  end

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
    assert_raises(TypeError) { sender.send_many(["a", 1]) }
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
    receiver = receiver()
    sender = receiver.sender
    assert_raises(TypeError) { sender << 1 }
    assert_raises(TypeError) { sender.send(nil) }
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

  # Sends signals to the process, each once that sleeps: as it does in the calls that follow.
  ASLEEP = <<~'RUBY'
    def once_asleep(*signals)
      pid = $$
      fork do
        asleep = -> { sleep 0.02; File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] == "S" }
        signals.each do |signal|
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
        trap("USR1") { caught += 1 }
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
    assert_equal [receiver], Procwright.wait([receiver, child]).done
    # What it was told of once it is told of again, until it was received.
    assert_equal [receiver], Procwright.wait([receiver, child]).done
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

  def test_children_send
    lines = 'Procwright::Queue::Sender.of_parent { |sender| 1000.times { |n| sender << n.to_s }; sender.dup << "end" }'
    spawn_ruby(lines, channel: :from_child) do |child|
      assert_same child.receiver, child.receiver
      found = child.receiver.to_a
      assert_equal Array.new(1000, &:to_s), found - ["end"]
      assert_includes found, "end"
      assert_raises(Q::NoChannel) { child.sender }
    end
    assert_raises(Q::NoParent) { Q::Sender.of_parent }
  end

  def test_children_receive
    lines = "Procwright::Queue::Receiver.of_parent { |receiver| puts receiver.sum(&:to_i) }"
    child = spawn_ruby(lines, channel: :to_child)
    assert_raises(Q::NoChannel) { child.receiver }
    assert_same child.sender, child.sender
    child.sender.send_many((1..100).map(&:to_s))
    child.close_inputs
    assert_equal "5050\n", child.stdout.read
    assert_predicate child.wait, :success?
    other = Procwright.spawn(CHILD, "sleep-forever", channel: :to_child)
    assert_raises(Q::TimedOut) { other.sender(timeout: 0.02) }
    waiting = thread { other.sender }
    until_blocked(waiting)
    waiting.raise(Boom)
    assert_kind_of Boom, waiting.value
    other.stop
    assert_raises(Q::NoChannel) { other.sender }
    assert_raises(Procwright::InvalidValue) { Procwright.spawn("true", channel: :both) }
  end

  def test_a_child_that_is_killed_loses_nothing_that_it_sent
    child = spawn_ruby(<<~RUBY, channel: :from_child)
      sender = Procwright::Queue::Sender.of_parent
      100.times { |n| sender << n.to_s }
      Process.kill("KILL", $$)
    RUBY
    assert_equal Array.new(100, &:to_s), child.receiver.to_a
    assert_equal 9, child.wait.termsig
  end

  def test_inherited_and_over_a_socket
    receiver = receiver()
    invitation = receiver.invite
    lines = <<~RUBY
      invitation = Procwright::Queue::Invitation.new(ARGV[1..].map(&:to_i), ARGV[0])
      Procwright::Queue::Sender.attach(invitation) { |sender| sender << "inherited" }
      abort "not used up" unless invitation.closed?
    RUBY
    spawn_ruby(lines, invitation.ticket, *invitation.fds, fds: invitation.fds) do |child|
      invitation.close
      assert_equal ["inherited"], receiver.to_a, child.stderr.read
    end
    ours, theirs = UNIXSocket.pair
    pid = fork do
      ours.close
      Q::Sender.attach(Q::Invitation.receive(theirs)) { |sender| sender << "by socket" }
      exit!
    end
    theirs.close
    invitation = receiver.invite
    assert_same invitation, invitation.send_over(ours)
    invitation.close
    assert_equal ["by socket"], receiver.to_a
    Process.wait(pid)
    assert_match(/closed the socket/, raised { Q::Invitation.receive(ours) }.message)
    assert_raises(Procwright::InvalidValue) { receiver.invite.send_over(3) }
    reader, writer = IO.pipe
    assert_raises(Procwright::InvalidValue, SystemCallError) { receiver.invite.send_over(writer) }
  ensure
    [ours, reader, writer].compact.each(&:close)
  end

  def test_waiting_for_an_invitation_is_interrupted
    ours, theirs = UNIXSocket.pair
    waiting = thread { Q::Invitation.receive(theirs) }
    until_blocked(waiting)
    waiting.raise(Boom)
    assert_kind_of Boom, waiting.value
  ensure
    [ours, theirs].each(&:close)
  end

  def test_names
    with_names do
      assert_empty Q.names
      assert_kind_of Errno::ENOENT, raised { Q::Sender.open("jobs") }
      Q::Receiver.open("jobs", lanes: 3) do |receiver|
        assert_equal ["jobs"], Q.names
        error = assert_raises(Q::NameTaken) { Q::Receiver.open("jobs") }
        assert_equal ["jobs", $$], [error.name, error.pid]
        assert_equal "ok", Q::Sender.open("jobs") { |sender| sender << "x"; "ok" }
        stat = Q.stat("jobs")
        assert_equal [3, :alive, $$], [stat.lanes, stat.receiver.state, stat.receiver.pid]
        assert_predicate stat, :frozen?
        assert_equal "x", receiver.recv
        spawn_ruby('Procwright::Queue::Sender.open("jobs") { |sender| sender << "y" }') do
          assert_equal "y", receiver.recv
        end
        sender = Q::Sender.open("jobs")
        sender << "zz"
        lane = Q.stat("jobs").taken.find { |one| one.state == :taken }
        assert_equal [$$, false], [lane.pid, lane.blocked]
        assert_operator lane.waiting, :>=, 2
      end
      assert_raises(Q::NoQueue) { Q.stat("jobs") }
    end
  end

  def test_another_takes_over
    with_names do
      lines = <<~RUBY
        receiver = Procwright::Queue::Receiver.open("jobs")
        puts receiver.recv
        $stdout.flush
        sleep
      RUBY
      child = spawn_ruby(lines)
      sender = eventually { Q::Sender.open("jobs") rescue nil }
      sender << "one" << "two"
      assert_equal "one\n", child.stdout.gets
      child.kill
      child.wait
      error = eventually { raised { sender << "three" } }
      assert_kind_of Errno::EOWNERDEAD, error
      assert_kind_of Q::ReceiverDead, error
      receiver = Q::Receiver.open("jobs")
      @ends << receiver
      sender << "four"
      assert_equal %w[two four], [receiver.recv, receiver.recv]
    end
  end

  def test_who_waits_for_room_is_told_of_a_death
    child = spawn_ruby(<<~RUBY, channel: :to_child)
      receiver = Procwright::Queue::Receiver.of_parent(first: 4096, limit: 65_536)
      sleep
    RUBY
    sender = child.sender
    nil while sender.try_send("x" * 1000)
    waiting = thread { sender.push("x" * 5000) }
    until_blocked(waiting)
    child.kill
    assert_kind_of Errno::EOWNERDEAD, waiting.value
  ensure
    child&.stop
  end

  def test_take_over_by_invitation
    receiver = receiver()
    invitation = receiver.invite
    error = assert_raises(Q::ReceiverAlive) { Q::Receiver.take_over(invitation) }
    assert_equal $$, error.pid
    receiver.close
    assert_raises(Q::Closed) { Q::Receiver.take_over(invitation) }
    refute_predicate invitation, :closed?
  end

  # Where the first lane says how far it has come, as docs/reference/queue-format.md has it.
  TAIL = 1_310_720

  def test_nonsense_spoils_one_lane_and_is_told_once
    receiver = receiver()
    bad, good = Array.new(2) { receiver.sender }
    invitation = receiver.invite
    [bad, good].each { |one| one << "x" }
    2.times { receiver.recv }
    [bad, good].each { |one| one << "y" }
    IO.for_fd(invitation.fds[0], "r+b", autoclose: false).pwrite([0x7fff_ffff_0000_0003].pack("Q"), TAIL)
    # What came besides is not lost over it.
    found = [raised { receiver.recv_many(5) } || "y", raised { receiver.recv_many(5) } || "y"]
    error = found.find { |one| one.is_a?(Q::Damaged) }
    assert_equal [1, 0, $$], [found.count("y"), error.lane, error.peer]
    assert_kind_of IOError, error
    assert_nil receiver.try_recv
    good << "z"
    assert_equal "z", receiver.recv
  end

  def test_a_fork_has_no_part_in_it
    receiver, sender = full
    empty = receiver()
    kept = empty.sender
    waiting = [thread { sender.push("x" * 5000) }, thread { empty.recv }]
    waiting.each { |one| until_blocked(one) }
    uses = {
      recv: -> { receiver.recv }, recv_empty: -> { empty.recv }, try_recv: -> { receiver.try_recv },
      invite: -> { receiver.invite }, readiness: -> { receiver.readiness_fd },
      send: -> { sender << "x" }, send_many: -> { sender.send_many(["x"]) }, dup: -> { kept.dup },
      try_send: -> { kept.try_send("x") }, wait: -> { Procwright.wait([receiver], timeout: 0) }
    }
    in_a_fork do
      uses.each do |name, use|
        error = raised(&use)
        raise "#{name}: #{error.inspect}" unless error.is_a?(Q::Forked) && error.is_a?(IOError)
      end
      [receiver, sender, empty, kept].each(&:close)
      GC.start
      # One of its own works.
      own = Q::Receiver.new
      own.sender << "x"
      raise "own" unless own.recv == "x"
    end
    kept << "still"
    nil while receiver.try_recv
    assert_equal [sender, "still"], waiting.map(&:value)
  end

  # Which drops all that it has got, and takes nothing away by that.
  def test_a_fork_that_exits
    with_names do
      result = ruby(<<~RUBY, extra_env: { "PROCWRIGHT_QUEUE_DIR" => @names })
        receiver = Procwright::Queue::Receiver.open("jobs")
        sender = Procwright::Queue::Sender.open("jobs")
        token = Procwright::LivenessToken.new
        monitor = Procwright::LivenessMonitor.new(token.invite)
        Process.wait(fork { GC.start })
        sender << "x"
        p [receiver.recv, Procwright::Queue.names, Procwright::Queue.stat("jobs").receiver.state, monitor.state]
      RUBY
      assert_equal %(["x", ["jobs"], :alive, :alive]\n), result.stdout, result.stderr
      # And who exits takes the name away.
      assert_empty Q.names
    end
  end

  def test_a_fork_attaches_anew
    receiver = receiver()
    invitation = receiver.invite
    pid = fork do
      Q::Sender.attach(invitation) { |sender| sender << $$.to_s }
      exit!
    end
    invitation.close
    assert_equal [pid.to_s], receiver.to_a
    Process.wait(pid)
  end

  # Who ends in good order has left; who does not has died.
  def test_ends_of_a_process
    { "exit" => Q::Closed, "exit!" => Q::ReceiverDead }.each do |how, kind|
      child = spawn_ruby("receiver = Procwright::Queue::Receiver.of_parent; gets; #{how}", channel: :to_child, stdin: :pipe)
      sender = child.sender
      child.stdin.close
      child.wait
      assert_kind_of kind, raised { sender << "x" }, how
    end
  end

  def test_the_collector_closes_what_nobody_has
    ruby(<<~RUBY).check!
      receiver = Procwright::Queue::Receiver.new(lanes: 100)
      50.times { receiver.sender << "x" }
      GC.start
      50.times { receiver.recv }
      # Some are taken for referred to that are not: so not all of them have to go.
      senders = ObjectSpace.each_object(Procwright::Queue::Sender).count
      abort "\#{senders} are left" unless senders < 10
    RUBY
  end

  def test_what_is_left_over
    made = lambda do
      receiver = Q::Receiver.new
      sender = receiver.sender
      twin = sender.dup
      invitation = receiver.invite
      waiting = thread { receiver.recv }
      sender << "x"
      waiting.value
      [sender, twin, invitation, receiver].each(&:close)
    end
    2.times { made.call }
    before = fds
    30.times { made.call }
    # What others have left goes as well, whenever it is found.
    eventually { GC.start || fds <= before }
  end

  def test_waiting_does_not_poll
    lines = <<~RUBY
      switches = -> { File.read("/proc/self/status")[/^voluntary_ctxt_switches:\\s+(\\d+)/, 1].to_i }
      receiver = Procwright::Queue::Receiver.new
      sender = receiver.sender
      before = switches.call
      receiver.pop(timeout: 2)
      print switches.call - before
    RUBY
    assert_operator ruby(lines).check!.stdout.to_i, :<=, 10
  end

  def test_ractors_get_a_clear_error
    result = ruby(<<~RUBY)
      Warning[:experimental] = false
      begin
        Ractor.new { Procwright::Queue::Receiver.new }.take
      rescue Ractor::RemoteError => e
        puts e.cause.class
      end
    RUBY
    assert_match(/Ractor::\w+Error\n\z/, result.stdout)
  end

  def test_not_over_marshal
    receiver = receiver()
    [receiver, receiver.sender, receiver.invite].each { |one| assert_raises(TypeError) { Marshal.dump(one) } }
  end
end
