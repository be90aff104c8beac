# frozen_string_literal: true

require_relative "helper"
require "socket"
require "timeout"

class TestLiveness < Minitest::Test
  Token = Procwright::LivenessToken
  Monitor = Procwright::LivenessMonitor
  Invitation = Procwright::LivenessInvitation

  class Boom < StandardError; end

  # Another Ruby, which holds a token and has told us of it: its invitation, and itself.
  def holder(lines = "sleep", make: "Token.new")
    ours, theirs = UNIXSocket.pair
    child = Procwright.spawn(RbConfig.ruby, "--disable-gems", "-w", "-I#{LIB}", "-rprocwright", "-rsocket", "-e", <<~RUBY,
      Token = Procwright::LivenessToken
      token = #{make}
      socket = UNIXSocket.for_fd(20)
      token.invite.send_over(socket)
      #{lines}
    RUBY
                             fds: { 20 => theirs }, stdin: :pipe)
    theirs.close
    [Invitation.receive(ours), child]
  ensure
    ours&.close
  end

  def sleeping
    Procwright.spawn(CHILD, "sleep-forever").tap { |child| (@children ||= []) << child }
  end

  def teardown
    @children&.each(&:stop)
    super
  end

  def test_a_token_says_that_it_is_there
    token = Token.new
    monitor = Monitor.new(token.invite)
    assert_equal [true, :alive, :alive], [monitor.alive?, monitor.state, monitor.confirm]
    assert_equal Process.pid, monitor.process.pid
    assert_includes %i[image process], monitor.guarantee.names
    assert_includes %i[robust_word watcher], token.guarantee.mechanism
    assert_raises(Procwright::WaitTimeout) { monitor.wait(timeout: 0.01) }
    2.times { token.release }
    assert_equal [true, false, :released], [token.released?, monitor.alive?, monitor.state]
    assert_equal :released, monitor.wait
    error = assert_raises(Procwright::LivenessError) { token.invite }
    assert_equal :released, error.reason
    assert_kind_of Procwright::Error, error
  end

  def test_a_token_while_a_block_runs
    monitor = nil
    value = Token.hold do |token|
      monitor = Monitor.new(token.invite)
      assert_predicate monitor, :alive?
      :value
    end
    assert_equal [:value, :released], [value, monitor.state]
    raised { Token.hold { |token| (monitor = Monitor.new(token.invite)) && raise(Boom) } }
    assert_equal :released, monitor.state
  end

  def test_a_token_of_the_main_thread
    token = Token.new(holder: :thread)
    monitor = Monitor.new(token.invite)
    assert_equal [true, :thread], [monitor.alive?, monitor.guarantee.names]
    errors = thread { [raised { token.release }, raised { token.invite }, raised { Token.new(holder: :thread) }] }.value
    assert_equal %i[not_main not_main not_main], errors.map(&:reason)
    token.release
    assert_equal :released, monitor.wait
  end

  def test_wrong_values
    assert_raises(Procwright::InvalidValue) { Token.new(holder: :nobody) }
    assert_raises(Procwright::InvalidValue) { Token.new(holder: "process") }
    token = Token.new
    assert_raises(Procwright::InvalidValue) { Monitor.new(token) }
    assert_raises(Procwright::InvalidValue) { Monitor.new(Object.new) }
    assert_raises(Procwright::InvalidValue) { Monitor.new(token.invite).wait(timeout: Float::NAN) }
    assert_raises(Procwright::InvalidValue) { Invitation.new([0, 1], "no ticket") }
    assert_raises(Procwright::InvalidValue) { Invitation.new([0], "x") }
    assert_raises(TypeError) { token.dup }
    assert_raises(TypeError) { Marshal.dump(token) }
    assert_equal :no_parent, assert_raises(Procwright::LivenessError) { Monitor.of_parent }.reason
  ensure
    token&.release
  end

  # How it ends, and what its monitors then say.
  ENDS = {
    "release" => ["token.release; sleep", :released], "exit" => ["gets; exit", :released],
    "exit!" => ["gets; exit!", :died], "abort" => ["gets; Process.kill(:ABRT, $$); sleep", :died],
    "kill" => ["sleep", :died], "exec" => ["gets; exec 'sleep 1000'", :died]
  }.freeze

  ENDS.each do |name, (lines, state)|
    { "process" => "Token.new", "thread" => "Token.new(holder: :thread)" }.each do |which, make|
      define_method("test_#{name}_of_a_#{which}") do
        invitation, child = holder(lines, make: make)
        monitor = Monitor.new(invitation)
        skip "tokens stand for the process here" if name == "exec" && monitor.guarantee.names == :process
        waiting = thread { monitor.wait }
        name == "kill" ? child.kill : child.stdin.close
        assert_equal [state, state, false], [waiting.value, monitor.state, monitor.alive?]
      ensure
        child&.stop
      end
    end
  end

  def test_a_process_that_does_not_know_of_it
    child = sleeping
    monitors = [child.monitor, Monitor.new(child.pid), Monitor.new(child.process), Monitor.new(child.process.id)]
    assert monitors.all?(&:alive?)
    assert_equal [child.process] * 4, monitors.map(&:process)
    assert_equal :process, monitors[0].guarantee.names
    waiting = thread { monitors[0].wait }
    until_blocked(waiting)
    child.kill
    assert_equal :died, waiting.value
    # It has ended for the kernel; each of the others is told of it.
    assert_equal [:died] * 4, monitors.map(&:wait)
    assert_nil monitors[0].wait_gone
    child.wait
    assert_raises(Procwright::NoSuchProcess) { Monitor.new(child.pid) }
  end

  def test_the_parent
    lines = <<~RUBY
      parent = Procwright::LivenessMonitor.of_parent
      puts [parent.alive?, parent.process.pid].inspect
      $stdout.flush
      gets
    RUBY
    Procwright.spawn(RbConfig.ruby, "--disable-gems", "-I#{LIB}", "-rprocwright", "-e", lines, liveness: true, stdin: :pipe) do |child|
      assert_equal "[true, #{$$}]\n", child.stdout.gets
      assert_predicate child.monitor, :alive?
    end
    result = Procwright.run(RbConfig.ruby, "--disable-gems", "-I#{LIB}", "-rprocwright", "-e", lines, liveness: true)
    assert_equal "[true, #{$$}]\n", result.check!.stdout
  end

  # The child of a Ruby that is killed is told so.
  def test_the_death_of_the_parent
    lines = <<~RUBY
      inner = "parent = Procwright::LivenessMonitor.of_parent; warn 'up'; puts parent.wait; $stdout.flush"
      child = Procwright.spawn(*ARGV, "-e", inner, liveness: true, stdout: :inherit)
      child.stderr.gets
      Process.kill(:KILL, $$)
    RUBY
    argv = [RbConfig.ruby, "--disable-gems", "-I#{LIB}", "-rprocwright"]
    result = Procwright.run(*argv, "-e", lines, *argv)
    assert_equal "died\n", result.stdout, result.stderr
  end

  def test_inherited
    token = Token.new
    invitation = token.invite
    lines = <<~RUBY
      invitation = Procwright::LivenessInvitation.new(ARGV[1..].map(&:to_i), ARGV[0])
      puts Procwright::LivenessMonitor.new(invitation).state
    RUBY
    result = Procwright.run(RbConfig.ruby, "--disable-gems", "-I#{LIB}", "-rprocwright", "-e", lines,
                            invitation.ticket, *invitation.fds, fds: invitation.fds)
    assert_equal "alive\n", result.stdout, result.stderr
    assert_equal 2, Array.new(2) { Monitor.new(invitation) }.count(&:alive?)
  ensure
    token&.release
  end

  def test_in_a_wait_beside_others
    token = Token.new
    monitor = Monitor.new(token.invite)
    child = sleeping
    of_child = child.monitor
    assert_empty Procwright.wait([monitor, of_child], timeout: 0.01).done
    token.release
    assert_equal [monitor], Procwright.wait([monitor, of_child], mode: :any).done
    child.kill
    assert_predicate Procwright.wait([monitor, of_child, child], mode: :all), :all?
    refute_predicate of_child, :alive?
    assert IO.select([IO.for_fd(monitor.readiness_fd, autoclose: false)])
  end

  def test_interrupts
    token = Token.new
    monitors = [Monitor.new(token.invite), sleeping.monitor]
    calls = monitors.flat_map { |one| [-> { one.wait }, -> { one.wait(timeout: 100_000) }, -> { one.wait_gone }] }
    calls.each do |call|
      waiting = Thread.new(&call)
      waiting.report_on_exception = false
      until_blocked(waiting)
      waiting.raise(Boom)
      assert_raises(Boom) { waiting.value }
      waiting = Thread.new(&call)
      until_blocked(waiting)
      waiting.kill
      assert_nil waiting.value
      assert_raises(Timeout::Error) { Timeout.timeout(0.02) { call.call } }
    end
  ensure
    token&.release
  end

  def test_one_of_all_cleans_up
    invitation, child = holder
    one, other = Array.new(2) { Monitor.new(invitation) }
    assert_equal :alive, one.claim.kind
    child.kill
    one.wait
    claim = one.claim
    assert_equal [:ours, true], [claim.kind, claim.ours?]
    assert_equal :theirs, other.claim.kind
    assert_equal :theirs, other.claim(timeout: 0.01).kind
    waiting = thread { other.claim(timeout: nil) { |right| right.kind } }
    until_blocked(waiting)
    refute_nil waiting.status
    interrupted = thread { Monitor.new(invitation).claim(timeout: nil) }
    until_blocked(interrupted)
    interrupted.raise(Boom)
    assert_kind_of Boom, interrupted.value
    claim.give_back
    assert_equal :not_ours, assert_raises(Procwright::LivenessError) { claim.done }.reason
    # Who was interrupted may have been given it, and then has let go of it.
    assert_equal :ours, waiting.value
    assert_equal :done, one.claim(timeout: nil).kind
  ensure
    child&.stop
  end

  # Nobody is left asleep behind a call that was interrupted, and takes the right later: whoever
  # asks when it is given back has it at once.
  def test_who_was_interrupted_takes_no_right
    invitation, child = holder
    child.kill
    one, other = Array.new(2) { Monitor.new(invitation) }
    one.wait
    before = tasks
    claim = one.claim
    30.times do
      assert_raises(Timeout::Error) { Timeout.timeout(0.002) { other.claim(timeout: nil) } }
    end
    # Before the right is free, which would wake those that are asleep. Timeout has a thread of
    # its own.
    eventually { tasks <= before + 1 }
    claim.give_back
    5.times { assert_equal(:ours, one.claim.tap(&:give_back).kind) }
  ensure
    child&.stop
  end

  # In a fork nothing but the word can be slept on.
  def test_who_was_interrupted_in_a_fork_leaves_no_thread
    invitation, child = holder
    monitor = Monitor.new(invitation)
    monitor.readiness_fd
    pid = fork do
      # That of the parent is no thread of the fork.
      Helper.watch("the fork", patience / 2)
      Timeout.timeout(0.001) { sleep } rescue nil # rubocop:disable Style/RescueModifier
      before = tasks
      20.times do
        Timeout.timeout(0.002) { monitor.wait }
        exit!(2)
      rescue Timeout::Error
        nil
      end
      # A fork has one thread for all of them, which watches the process.
      eventually { tasks <= before + 1 }
      exit!(0)
    end
    assert_equal 0, ::Process.wait2(pid).last.exitstatus
  ensure
    child&.stop
  end

  # What nobody has any more is collected before a token is refused.
  def test_tokens_that_nobody_has_any_more
    status = ruby(<<~LINES)
      GC.disable
      3000.times { Procwright::LivenessToken.new }
      kept = Array.new(1000) { Procwright::LivenessToken.new }
      begin
        1000.times { kept << Procwright::LivenessToken.new }
        abort "no end"
      rescue Procwright::LivenessError => e
        abort e.reason.inspect unless e.reason == :full
      end
      puts "well"
    LINES
    assert_equal "well\n", status.stdout
  end

  def test_a_right_is_given_back_by_who_fails
    invitation, child = holder
    monitor = Monitor.new(invitation)
    child.kill
    monitor.wait
    raised { monitor.claim { raise Boom } }
    assert_equal :ours, monitor.claim { |claim| claim.kind }
    assert_equal :done, monitor.claim { |claim| claim.kind }
    assert_raises(Procwright::LivenessError) { sleeping.monitor.claim }
  ensure
    child&.stop
  end

  def test_a_fork_watches_and_holds_nothing
    token = Token.new
    monitor = Monitor.new(token.invite)
    assert_empty Procwright.wait([monitor], timeout: 0.01).done
    child = sleeping
    of_child = child.monitor
    reader, writer = IO.pipe
    pid = fork do
      forked = raised { token.invite }.reason
      token.release
      timeout = raised { monitor.wait(timeout: 0.05) }.class
      own = Token.hold { |one| Monitor.new(one.invite).alive? }
      writer.puts [monitor.alive?, forked, timeout, own, of_child.alive?].inspect
      writer.puts monitor.wait, of_child.wait
      writer.close
      exit!
    end
    writer.close
    assert_equal "[true, :forked, Procwright::WaitTimeout, true, true]\n", reader.gets
    assert_predicate monitor, :alive?
    token.release
    child.kill
    assert_equal "released\ndied\n", reader.read
    Process.wait(pid)
  ensure
    reader&.close
  end

  def test_ractors_get_a_clear_error
    result = ruby(<<~RUBY)
      Warning[:experimental] = false
      begin
        Ractor.new { Procwright::LivenessToken.new }.take
      rescue Ractor::RemoteError => e
        puts e.cause.class
      end
    RUBY
    assert_match(/Ractor::\w+Error\n\z/, result.stdout)
  end
end
