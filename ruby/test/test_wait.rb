# frozen_string_literal: true

require_relative "helper"

class TestWait < Minitest::Test
  def sleeping = Procwright.spawn(CHILD, "sleep-forever")
  def ending(code = 0) = Procwright.spawn(CHILD, "exit", code.to_s)

  def teardown
    @children&.each(&:stop)
    super
  end

  def test_any_all_and_so_many
    stays, *ends = @children = [sleeping, ending, ending(1), ending(2)]
    done, pending = Procwright.wait(@children, mode: :any)
    refute_empty done
    assert_includes pending, stays
    waited = Procwright.wait(@children, mode: 3)
    assert_equal [ends.map(&:pid).sort, [stays]], [waited.done.map(&:pid).sort, waited.pending]
    refute_predicate waited, :all?
    waited = Procwright.wait(@children, timeout: 0.01)
    assert_equal [stays], waited.pending
    assert_predicate Procwright.wait(ends), :all?
    assert_predicate Procwright.wait([]), :all?
    assert_equal [0, 1, 2], ends.map { |one| one.wait.exitstatus }
  end

  def test_what_becomes_readable
    reader, writer = IO.pipe
    cancel = Procwright::Cancel.new
    assert_equal [reader, cancel], Procwright.wait([reader, cancel], timeout: 0).pending
    writer.write("x")
    assert_equal [reader], Procwright.wait([reader, cancel], mode: :any).done
    cancel.cancel
    assert_equal [cancel], Procwright.wait([cancel]).done
  ensure
    [reader, writer].each(&:close)
  end

  def test_strangers_by_their_numbers
    pid = spawn(CHILD, "sleep-forever")
    assert_equal [pid], Procwright.wait([pid], timeout: 0.01).pending
    process = Procwright::Process.new(pid)
    assert_raises(Procwright::WaitTimeout) { process.wait(timeout: 0.01) }
    process.kill
    assert_equal [pid], Procwright.wait([pid]).done
    assert_equal 9, process.wait.termsig
    # It is not ours to reap: who started it can.
    assert_equal 9, Process.wait2(pid)[1].termsig
    assert_raises(Procwright::NoSuchProcess) { Procwright::Process.new(pid) }
    assert_kind_of Errno::ESRCH, raised { Procwright.wait([pid]) }
    assert_raises(Errno::ESRCH) { process.signal("TERM") }
  end

  def test_wrong_things
    assert_raises(Procwright::InvalidValue) { Procwright.wait([Object.new]) }
    assert_raises(Procwright::InvalidValue) { Procwright.wait([1], mode: :some) }
    assert_raises(Procwright::InvalidValue) { Procwright.wait([1], mode: 0) }
    assert_raises(Procwright::InvalidValue) { Procwright.wait([1], event: :born) }
    assert_raises(Procwright::InvalidValue) { Procwright.wait([1], timeout: Float::NAN) }
    File.open(__FILE__) { |file| assert_raises(Procwright::InvalidValue) { Procwright.wait([file]) } }
  end

  def test_a_process
    me = Procwright::Process.new(Process.pid)
    assert_equal [Process.pid, true, nil], [me.pid, me.alive?, me.status]
    assert_equal me, Procwright::Process.new(me.id)
    assert_equal 1, [me, Procwright::Process.new(Process.pid)].uniq.size
    assert_includes me.exe, "ruby"
    assert_includes me.name, "ruby"
    assert_operator me.start_time, :<=, Time.now
    assert_raises(Procwright::InvalidValue) { Procwright::Process.new("x") }
    assert_raises(Procwright::InvalidValue) { Procwright::Process.new(0) }
    IO.for_fd(me.pidfd, autoclose: false).then { |io| assert_equal me, Procwright::Process.from_pidfd(io) } if me.pidfd
  end

  def test_stop_of_a_stranger
    pid = spawn(CHILD, "fork-tree", "1", "2")
    waiting = thread { Process.wait2(pid)[1] }
    assert_empty Procwright::Process.new(pid).stop
    assert_predicate waiting.value, :signaled?
  end

  def test_many_at_once
    @children = Array.new(60) { sleeping }
    waiting = thread { Procwright.wait(@children, mode: :all) }
    until_blocked(waiting)
    @children.each(&:kill)
    assert_predicate waiting.value, :all?
  end

  def test_a_wait_does_not_poll
    child = sleeping
    @children = [child]
    lines = <<~RUBY
      switches = -> { File.read("/proc/self/status")[/^voluntary_ctxt_switches:\\s+(\\d+)/, 1].to_i }
      process = Procwright::Process.new(Integer(ARGV[0]))
      before = switches.call
      Procwright.wait([process], timeout: 2)
      print switches.call - before
    RUBY
    # One to sleep, one for the end of it; a poll would have a hundred.
    assert_operator ruby(lines, child.pid.to_s).check!.stdout.to_i, :<=, 10
  end
end
