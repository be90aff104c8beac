# frozen_string_literal: true

require_relative "queue_helper"

# Queues between processes: children, forks, names, deaths.
class TestQueueProcesses < Minitest::Test
  include QueueHelper

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
    # What others have left goes as well, whenever it is found; the stack may seem to have some.
    eventually { GC.start || fds <= before + 10 }
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
