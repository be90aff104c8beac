# frozen_string_literal: true

require_relative "sleeper"
require "timeout"
require "tmpdir"

# Whatever ends a thread, or something in it, acts in every call that blocks, and leaves
# nothing running.
class TestInterrupts < Minitest::Test
  include Sleeper

  # Calls that would block for ever, each with the child that it is about.
  BLOCKING = {
    "run" => ->(test) { Procwright.run(test.marked, CHILD, "sleep-forever") },
    "pipeline" => ->(test) { Procwright.pipeline([test.marked, CHILD, "sleep-forever"], [test.marked, CHILD, "cat"]) },
    "Open3.pipeline" => ->(test) { Procwright::Open3.pipeline([test.marked, CHILD, "sleep-forever"], [test.marked, CHILD, "cat"]) },
    "wait for a child" => ->(test) { test.child.wait },
    "wait for a process" => ->(test) { test.child.process.wait },
    "wait for many" => ->(test) { Procwright.wait([test.child, test.child.stdout], mode: :all) },
    "read all" => ->(test) { test.child.stdout.read },
    "read some" => ->(test) { test.child.stdout.read(10) },
    "readpartial" => ->(test) { test.child.stdout.readpartial(100_000) },
    "gets" => ->(test) { test.child.stdout.gets },
    "each_line" => ->(test) { test.child.stdout.each_line(&:upcase) },
    "eof?" => ->(test) { test.child.stdout.eof? },
    "write" => ->(test) { test.child.stdin.write("x" * 1_000_000) },
    "communicate" => ->(test) { test.child.communicate },
    "result" => ->(test) { test.child.result },
    "wait_for" => ->(test) { test.child.wait_for(/never/) },
    "wait_readable" => ->(test) { test.child.stdout.wait_readable },
    "capture3" => ->(test) { Procwright::Open3.capture3(test.marked, CHILD, "sleep-forever") },
    "Waiter#value" => ->(test) { Procwright::Open3.popen3(test.marked, CHILD, "sleep-forever").last.value }
  }.freeze

  # Of the call, and not before it.
  def blocked(call)
    inside = Queue.new
    thread = Thread.new do
      inside << true
      call.call(self)
    end
    thread.report_on_exception = false
    inside.pop
    until_blocked(thread)
    thread
  end

  BLOCKING.each do |name, call|
    define_method("test_raise_in_#{name}") do
      thread = blocked(call)
      thread.raise(Boom)
      assert_raises(Boom) { thread.value }
    end

    define_method("test_kill_#{name}") do
      thread = blocked(call)
      thread.kill
      assert_nil thread.value
      refute_predicate thread, :alive?
    end

    define_method("test_timeout_of_#{name}") do
      assert_raises(Timeout::Error) { Timeout.timeout(0.02) { call.call(self) } }
    end
  end

  def test_a_run_leaves_nothing_behind
    %i[raise kill].each do |how|
      thread = Thread.new do
        Procwright.run(marked, CHILD, "fork-tree", "2", "2")
      end
      thread.report_on_exception = false
      eventually { Dir.glob("/proc/[0-9]*/environ").count { |f| File.binread(f).include?(mark) rescue false } > 3 }
      how == :raise ? thread.raise(Boom) : thread.kill
      raised { thread.value }
      @child.stop
      assert gone?, how.to_s
    end
  end

  def test_a_second_time_ends_the_grace
    thread = with_stubborn(&:call)
    thread.raise(Boom, "first")
    eventually { stubborn?("T") }
    assert_predicate thread, :alive?
    thread.raise(Boom, "second")
    error = assert_raises(Boom) { thread.value }
    assert_equal "first", error.message
    @child.stop
    assert gone?
  end

  def test_two_at_once_end_the_grace
    thread = Thread.new { Procwright.run(marked, CHILD, "ignore-term", stop: { grace: 100_000 }) }
    thread.report_on_exception = false
    eventually { Dir.glob("/proc/[0-9]*/environ").count { |file| File.binread(file).include?(mark) rescue false } > 1 }
    thread.raise(Boom, "first")
    thread.raise(Boom, "second")
    assert_equal "first", assert_raises(Boom) { thread.value }.message
    @child.stop
    assert gone?
  end

  # What is no exception Ruby keeps only where it notes what was raised last.
  def test_a_second_time_ends_the_grace_after_a_kill
    ensured = false
    thread = with_stubborn do |run|
      run.call
    ensure
      ensured = true
    end
    thread.kill
    eventually { stubborn?("T") }
    thread.raise(Boom)
    assert_nil thread.value
    assert ensured
    @child.stop
    assert gone?
  end

  def test_a_second_time_ends_the_grace_after_a_timeout
    seconds = 0.02
    begin
      # It may be over before there is a program.
      thread = with_stubborn { |run| Timeout.timeout(seconds *= 2, &run) }
      eventually { stubborn?("T") || !thread.alive? }
    end until thread.alive?
    thread.raise(Boom)
    assert_raises(Timeout::Error) { thread.value }
    @child.stop
    assert gone?
  end

  def test_a_handler_that_rescues_takes_nothing_from_what_is_thrown
    lines = <<~RUBY
      handled = 0
      # The first throws, and each that follows raises and rescues.
      trap("USR1") do
        throw :done, "thrown" if (handled += 1) == 1
        raise "a handler's own" rescue nil
      end
      Thread.new do
        sleep 0.01 until File.exist?(ARGV[0])
        (Process.kill("USR1", $$); sleep 0.01) while handled < 3
        File.write(ARGV[1], "")
      end
      puts(catch(:done) do
        # Ends only once they have run.
        Procwright.run("trap '' TERM; touch \#{ARGV[0]}; until test -e \#{ARGV[1]}; do sleep 0.01; done", shell: true)
      end)
    RUBY
    Dir.mktmpdir do |directory|
      assert_equal "thrown\n", ruby(lines, "#{directory}/up", "#{directory}/handled").check!.stdout
    end
  end

  # A thread with a run, in the block, that only SIGKILL ends.
  def with_stubborn
    thread = Thread.new { yield ->(*) { Procwright.run(*stubborn, **STUBBORN) } }
    thread.report_on_exception = false
    eventually { stubborn?("S") || stubborn?("T") || !thread.alive? }
    thread
  end

  def test_what_comes_while_something_is_stopped_ends_the_grace
    other = Procwright.spawn(marked, CHILD, "ignore-term", "--print-ready", stop: { grace: 100_000 })
    other.wait_for(/./)
    thread = Thread.new { other.stop }
    thread.report_on_exception = false
    until_blocked(thread)
    thread.raise(Boom)
    assert_raises(Boom) { thread.value }
    assert_equal 9, other.status.termsig
  end

  def test_who_is_killed_can_stop_a_child_in_an_ensure
    other = nil
    thread = Thread.new do
      other = Procwright.spawn(marked, CHILD, "sleep-forever")
      begin
        other.wait
      ensure
        other.stop
      end
    end
    eventually { other }
    until_blocked(thread)
    thread.kill
    thread.join
    assert_predicate other.status, :signaled?
  end

  def test_a_block_that_is_killed_stops_its_child
    other = nil
    thread = Thread.new do
      Procwright.spawn(marked, CHILD, "sleep-forever") do |child|
        other = child
        child.stdout.read
      end
    end
    eventually { other }
    until_blocked(thread)
    thread.kill
    thread.join
    assert_predicate other.status, :signaled?
  end

  def test_an_interrupt_right_after_the_start_finds_a_child_to_stop
    @child.stop
    started = false
    after_the_start = TracePoint.new(:c_return) do |point|
      next unless point.method_id == :spawn && point.self == Procwright.const_get(:Native)

      # The kernel lets us go on before the program's variables can be read.
      started = eventually { !gone? }
      raise Boom
    end
    GC.disable
    assert_instance_of Boom, (after_the_start.enable do
      raised { Procwright.spawn(marked, CHILD, "sleep-forever") { flunk } }
    end)
    assert started
    assert gone?
  ensure
    GC.enable
  end

  def test_races_of_raise_and_kill_leave_nothing
    calls = [
      -> { Procwright.run(marked, CHILD, "sleep-forever") },
      -> { Procwright.run(marked, CHILD, "exit", "0") },
      -> { Procwright.spawn(marked, CHILD, "cat", stdin: :pipe) { |one| one.stdout.read } },
      -> { Procwright::Open3.capture3(marked, CHILD, "echo", "x") },
      -> { Procwright.wait([@child]) }
    ]
    before = tasks
    (ENV["STRESS"] ? 100_000 : 120).times do |round|
      thread = Thread.new { calls[round % calls.size].call }
      thread.report_on_exception = false
      # From before the start to long after it.
      give_turns(round * 37 % 400)
      round % 3 == 0 ? thread.kill : thread.raise(Boom)
      raised { thread.value }
    end
    @child.stop
    assert gone?
    eventually { tasks <= before }
  end

  def test_who_does_not_want_to_be_interrupted_is_not
    blocked = Queue.new
    thread = Thread.new do
      Thread.handle_interrupt(Boom => :never) do
        blocked << true
        @read = @child.stdout.gets
      end
    end
    thread.report_on_exception = false
    blocked.pop
    until_blocked(thread)
    thread.raise(Boom)
    sleep 0.05
    assert_predicate thread, :alive?
    @child.stop
    assert_raises(Boom) { thread.value }
    assert_nil @read
  end

  def test_who_wants_to_be_interrupted_where_it_blocks_is
    begun = Queue.new
    thread = Thread.new do
      Thread.handle_interrupt(Boom => :on_blocking) do
        begun << true
        # Not here.
        turns = 0
        turns += 1 until turns == 2_000_000
        @child.stdout.gets
      end
    end
    thread.report_on_exception = false
    begun.pop
    thread.raise(Boom)
    assert_raises(Boom) { thread.value }
  end

  def test_a_read_that_is_interrupted_loses_nothing
    other = Procwright.spawn("printf abc; read line; printf def", shell: true, stdin: :pipe)
    thread = Thread.new { other.stdout.read }
    thread.report_on_exception = false
    until_blocked(thread)
    thread.raise(Boom)
    assert_raises(Boom) { thread.value }
    other.stdin.puts
    assert_equal "abcdef", other.stdout.read
    assert_equal 6, other.stdout.position
  end

  # It would have Ruby's lock while it waits for the other one, which may sleep for ever.
  def test_what_is_given_back_does_not_wait_for_another_reader
    lines = <<~RUBY
      child = Procwright.spawn("printf abc; exec sleep 1000", shell: true, stop: { grace: 0 })
      first, second = Array.new(2) do
        thread = Thread.new { child.stdout.read }
        thread.report_on_exception = false
        sleep 0.01 until thread.status == "sleep"
        sleep 0.1
        thread
      end
      # So that the first gets the lock late, and the second has the turn by then.
      busy = Thread.new { loop {} }
      first.raise("first")
      first.value rescue puts $!.message
      busy.kill
      second.raise("second")
      second.value rescue puts $!.message
      puts child.stdout.readpartial(10)
      child.stop
    RUBY
    # The timeout is for one that hangs: nothing in there would hear of it.
    assert_equal "first\nsecond\nabc\n", ruby(lines, timeout: patience / 2).stdout
  end

  # The fork is to end, and has no part in what is going on.
  def test_a_handler_may_fork
    lines = <<~RUBY
      PROGRAM = "trap '' TERM; echo up; until test -e \#{ARGV[0]}; do sleep 0.01; done; exit 4"
      fork_when = lambda do |there|
        Thread.new { sleep 0.01 until there.call; sleep 0.1; ::Process.kill("USR1", $$) }
      end
      trap("USR1") do
        fork or exit(7)
        Thread.new { ::Process.wait; puts $?.exitstatus; File.write(ARGV[0], "") }
      end
      case ARGV[1]
      when "run"
        fork_when.call(-> { File.exist?("\#{ARGV[0]}.up") })
        puts Procwright.run("touch \#{ARGV[0]}.up; \#{PROGRAM}", shell: true).status.inspect[/exit.*/]
      when "stop"
        child = Procwright.spawn(PROGRAM, shell: true, stop: { grace: 100_000 })
        child.wait_for(/up/)
        fork_when.call(-> { true })
        child.stop
        puts child.status.inspect[/exit.*/]
      end
    RUBY
    %w[run stop].each do |how|
      Dir.mktmpdir do |directory|
        # The timeout is for a fork that does not end.
        result = ruby(lines, "#{directory}/over", how, timeout: patience / 2)
        assert_equal "7\nexit 4>\n", result.stdout, how
      end
    end
  end

  def test_what_never_ends_can_be_interrupted
    # There is always more to read, or room to write: it never waits.
    other = Procwright.spawn(CHILD, "flood-forever", overflow: :block)
    thread = Thread.new { other.stdout.read }
    thread.report_on_exception = false
    eventually { other.stdout.position > 1_000_000 }
    thread.raise(Boom)
    assert_raises(Boom) { thread.value }
    other.stop
  end

  def test_signals_are_handled_while_a_run_goes_on
    lines = <<~RUBY
      seen = []
      trap("USR1") { seen << "handled" }
      Thread.new do
        sleep 0.01 until File.exist?(ARGV[0])
        Process.kill("USR1", $$)
        sleep 0.01 while seen.empty?
        File.write(ARGV[1], "")
      end
      # Ends only once the handler has run.
      result = Procwright.run("touch \#{ARGV[0]}; until test -e \#{ARGV[1]}; do sleep 0.01; done", shell: true)
      puts seen, result.success?
    RUBY
    Dir.mktmpdir do |directory|
      result = ruby(lines, "#{directory}/up", "#{directory}/handled").check!
      assert_equal "handled\ntrue\n", result.stdout
    end
  end

  def test_what_a_handler_raises_ends_a_run
    lines = <<~RUBY
      trap("USR1") { raise IOError, "by a handler" }
      Thread.new { sleep 0.01 until File.exist?(ARGV[0]); Process.kill("USR1", $$) }
      begin
        Procwright.run("touch \#{ARGV[0]}; exec sleep 1000", shell: true)
      rescue IOError => e
        puts e.message
      end
    RUBY
    Dir.mktmpdir do |directory|
      assert_equal "by a handler\n", ruby(lines, "#{directory}/up", extra_env: marked).stdout
    end
    @child.stop
    assert gone?
  end

  def test_ctrl_c
    lines = <<~RUBY
      case ARGV[0]
      when "run" then Procwright.run("echo", "up", stdout: :inherit); Procwright.run("sleep", "1000")
      when "wait" then child = Procwright.spawn("sleep", "1000"); puts "up"; $stdout.flush; begin; child.wait; ensure; child.stop; end
      when "gets" then Procwright.spawn("sleep", "1000") { |child| puts "up"; $stdout.flush; child.stdout.gets }
      end
    RUBY
    %w[run wait gets].each do |how|
      other = Procwright.spawn(marked, RbConfig.ruby, "-I#{LIB}", "-rprocwright", "-e", lines, how)
      other.wait_for(/up/)
      sleep 0.1
      other.signal("INT")
      status = other.wait
      assert_equal [2, how], [status.termsig, how]
      assert_includes other.stderr.read, "Interrupt"
    end
    @child.stop
    assert gone?
  end
end
