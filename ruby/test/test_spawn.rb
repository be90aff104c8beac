# frozen_string_literal: true

require_relative "helper"

class TestSpawn < Minitest::Test
  {
    "wait" => :wait.to_proc, "communicate" => :communicate.to_proc, "result" => :result.to_proc,
    "stop" => :stop.to_proc, "read" => ->(child) { child.stdout.read && child.stderr.read && child.wait },
    "wait for several" => ->(child) { Procwright.wait([child]) && child.wait }
  }.each do |name, way|
    define_method(:"test_who_is_over_holds_no_descriptor: #{name}") do
      # Whoever reads or waits has to sleep.
      over = -> { Procwright.spawn("sleep 0.03; exit 3", shell: true).tap(&way) }
      first = over.call
      # What the collector would close tells nothing.
      GC.start
      GC.disable
      before = fds
      kept = Array.new(20) { over.call }
      eventually { fds < before + 10 }
      [first, *kept].each do |child|
        child.signal("TERM")
        assert_same child.process, child.process
        assert_equal [child.status, child.pid, nil], [child.process.status, child.process.pid, child.process.pidfd]
        refute_nil child.status
        assert_raises(Procwright::NoSuchProcess) { child.process.signal("TERM") }
        refute_predicate child.monitor, :alive?
        readable, = IO.select([IO.for_fd(child.readiness_fd, autoclose: false)], nil, nil, 0)
        refute_nil readable
      end
    ensure
      GC.enable
    end
  end

  def test_a_conversation
    Procwright.spawn(CHILD, "cat", stdin: :pipe) do |child|
      3.times do |n|
        child.stdin.puts "line #{n}"
        assert_equal "line #{n}\n", child.stdout.gets
      end
      assert_predicate child, :alive?
      assert_nil child.status
      child.stdin.close
      assert_nil child.stdout.gets
      assert_equal 0, child.wait.exitstatus
      assert_equal child.pid, child.status.pid
    end
  end

  def test_a_block_that_runs_to_its_end_waits
    child = nil
    value = Procwright.spawn(CHILD, "cat", stdin: :pipe) { |one| (child = one) && :value }
    assert_equal :value, value
    assert_predicate child.status, :success?
  end

  def test_a_block_that_is_left_otherwise_stops_it
    [
      -> { Procwright.spawn(CHILD, "sleep-forever") { |one| (@child = one) && raise(IndexError) } },
      -> { Procwright.spawn(CHILD, "sleep-forever") { |one| break @child = one } },
      -> { catch(:out) { Procwright.spawn(CHILD, "sleep-forever") { |one| throw :out, @child = one } } }
    ].each do |leave|
      raised { leave.call }
      assert_equal 15, @child.status.termsig
    end
  end

  def test_wait
    child = Procwright.spawn(CHILD, "sleep-forever")
    error = assert_raises(Procwright::WaitTimeout) { child.wait(timeout: 0.01) }
    assert_kind_of Timeout::Error, error
    assert_equal [child], error.pending
    child.terminate
    assert_equal 15, child.wait.termsig
    assert_equal child.wait, child.status
    assert_nil child.kill
    assert_nil child.exitstatus
  end

  def test_signals_by_all_their_names
    ["TERM", "SIGTERM", :TERM, 15].each do |signal|
      child = Procwright.spawn(CHILD, "sleep-forever")
      child.signal(signal)
      assert_equal [15, "SIGTERM"], child.wait.then { |it| [it.termsig, it.signal_name] }
    end
    assert_raises(Procwright::InvalidValue) { Procwright.spawn(CHILD, "exit", "0").signal("NONE") }
  end

  # Every way to learn that the program has ended.
  LOOKS = {
    nothing: ->(_child) {}, wait: :wait.to_proc, status: :status.to_proc, alive: :alive?.to_proc,
    exitstatus: :exitstatus.to_proc, inspect: :inspect.to_proc, signal: :terminate.to_proc,
    wait_of_many: ->(child) { Procwright.wait([child]) },
    a_process: ->(child) { child.process.wait }
  }.freeze

  def test_stop_ends_what_is_left_whatever_was_asked_before
    [{}, { process_group: 0 }, { new_session: true, stdout: :null, stderr: :null }].each do |options|
      LOOKS.each do |name, look|
        Dir.mktmpdir do |dir|
          file = File.join(dir, "pid")
          child = Procwright.spawn(CHILD, "fork-holder", "0", "--pidfile", file, **options)
          child.process.wait
          left = Integer(File.read(file))
          look.call(child)
          process = Procwright::Process.new(left)
          assert_predicate process, :alive?, "#{name}: a look ends nobody"
          assert_empty child.stop, name
          refute_predicate process, :alive?, name
          assert_predicate child.status, :success?
          assert_empty child.stop
        end
      end
    end
  end

  def test_a_block_that_is_left_after_the_programs_end_ends_what_it_has_left
    Dir.mktmpdir do |dir|
      file = File.join(dir, "pid")
      left = nil
      raised do
        Procwright.spawn(CHILD, "fork-holder", "0", "--pidfile", file) do |child|
          child.wait
          left = Procwright::Process.new(Integer(File.read(file)))
          raise IndexError
        end
      end
      refute_predicate left, :alive?
    end
  end

  def test_stop_without_a_thread_to_be_had
    skip "root is needed, to become a user whom nobody else is" unless Process.euid.zero?
    result = ruby(<<~'RUBY', (400_000 + Process.pid).to_s)
      Process::Sys.setgid(Integer(ARGV[0]))
      Process::Sys.setresuid(*[Integer(ARGV[0])] * 3)
      child = Procwright.spawn(ENV["PROCWRIGHT_TEST_CHILD"], "leader-term-child-ignore", "--print-ready",
                               stop: { grace: 0.05 })
      pids = child.stdout.gets.split.drop(1).map { |pid| Procwright::Process.new(Integer(pid)) }
      # Fewer than there are: whoever asks for one more is refused.
      Process.setrlimit(:NPROC, 1, Process.getrlimit(:NPROC)[1])
      begin
        Thread.new {}
      rescue ThreadError
        $stderr.puts "no thread"
      end
      p child.stop, pids.size, pids.none?(&:alive?), child.status.termsig
    RUBY
    assert_equal "no thread\n", result.stderr
    assert_equal "[]\n2\ntrue\n15\n", result.stdout
  end

  def test_the_number_that_means_no_change
    %i[user group extra_groups].each do |option|
      value = option == :extra_groups ? [1, (2**32) - 1] : (2**32) - 1
      [:run, :spawn].each do |call|
        error = assert_raises(Procwright::InvalidValue) { Procwright.public_send(call, "true", option => value) }
        assert_match(/no change/, error.message)
      end
    end
  end

  def test_stop_ends_the_tree
    child = Procwright.spawn(marked, CHILD, "fork-tree", "2", "2", "--print-ready")
    child.wait_for(/./)
    assert_empty child.stop
    assert gone?
    child = Procwright.spawn(marked, CHILD, "ignore-term", "--print-ready")
    child.wait_for(/./)
    child.stop(Procwright::Stop.new(grace: 0.05, scope: :process))
    assert_equal 9, child.status.termsig
  end

  def test_communicate
    child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
    out, err = child.communicate("x" * 2_000_000)
    assert_equal [2_000_000, ""], [out.bytesize, err]
    assert_predicate child.status, :success?
    assert_predicate child.stdout, :closed?
    %i[spill block].each do |overflow|
      child = Procwright.spawn(CHILD, "flood", "--out", "3M", "--err", "3M", "--chunk", "4096", overflow: overflow)
      assert_equal [3 << 20] * 2, child.communicate.map(&:bytesize)
    end
    assert_equal [nil, "e\n"], Procwright.spawn(CHILD, "echo", "--stderr", "e", stdout: :null).communicate
    assert_raises(Procwright::InvalidValue) { Procwright.spawn(CHILD, "exit", "0").communicate("x") }
  end

  def test_communicate_goes_on_after_a_timeout
    child = Procwright.spawn("echo early; read line; cat; echo late", shell: true, stdin: :pipe, overflow: :block)
    assert_raises(Procwright::WaitTimeout) { Procwright.spawn(CHILD, "sleep-forever").communicate(timeout: 0.01) }
    go, say = IO.pipe
    holder = Procwright.spawn("read line", shell: true, stdin: go)
    assert_raises(Procwright::WaitTimeout) { holder.communicate(timeout: 0.01) }
    say.close
    assert_equal ["", ""], holder.communicate
    go.close
    assert_equal "early\nrest\nlate\n", child.communicate("line\nrest\n").first
  end

  def test_result
    child = Procwright.spawn("echo one; echo two; echo e >&2; exit 4", shell: true)
    assert_equal "one\n", child.stdout.gets
    result = child.result
    assert_equal ["two\n", "e\n", 4, :finished], [result.stdout, result.stderr, result.exitstatus, result.reason]
    assert_equal 8, result.stdout_info.bytes
    assert_same result, child.result
    assert_raises(Procwright::CommandFailed) { result.check! }
  end

  def test_wait_for
    child = Procwright.spawn("echo starting; echo listening on 8080 >&2; printf 'prompt> '; exec cat", shell: true,
                             stdin: :pipe)
    assert_equal "8080", child.wait_for(/listening on (\d+)/)[1]
    assert_equal "prompt> ", child.wait_for("prompt> ").to_s
    child.stdin.puts "echoed"
    assert child.wait_for(/echoed/, stream: :stdout)
    error = assert_raises(Procwright::MatchTimeout) { child.wait_for(/never/, timeout: 0.02) }
    assert_kind_of Timeout::Error, error
    child.stdin.close
    error = assert_raises(Procwright::EndedBeforeMatch) { child.wait_for(/never/) }
    assert_equal 0, error.status.exitstatus
    failing = Procwright.spawn("echo cannot bind; exit 3", shell: true)
    error = assert_raises(Procwright::EndedBeforeMatch) { failing.wait_for(/listening/) }
    assert_equal [3, ["cannot bind"]], [error.status.exitstatus, error.lines]
    assert_includes error.message, "cannot bind"
    refute_includes error.message, "at a time"
    two_lines = Procwright.spawn("printf 'a\\nb\\n'", shell: true)
    error = assert_raises(Procwright::EndedBeforeMatch) { two_lines.wait_for("a\nb") }
    assert_includes error.message, "(which is looked for in one line at a time); its last lines:"
    # What comes after the end of a child that has failed, for as long as it may be on its way.
    # It waits for one second, in which a busy machine may not get there.
    eventually do
      late = Procwright.spawn("(sleep 0.1; echo cannot bind) & exit 3", shell: true)
      late.wait_for(/bind/)
    rescue Procwright::EndedBeforeMatch
      nil
    end
  end

  def test_wait_for_passes_over_the_end_of_the_line_that_comes_later
    reads = [
      ->(child) { child.stdout.gets },
      ->(child) { child.stdout.each_line.first },
      ->(child) { child.stdout.readpartial(100) },
      ->(child) { "#{child.wait_for('next', timeout: 60)}\n" },
      ->(child) { child.tap { child.stdin.close }.stdout.read }
    ]
    ["\n", "\r\n"].product(reads) do |ending, read|
      child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
      child.stdin.write("ready")
      assert child.wait_for("ready", timeout: 60)
      # By itself, which whoever reads is not told of.
      child.stdin.write(ending)
      assert_equal :wait_readable, child.stdout.read_nonblock(10, exception: false)
      child.stdin.write("next\n")
      assert_equal "next\n", read.call(child)
      child.stop
    end
  end

  def test_wait_for_passes_over_no_more_than_the_end_of_the_line
    child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
    { "\n\n" => ["\n"], " it is\n" => [" it is\n"], "\r!\n" => ["\r!\n"] }.each do |rest, expected|
      child.stdin.write("ready")
      assert child.wait_for("ready", timeout: 60)
      child.stdin.write("#{rest}next\n")
      assert_equal [*expected, "next\n"], Array.new(2) { child.stdout.gets }
    end
    child.stdin.write("ready")
    assert child.wait_for("ready", timeout: 60)
    child.stdin.write("\nall of the rest\n")
    assert_equal "all of the rest\n", child.communicate.first
  end

  def test_wait_for_leaves_what_is_behind_the_match
    child = Procwright.spawn("printf 'Connected. Password: '; read x; " \
                             "printf 'port 80 port 443 und so\\r\\na b\\nready\\nlast x\\n'; exec cat",
                             shell: true, stdin: :pipe)
    assert child.wait_for("Connected", timeout: 60)
    assert child.wait_for(/Password: $/, timeout: 60)
    child.stdin.puts
    assert_equal %w[80 443], Array.new(2) { child.wait_for(/port (\d+)/, timeout: 60)[1] }
    assert child.wait_for("und", timeout: 60)
    assert_equal " so\r\n", child.stdout.gets
    # A match of nothing goes on with the next line.
    assert_equal "a b", child.wait_for(/x*/, timeout: 60).string
    assert_equal "ready\n", child.wait_for(/ready\n/, timeout: 60)[0]
    assert child.wait_for("last", timeout: 60)
    assert_equal " x\n", child.stdout.gets
    child.stop
  end

  def test_who_cannot_go_on_is_named
    child = Procwright.spawn(CHILD, "flood-forever", overflow: Procwright::Overflow.new(:block), stall_after: 0.02)
    error = assert_raises(Procwright::Stalled) { child.wait }
    assert_equal ["stdout"], error.streams
    assert_includes error.message, "nobody has read it"
    # It may be called again, and is over once somebody says that nobody wants it.
    child.stdout.close
    child.stderr.close
    assert_predicate child.wait, :signaled?
  end

  def test_no_event_is_lost_because_on_event_has_raised_at_another
    streams = []
    hook = lambda do |event|
      streams << event.stream
      raise "not for me" if streams.one?
    end
    child = Procwright.spawn(CHILD, "flood", "--out", "1M", "--err", "1M", on_event: hook,
                             overflow: Procwright::Overflow.new(:drop_newest, memory: 65_536))
    error = assert_raises(RuntimeError) { eventually { child.status && false } }
    assert_equal "not for me", error.message
    eventually { child.status && streams.length == 2 }
    assert_equal %w[stderr stdout], streams.sort
  end

  def test_a_pty
    child = Procwright.spawn("stty size", shell: true, stdin: :pipe, pty: [31, 97])
    assert_equal "31 97\r\n", child.stdout.gets
    child.wait
    child = Procwright.spawn("trap 'stty size; exit' WINCH; echo up; while :; do sleep 0.05; done", shell: true,
                             stdin: :pipe, pty: true)
    child.wait_for(/up/)
    child.resize(10, 20)
    assert child.wait_for(/10 20/)
    child.wait
  end

  def test_streams_that_are_no_pipes
    child = Procwright.spawn(CHILD, "exit", "0", stdout: :null, stderr: :merged)
    assert_equal [nil, nil, nil], [child.stdin, child.stdout, child.stderr]
    assert_predicate child.wait, :success?
    assert_equal "in\n", Procwright.spawn(CHILD, "cat", input: "in\n").stdout.gets
  end

  def test_who_has_let_go_of_its_outputs_is_left_to_itself_and_leaves_no_zombie
    reader, writer = IO.pipe
    go, say = IO.pipe
    # Many: the collector takes some for referred to that are not.
    pids = Array.new(20) do
      child = Procwright.spawn("exec >&- 2>&-; read line; echo done >&3", shell: true, stdin: go, fds: { 3 => writer })
      child.stdout.read
      child.stderr.read
      child.pid
    end
    writer.close
    3.times { GC.start }
    say.write("\n" * 20)
    say.close
    assert_equal ["done\n"] * 20, reader.readlines
    eventually do
      GC.start
      pids.count { |pid| !of_ours?(pid) } >= 10
    end
  ensure
    [reader, go].each(&:close)
  end

  # Whoever is found by a number later may be another's.
  def of_ours?(pid)
    File.read("/proc/#{pid}/stat")[/\) \w (\d+)/, 1].to_i == Process.pid
  rescue SystemCallError
    false
  end

  def test_what_is_for_a_run_alone
    assert_raises(Procwright::InvalidValue) { Procwright.spawn(CHILD, "exit", "0", on_line: -> {}) }
    assert_raises(Errno::ENOENT) { Procwright.spawn("/nonexistent") }
    assert_raises(Procwright::InvalidValue) { Procwright.spawn(CHILD, "exit", "0", overflow: :never) }
  end
end
