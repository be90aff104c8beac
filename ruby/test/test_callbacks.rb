# frozen_string_literal: true

require_relative "helper"

# Callbacks that take their time, never return, or raise: no deadline waits for them, they
# have the grace of the stop, and no exception is lost.
class TestCallbacks < Minitest::Test
  include Helper

  class Boom < StandardError; end

  SOON = Procwright::Stop.new(grace: 0.05)
  LATER = Procwright::Stop.new(grace: 1000)
  LINES = "i=0; while [ $i -lt 100 ]; do echo $i; i=$((i+1)); done; exec sleep 1000000"

  # A callback that is at work until the run is over, and says so.
  class Stuck
    attr_reader :reached, :passed

    def call(*)
      @reached = true
      sleep 100
      @passed = true
    end
  end

  def test_an_event_hook_that_blocks_holds_up_no_deadline
    with_time do |seconds|
      stuck = Stuck.new
      error = assert_raises(Procwright::TimeoutExpired) do
        Procwright.run(CHILD, "fork-holder", "0", timeout: seconds, stop: SOON, on_event: stuck)
      end
      assert stuck.reached
      refute stuck.passed
      assert_empty error.result.survivors
    end
  end

  def test_an_event_hook_is_interrupted_with_its_run
    inside = Queue.new
    thread = thread do
      Procwright.run(CHILD, "fork-holder", "0", stop: SOON, on_event: ->(_) { inside << 1; sleep })
    end
    inside.pop
    thread.raise(Boom)
    assert_instance_of Boom, thread.value
  end

  # A fork that went on took lines that its parent lost then.
  def test_a_fork_that_a_line_callback_returns_in_ends_there
    status = nil
    seen = []
    Procwright.run("sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.02; done", on_line: lambda { |line, _|
      seen << line
      pid = fork if seen.size == 1
      _, status = ::Process.wait2(pid) if pid
    })
    assert_equal 0, status.exitstatus
    assert_equal %W[1\n 2\n 3\n 4\n 5\n], seen
  end

  def test_a_fork_that_an_event_hook_returns_in_ends_there
    status = nil
    cancel = Procwright::Cancel.new
    hook = lambda do |_|
      if (pid = fork)
        _, status = ::Process.wait2(pid)
        cancel.cancel
      end
    end
    assert_raises(Procwright::Cancelled) do
      Procwright.run(CHILD, "fork-holder", "0", stop: LATER, cancel: cancel, on_event: hook)
    end
    assert_equal 0, status.exitstatus
  end

  def test_what_is_raised_in_a_fork_of_a_callback_is_told_there
    told = ruby(<<~LINES)
      Procwright.run("echo", on_line: lambda { |*|
        pid = fork
        raise "in the fork" unless pid
        p Process.wait2(pid)[1].exitstatus
      })
    LINES
    assert_equal "1\n", told.stdout
    assert_includes told.stderr, "in the fork"
  end

  def test_a_fork_of_the_source_of_stdin_feeds_nobody
    source = Enumerator.new do |input|
      pid = fork
      input << "of the fork" unless pid
      ::Process.wait(pid) if pid
      input << "of the parent"
    end
    each_alone = Object.new
    each_alone.define_singleton_method(:each) { |&block| source.each(&block) }
    assert_equal "of the parent", Procwright.run("cat", stdin: each_alone).stdout
  end

  def test_a_callback_that_ends_its_thread_is_told
    assert_raises(ThreadError) { Procwright.run("echo", on_line: ->(*) { Thread.exit }) }
    assert_raises(ThreadError) do
      Procwright.run(CHILD, "fork-holder", "0", stop: SOON, on_event: ->(_) { Thread.current.kill })
    end
  end

  # An `ensure` that takes its time is not waited for.
  def test_the_end_of_a_callback_holds_up_nothing
    %i[on_line on_event].each do |name|
      left = false
      callback = lambda do |*|
        sleep
      ensure
        sleep 20
        left = true
      end
      assert_raises(Procwright::TimeoutExpired) do
        Procwright.run(CHILD, "fork-holder", "0", "--say", "own", timeout: 3, stop: SOON, name => callback)
      end
      refute left
    end
  end

  def test_a_line_callback_has_the_grace
    lines = []
    slow = lambda do |line|
      sleep 0.015
      lines << line
    end
    with_time do |seconds|
      lines.clear
      error = assert_raises(Procwright::TimeoutExpired) do
        Procwright.run(LINES, shell: true, timeout: seconds, stop: LATER, on_stdout_line: slow)
      end
      assert_equal 100, lines.size
      assert_equal 0, error.result.stdout_info.undelivered_bytes
    end
  end

  def test_the_second_exception_is_told
    ended = Struct.new(:error)
    callbacks = [ended.new(Boom.new("first")), ended.new(nil), ended.new(Boom.new("second"))]
    threads = Procwright.const_get(:CallbackThread)
    _, told = capture_io do
      error = assert_raises(Boom) { threads.raising_errors_of(callbacks) { raise Procwright::InternalError, "x" } }
      assert_equal "first", error.message
    end
    assert_match(/second \(TestCallbacks::Boom\)/, told)
    refute_match(/first/, told)
  end

  def lines(*says, **options)
    lines = []
    Procwright.run(CHILD, *says, on_stdout_line: ->(line) { lines << line }, **options)
    lines
  end

  def test_a_line_that_is_too_long_comes_in_pieces_or_ends_the_run
    says = ["says", "out:one\\n", "out:three four\\n", "out:end"]
    assert_equal ["one\n", "three ", "four\n", "end"], lines(*says, max_length: 6)
    assert_equal ["€", "€", "€\n"], lines("print-bytes", "e282ace282ace282ac0a", max_length: 5, encoding: "UTF-8")
    assert_equal %W[ab c\n].map { |line| line.encode("UTF-16LE") },
                 lines("print-bytes", "6100620063000a00", max_length: 5, encoding: "UTF-16LE")
    error = assert_raises(IOError) { lines(*says, max_length: 6, too_long: :fail) }
    assert_match(/max_length/, error.message)
    [{ max_length: 0 }, { max_length: "x" }, { too_long: :cut }].each do |bad|
      assert_raises(Procwright::InvalidValue) { lines(*says, **bad) }
    end
  end

  def test_a_line_without_an_end_does_not_fill_the_memory
    lines = <<~RUBY
      peak = -> { File.read("/proc/self/status")[/VmHWM:\\s*(\\d+)/, 1].to_i }
      before = peak.()
      bytes = 0
      longest = 0
      callback = ->(line) { bytes += line.bytesize; longest = [longest, line.bytesize].max }
      Procwright.run(ENV["PROCWRIGHT_TEST_CHILD"], "big-line", (300 << 20).to_s, limit: 1000, max_length: 1 << 20, on_stdout_line: callback)
      puts bytes - (300 << 20), longest, peak.() - before
    RUBY
    rest, longest, grown = ruby(lines).check!.stdout.lines.map(&:to_i)
    assert_operator rest.abs, :<=, 1
    assert_operator longest, :<=, 1 << 20
    # In KiB: mostly strings that Ruby has not collected yet, less than the line is long.
    assert_operator grown, :<, 200 << 10
  end

  # A fork that lives on has no part in the run: it keeps no pipe of it, and takes none of its
  # output.
  def test_a_fork_in_a_callback_does_not_hold_up_the_error
    forks = []
    raising = lambda do |*|
      forks << fork { sleep }
      raise Boom
    end
    writer = Object.new
    writer.define_singleton_method(:write) { |*| raising.call }
    [{ on_line: raising }, { tee: writer }].each do |callback|
      assert_raises(Boom) { Procwright.run(CHILD, "fork-holder", "0", "--say", "own", stop: SOON, **callback) }
    end
  ensure
    end_forks(forks)
  end

  def test_a_fork_does_not_hold_open_the_input
    forks = []
    runs = Queue.new
    source = Object.new
    source.define_singleton_method(:each) do |&block|
      block.call("one\n")
      # The program runs: while it is started, a fork may keep its outputs.
      runs.pop
      forks << fork { sleep }
      block.call("two\n")
    end
    assert_equal "one\ntwo\n", Procwright.run("cat", stdin: source, on_line: ->(*) { runs << 1 }).stdout
  ensure
    end_forks(forks)
  end

  def test_a_fork_ends_as_its_callback_says
    result = ruby(<<~RUBY)
      ends = []
      source = Object.new
      source.define_singleton_method(:each) { |&block| fork or exit 4; block.call("x") }
      Procwright.run("echo", on_line: ->(*) { fork or exit 3 })
      Process.wait
      ends << $?.exitstatus
      Procwright.run("cat", stdin: source)
      Process.wait
      ends << $?.exitstatus
      Procwright.run("echo", on_line: ->(*) { fork or raise "in the fork" })
      Process.wait
      ends << $?.exitstatus
      print ends
    RUBY
    assert_equal "[3, 4, 1]", result.stdout
    assert_match(/in the fork/, result.stderr)
  end

  private

  def end_forks(forks)
    forks.each do |pid|
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end
end
