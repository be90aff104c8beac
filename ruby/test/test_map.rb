# frozen_string_literal: true

require_relative "helper"
require "json"
require "tmpdir"

# Many commands, so many at a time.
class TestMap < Minitest::Test
  SLEEPER = [CHILD, "sleep-forever"].freeze

  def words(*words) = [CHILD, *words]

  # Endless.
  def repeated(command) = Enumerator.new { |all| loop { all << command } }

  # A line for a shell that notes its number and sleeps.
  def noting(pids) = { argv: "echo $$ >> #{pids}; exec sleep 1000", shell: true }

  def pids_in(file, count)
    eventually { File.exist?(file) && (all = File.read(file).split).size >= count && all.map(&:to_i) }
  end

  def ended?(pid)
    Process.kill(0, pid)
    false
  rescue Errno::ESRCH
    true
  end

  def test_each_is_run_once_and_told_as_it_ends
    commands = Array.new(30) { |number| words("echo", number.to_s) }
    seen = Procwright.map(commands, parallel: 4).to_h do |ended|
      assert_predicate ended, :success?
      assert_equal commands[ended.index], ended.argv
      [ended.index, ended.result.stdout]
    end
    assert_equal Array.new(30) { |number| [number, "#{number}\n"] }.to_h, seen
  end

  def test_a_block_gives_an_array_as_that_of_an_array
    commands = %w[a b c].map { |word| words("echo", word) }
    assert_equal %W[a\n b\n c\n], Procwright.map(commands, ordered: true) { |ended| ended.result.stdout }
  end

  def test_it_is_enumerable
    assert_empty Enumerable.public_instance_methods - Procwright::Map.public_instance_methods
    commands = %w[a b c].map { |word| words("echo", word) }
    assert_equal [0, 1], Procwright.map(commands, ordered: true).take(2).map(&:index)
    assert_equal [0], Procwright.map(commands, ordered: true).lazy.map(&:index).first(1)
    each = Procwright.map(commands, ordered: true).each
    assert_equal [0, 1, 2], Array.new(3) { each.next.index }
    assert_raises(StopIteration) { each.next }
  end

  def test_results_come_in_order_if_asked
    commands = (0...30).lazy.map { |number| words("echo", number.to_s) }
    ended = Procwright.map(commands, parallel: 5, ordered: true).to_a
    assert_equal (0...30).to_a, ended.map(&:index)
    assert_equal "7\n", ended[7].result.stdout
  end

  def test_a_command_may_have_options_of_its_own
    Dir.mktmpdir do |dir|
      commands = [
        words("cat"), { argv: words("cat"), input: "its own" }, { argv: "pwd", chdir: dir },
        { argv: "echo $WORD", shell: true, extra_env: { "WORD" => "set" } }, [{ "WORD" => "begun" }, "sh", "-c", "echo $WORD"],
        { argv: words("echo", "\u00e4"), encoding: "utf-8:utf-16le" }
      ]
      ended = Procwright.map(commands, ordered: true, input: "of all").map { |one| one.result.stdout }
      assert_equal ["of all", "its own", "#{File.realpath(dir)}\n", "set\n", "begun\n", "\u00e4\n".encode("UTF-16LE")], ended
    end
  end

  def test_failures_are_results
    failed, missing, late, well = Procwright.map(
      [words("exit", "3"), ["/does/not/exist"], { argv: SLEEPER, timeout: 0.1 }, words("exit", "0")], ordered: true
    ).to_a
    refute_predicate failed, :success?
    assert_nil failed.error
    assert_operator failed.summary, :end_with?, "exited with code 3"
    assert_equal 3, assert_raises(Procwright::CommandFailed) { failed.check! }.result.exitstatus
    assert_nil missing.result
    assert_kind_of Errno::ENOENT, missing.error
    assert_raises(Procwright::SpawnError) { missing.check! }
    assert_equal :timeout, late.result.reason
    assert_raises(Procwright::TimeoutExpired) { late.check! }
    assert_same well, well.check!
    case failed
    in { success: false, result: { exitstatus: 3 }, unknown: false } then nil
    end
  end

  def test_so_many_failures_stop_what_runs
    commands = [SLEEPER, words("exit", "1")].each.lazy + repeated(SLEEPER)
    map = Procwright.map(commands, parallel: 2, stop_after_failures: 1)
    ended = map.to_a
    assert_equal :failures, map.progress.stopped_by
    assert_empty ended.filter_map(&:result).map(&:reason) - %i[finished cancelled]
    assert_operator ended.size, :<=, 3
  end

  def test_what_was_stopped_for_a_failure_raises_that_failure
    commands = [SLEEPER, words("exit", "3"), SLEEPER]
    map = Procwright.map(commands, parallel: 2, ordered: true, stop_after_failures: 1)
    first = map.next
    raised = assert_raises(Procwright::CommandFailed) { first.check! }
    assert_equal 3, raised.result.exitstatus
    failed, *rest = map.to_a
    assert_equal [1, nil, 3], [failed.index, failed.cause, failed.exitstatus]
    [first, *rest].each { |ended| assert_same failed, ended.cause }
    failed, stopped = Procwright.map([SLEEPER, words("exit", "3")], parallel: 2, stop_after_failures: 1).to_a
    assert_equal [1, 0], [failed.index, stopped.index]
    assert_same failed, stopped.cause
  end

  def test_the_deadline_is_that_of_all
    map = Procwright.map(repeated(SLEEPER), parallel: 2, deadline: 0.3)
    # On a busy machine it comes before they have been started.
    assert_empty map.filter_map { |ended| ended.result&.reason } - [:timeout]
    assert_equal :deadline, map.progress.stopped_by
  end

  def test_an_endless_collection_is_asked_for_what_there_is_room_for
    taken = []
    commands = (0..).each.lazy.map { |number| taken << number && words("exit", "0") }
    map = Procwright.map(commands, parallel: 2, ahead: 3)
    10.times do |number|
      assert_predicate map.next, :success?
      assert_operator taken.size, :<=, number + 10
    end
    refute map.progress.all_taken
    map.close
    assert_raises(StopIteration) { map.next }
    assert_empty map.to_a
  end

  def test_the_collection_may_block_while_results_come
    go_on = Thread::Queue.new
    commands = Enumerator.new do |all|
      all << words("exit", "0")
      go_on.pop
      all << words("exit", "0")
    end
    map = Procwright.map(commands, parallel: 4)
    assert_predicate map.next, :success?
    go_on << true
    assert_predicate map.next, :success?
    assert_raises(StopIteration) { map.next }
  end

  def test_what_the_collection_raises_comes_through
    commands = Enumerator.new do |all|
      all << words("exit", "0")
      raise KeyError, "mine"
    end
    map = Procwright.map(commands, parallel: 1)
    assert_predicate map.next, :success?
    assert_equal "mine", assert_raises(KeyError) { map.next }.message
    assert_empty map.to_a
  end

  def test_a_bad_command_ends_it
    {
      "gzip a.log" => 'a command of map("gzip a.log"): the program and its arguments are one string',
      { chdir: "/" } => "a command is #{{ chdir: '/' }.inspect}, which has no argv",
      { argv: ["true"], timeout: "x" } => 'timeout is "x": ',
      { argv: ["true"], on_line: 5 } => "on_line is 5, and a command of map has no such keyword",
      { argv: ["true"], stdin: ["x"].each } => "stdin is #<Enumerator: [\"x\"]:each>, and a command of map is not fed"
    }.each do |command, begins|
      error = assert_raises(Procwright::InvalidValue) { Procwright.map([command]).to_a }
      assert_operator error.message, :start_with?, begins
    end
  end

  def test_options_are_looked_at_before_anything_runs
    commands = Enumerator.new { |_all| flunk "a command for whom?" }
    before = Thread.list.size
    { timeout: "x", parallel: 0, tee: true, journal: 5, on_line: 5, stdin: ["x"].each, deadline: Float::NAN }.each do |name, value|
      assert_raises(Procwright::InvalidValue, name) { Procwright.map(commands, name => value) }
    end
    ["true", 5, nil, { argv: ["true"] }].each { |bad| assert_raises(Procwright::InvalidValue) { Procwright.map(bad) } }
    eventually { Thread.list.size <= before }
  end

  def test_what_the_core_refuses_is_told_with_its_value
    ended = Procwright.map([{ argv: ["true"], user: "no such" }]).first
    assert_instance_of Procwright::InvalidValue, ended.error
    assert_operator ended.error.message, :start_with?, 'user is "no such", which'
  end

  def test_a_cancel_ends_it
    cancel = Procwright::Cancel.new
    map = Procwright.map(repeated(SLEEPER), parallel: 2, cancel: cancel)
    eventually { map.progress.running == 2 }
    cancel.cancel
    assert_empty map.filter_map { |ended| ended.result&.reason }.uniq - [:cancelled]
    assert_equal :cancel, map.progress.stopped_by
  end

  def test_lines_come_whole_with_their_stream_and_place
    lines = []
    commands = Array.new(4) { |number| words("says", "out:a#{number}", "err:e\\n", "out:b\\nrest") }
    ended = Procwright.map(commands, parallel: 4, on_line: ->(line, stream, index) { lines << [index, stream, line] }).to_a
    assert_equal %W[a0b\nrest a1b\nrest a2b\nrest a3b\nrest], ended.sort_by(&:index).map { |one| one.result.stdout }
    4.times do |number|
      mine = lines.select { |index, *| index == number }
      assert_equal [["a#{number}b\n", "rest"], ["e\n"]], (%i[stdout stderr].map { |name| mine.select { |one| one[1] == name }.map(&:last) })
    end
  end

  def test_what_a_callback_raises_is_the_failure_of_its_command
    on_line = ->(line, _, index) { raise KeyError, line if index == 1 }
    commands = [words("echo", "a"), words("echo", "b"), words("echo", "c")]
    ended = Procwright.map(commands, on_line: on_line, ordered: true).to_a
    assert_equal [nil, "b\n", nil], (ended.map { |one| one.error&.message })
    assert_instance_of KeyError, ended[1].error
    assert_equal [true, false, true], ended.map(&:success?)
  end

  def test_a_callback_that_ends_its_thread_is_told_of
    ended = Procwright.map([words("echo", "a"), words("echo", "b")], parallel: 1, on_line: ->(*) { Thread.exit }).to_a
    assert_equal [ThreadError] * 2, (ended.map { |one| one.error.class })
  end

  def test_events_come_while_it_runs
    events = []
    # What the shell leaves holds its outputs, until it is told of.
    line = "#{CHILD} sleep-forever & echo $!"
    map = Procwright.map([{ argv: line, shell: true }], on_event: ->(event) { events << event }, on_line: ->(*) {})
    eventually { events.any? }
    assert_equal :held, events.first.kind
    map.close
  end

  def test_the_end_of_each_leaves_nothing_running
    Dir.mktmpdir do |dir|
      pids = File.join(dir, "pids")
      commands = [words("exit", "0")].each.lazy + repeated(noting(pids))
      map = Procwright.map(commands, parallel: 3)
      found = pids_in(pids, 2)
      assert_predicate map.first, :success?
      assert(found.all? { |pid| ended?(pid) })
      assert_equal 0, map.progress.running
      assert_equal :cancel, map.progress.stopped_by
    end
  end

  def test_a_thread_that_waits_is_killed_and_leaves_nothing
    Dir.mktmpdir do |dir|
      pids = File.join(dir, "pids")
      map = Procwright.map(repeated(noting(pids)), parallel: 2)
      waiting = thread { map.next }
      found = pids_in(pids, 2)
      until_blocked(waiting)
      waiting.kill.join
      assert(found.all? { |pid| ended?(pid) })
      assert_raises(StopIteration) { map.next }
    end
  end

  def test_a_second_exception_ends_the_grace
    stubborn = { argv: words("ignore-term", "--print-ready"), stop: Procwright::Stop.new("TERM", grace: Float::INFINITY) }
    lines = Thread::Queue.new
    map = Procwright.map([stubborn], on_line: ->(line, *) { lines << line })
    waiting = thread { map.next }
    lines.pop
    until_blocked(waiting)
    eventually do
      waiting.raise(KeyError, "again") if waiting.alive?
      !waiting.alive?
    end
    assert_kind_of KeyError, waiting.value
    assert_equal 0, map.progress.running
  end

  def test_close_waits_for_the_end_while_another_thread_takes_results
    Dir.mktmpdir do |dir|
      pids = File.join(dir, "pids")
      map = Procwright.map(repeated(noting(pids)), parallel: 2)
      waiting = thread { map.to_a.size }
      found = pids_in(pids, 2)
      until_blocked(waiting)
      map.close
      assert(found.all? { |pid| ended?(pid) })
      assert_kind_of Integer, waiting.value
    end
  end

  # The results of a map that is closed in a callback: the block gives the options with it.
  def closed_in_callback(commands)
    closed = false
    made = Thread::Queue.new
    close = lambda do |*|
      made.pop.close
      closed = true
    end
    map = Procwright.map(commands, parallel: 2, **yield(close))
    made << map
    ended = map.to_a
    assert closed
    assert_equal :cancel, map.progress.stopped_by
    ended
  end

  # A grace which that end would wait for, if it waited for its own callback.
  def with_grace(command) = { argv: command, stop: Procwright::Stop.new("TERM", grace: 1000) }

  def test_close_in_on_line_stops_and_lets_the_callback_go_on
    line = "echo a; exec #{CHILD} sleep-forever"
    ended = closed_in_callback([{ **with_grace(line), shell: true }]) { |close| { on_line: close } }
    assert_equal [[nil, :cancelled]], (ended.map { |one| [one.error, one.result.reason] })
  end

  def test_close_in_on_event_stops_and_lets_the_callback_go_on
    # What the shell leaves holds its outputs, until it is told of.
    line = "#{CHILD} sleep-forever &"
    ended = closed_in_callback([{ **with_grace(line), shell: true }]) { |close| { on_event: close } }
    assert_equal [:cancelled], (ended.map { |one| one.result.reason })
  end

  def test_close_where_commands_are_asked_for_stops_and_lets_that_go_on
    closed = false
    made = Thread::Queue.new
    commands = Enumerator.new do |all|
      all << [marked, *SLEEPER]
      map = made.pop
      # One that has not been started by then has no result.
      eventually { !gone? }
      map.close
      closed = true
    end
    map = Procwright.map(commands, parallel: 2)
    made << map
    assert_equal([:cancelled], map.map { |ended| ended.result.reason })
    assert closed
  end

  INTERRUPTED = <<~'RUBY'
    sleeper = { argv: "echo $$ >> pids; exec sleep 1000", shell: true }
    begin
      Procwright.map(Enumerator.new { |all| loop { all << sleeper } }, parallel: 2).each { raise "a result?" }
    rescue Interrupt
      puts "interrupted"
    end
  RUBY

  def test_ctrl_c_ends_all
    Dir.mktmpdir do |dir|
      controller = Procwright.spawn(RbConfig.ruby, "--disable-gems", "-I#{LIB}", "-rprocwright", "-e", INTERRUPTED,
                                    cwd: dir, extra_env: marked)
      found = pids_in(File.join(dir, "pids"), 2)
      controller.process.signal("INT")
      assert_equal "interrupted\n", controller.stdout.read
      assert_predicate controller.wait, :success?
      assert(found.all? { |pid| ended?(pid) })
      assert_predicate self, :gone?
    end
  end

  def test_the_exit_of_the_process_ends_what_nobody_took
    Dir.mktmpdir do |dir|
      lines = <<~'RUBY'
        sleeper = { argv: "echo $$ >> pids; exec sleep 1000", shell: true }
        dropped = Procwright.map([sleeper])
        held = Procwright.map([sleeper])
        Thread.pass until File.exist?("pids") && File.read("pids").split.size == 2
        dropped = nil
        GC.start
        exit 7
      RUBY
      assert_equal 7, ruby(lines, cwd: dir, extra_env: marked).exitstatus
      assert_predicate self, :gone?
      assert(pids_in(File.join(dir, "pids"), 2).all? { |pid| ended?(pid) })
    end
  end

  def test_a_fork_has_no_part_in_it
    map = Procwright.map(repeated(SLEEPER), parallel: 1, on_line: ->(*) {})
    eventually { map.progress.running == 1 }
    pid = fork do
      map.close
      map.next
    rescue Errno::ECHILD
      exit! 3
    ensure
      exit! 1
    end
    assert_equal 3, Process.wait2(pid)[1].exitstatus
    assert_equal 1, map.progress.running
    map.close
  end

  def test_it_waits_under_a_scheduler
    require_relative "scheduler"
    ended = nil
    Scheduler.run { ended = Procwright.map([words("exit", "0")] * 3).to_a }
    assert_equal [true] * 3, ended.map(&:success?)
  end

  def test_a_map_leaves_no_thread_and_no_descriptor
    run = -> { Procwright.map([words("echo", "a")] * 3, on_line: ->(*) {}, on_event: ->(*) {}).to_a }
    run.call
    GC.start
    before = [fds, tasks]
    10.times { run.call }
    # What a finalizer lets go of goes with the next collection. The stack may seem to have some
    # maps still, each with a few descriptors.
    eventually { GC.start || (fds <= before[0] + 10 && tasks <= before[1]) }
  end

  def test_what_failed_before_is_raised_with_its_status
    Dir.mktmpdir do |dir|
      journal = File.join(dir, "journal")
      commands = [["sh", "-c", "exit 3"], ["sh", "-c", "kill -9 $$"], ["/no/such/program"]]
      Procwright.map(commands, journal: journal).to_a
      map = Procwright.map(commands, ordered: true, journal: Procwright::Journal.new(journal, resume: true))
      errors = map.map { |ended| [ended, assert_raises(Procwright::CommandFailed) { ended.check! }] }
      errors.each { |ended, error| assert_equal [nil, ended.status, ended.exitstatus], [error.result, error.status, error.exitstatus] }
      failed, killed, missing = errors.map(&:last)
      assert_equal [3, "exit 3"], [failed.exitstatus, failed.status.to_s]
      assert_equal [nil, 9], [killed.exitstatus, killed.status.termsig]
      assert_nil missing.status
      assert_equal 3, assert_raises(Procwright::CommandFailed) { Procwright.run!("sh", "-c", "exit 3") }.exitstatus
      assert_nil assert_raises(Procwright::CommandFailed) { Procwright.pipeline!("false", "true") }.status
    end
  end

  def test_what_was_done_is_not_done_again
    Dir.mktmpdir do |dir|
      journal, joblog = %w[journal joblog].map { |name| File.join(dir, name) }
      commands = ->(*names) { names.map { |name| ["sh", "-c", "printf x >> #{dir}/$0", name] } }
      assert(Procwright.map(commands.call("a", "b"), journal: journal).all?(&:success?))
      error = assert_raises(Procwright::JournalError) { Procwright.map(commands.call("a"), journal: journal) }
      assert_match(/is not empty/, error.message)
      assert_nil error.errno
      resumed = Procwright::Journal.new(journal, resume: true, joblog: joblog)
      map = Procwright.map(commands.call("c", "b", "a"), ordered: true, journal: resumed)
      done, *before = map.to_a
      refute_nil done.result
      assert_equal [nil, nil], before.map(&:result)
      assert_equal ["exited with code 0"] * 2, (before.map { |one| one.before.outcome })
      assert(before.all?(&:success?))
      assert_equal 2, map.progress.succeeded_before
      %w[a b c].each { |name| assert_equal "x", File.read(File.join(dir, name)) }
      assert_equal 2, File.readlines(joblog).size
    end
  end

  def test_the_environment_is_no_part_of_a_command
    Dir.mktmpdir do |dir|
      journal = File.join(dir, "journal")
      again = -> { Procwright.map([words("exit", "0")], journal: Procwright::Journal.new(journal, resume: true)).first }
      refute_nil again.call.result
      ENV["PROCWRIGHT_OTHER"] = "x"
      refute_nil again.call.before
    ensure
      ENV.delete("PROCWRIGHT_OTHER")
    end
  end

  # How many commands the map has that is killed, and when.
  ALL, KILLED_AT = ENV["STRESS"] == "1" ? [4_000, 2_000] : [1000, 40]

  KILLED = <<~RUBY
    child = ENV.fetch("PROCWRIGHT_TEST_CHILD")
    commands = (0...#{ALL}).lazy.map { |number| [child, "echo", number.to_s] }
    Procwright.map(commands, parallel: 4, journal: "journal") { |ended| $stdout.syswrite("\#{ended.index}\\n") }
  RUBY

  def test_after_a_kill_each_is_done_once_or_told_of
    Dir.mktmpdir do |dir|
      controller = Procwright.spawn(RbConfig.ruby, "--disable-gems", "-I#{LIB}", "-rprocwright", "-e", KILLED,
                                    cwd: dir, extra_env: { "PROCWRIGHT_TEST_CHILD" => CHILD })
      KILLED_AT.times { controller.stdout.gets }
      controller.process.signal("KILL")
      told = KILLED_AT + controller.stdout.read.lines.count { |line| line.end_with?("\n") }
      controller.wait
      out = ruby(<<~RUBY, cwd: dir).check!.stdout
        child = ENV.fetch("PROCWRIGHT_TEST_CHILD")
        commands = (0...#{ALL}).to_a.reverse.map { |number| [child, "echo", number.to_s] }
        ended = Procwright.map(commands, parallel: 4, journal: Procwright::Journal.new("journal", resume: true)).to_a
        abort "not each once" unless ended.map(&:index).uniq.size == #{ALL}
        before = ended.count { |one| one.before && !one.unknown? }
        puts [before, ended.count(&:unknown?), ended.count { |one| one.result&.success? }].join(" ")
      RUBY
      before, unknown, ran = out.split.map(&:to_i)
      assert_equal ALL, before + unknown + ran
      assert_operator before, :>=, told - 1
      assert_operator unknown, :<=, 4
    end
  end
end
