# frozen_string_literal: true

require_relative "sleeper"
require_relative "scheduler"
require "timeout"
require "tmpdir"

# Under a scheduler, no call that waits is in the way of other fibers, and what ends a fiber
# acts in it.
class TestFibers < Minitest::Test
  include Sleeper

  # Calls that would wait for ever.
  WAITING = {
    "run" => ->(test) { Procwright.run(test.marked, CHILD, "sleep-forever") },
    "pipeline" => ->(test) { Procwright.pipeline([test.marked, CHILD, "sleep-forever"], [test.marked, CHILD, "cat"]) },
    "Open3.pipeline" => ->(test) { Procwright::Open3.pipeline([test.marked, CHILD, "sleep-forever"], [test.marked, CHILD, "cat"]) },
    "capture3" => ->(test) { Procwright::Open3.capture3(test.marked, CHILD, "sleep-forever") },
    "wait for a child" => ->(test) { test.child.wait },
    "wait for a process" => ->(test) { test.child.process.wait },
    "wait for many" => ->(test) { Procwright.wait([test.child, test.child.stdout], mode: :all) },
    "read all" => ->(test) { test.child.stdout.read },
    "read some" => ->(test) { test.child.stdout.read(10) },
    "readpartial" => ->(test) { test.child.stdout.readpartial(100) },
    "readpartial of much" => ->(test) { test.child.stdout.readpartial(100_000) },
    "gets" => ->(test) { test.child.stdout.gets },
    "gets with a time limit" => ->(test) { test.child.stdout.gets(timeout: 100_000) },
    "each_line" => ->(test) { test.child.stdout.each_line(&:upcase) },
    "getc" => ->(test) { test.child.stdout.getc },
    "eof?" => ->(test) { test.child.stdout.eof? },
    "write" => ->(test) { test.child.stdin.write("x" * 1_000_000) },
    "communicate" => ->(test) { test.child.communicate },
    "result" => ->(test) { test.child.result },
    "wait_for" => ->(test) { test.child.wait_for(/never/) },
    "wait_readable" => ->(test) { test.child.stdout.wait_readable },
    "wait_writable" => ->(test) { test.child.stdin.write_nonblock("x" * 1_000_000) && test.child.stdin.wait_writable },
    "Receiver#recv" => ->(test) { test.queue.recv },
    "Receiver#recv_many" => ->(test) { test.queue.recv_many(3) },
    "Receiver#pop" => ->(test) { test.queue.pop },
    "Sender#send" => ->(test) { loop { test.sender.send("x" * 1000) } },
    "Sender#push" => ->(test) { loop { test.sender << "x" * 1000 } },
    "Sender#send_many" => ->(test) { test.sender.send_many(["x" * 1000] * 100) },
    "LivenessMonitor#wait" => ->(test) { Procwright::LivenessMonitor.new(test.child).wait },
    "LivenessMonitor#wait_gone" => ->(test) { Procwright::LivenessMonitor.new(test.child).wait_gone },
    "Child#sender" => ->(test) { Procwright.spawn(test.marked, CHILD, "sleep-forever", channel: :to_child).sender },
    "Merged#gets" => ->(test) { Procwright.spawn(test.marked, CHILD, "sleep-forever", merged: true).merged.gets },
    "Waiter#value" => ->(test) { Procwright::Open3.popen3(test.marked, CHILD, "sleep-forever").last.value }
  }.freeze

  # One that has little room.
  def queue = @queue ||= Procwright::Queue::Receiver.new(first: 4096, limit: 4096).tap { |queue| @sender = queue.sender }
  def sender = queue && @sender

  # The first of them is a fiber that does what the block says, and has what it raised as its
  # value.
  def fiber
    Fiber.schedule { @value = raised { yield } }
  end

  WAITING.each do |name, call|
    define_method("test_a_fiber_raises_in_another_that_is_in_#{name}") do
      Scheduler.run do
        waiting = fiber { call.call(self) }
        # We get here, and here again, only if that one waits alone.
        3.times { sleep 0.01 }
        waiting.raise(Boom)
      end
      assert_instance_of Boom, @value
    end

    define_method("test_timeout_of_#{name}") do
      Scheduler.run { fiber { Timeout.timeout(0.02) { call.call(self) } } }
      assert_kind_of Timeout::Error, @value
    end
  end

  def test_what_a_fiber_waits_for_another_may_do
    said = nil
    Scheduler.run do
      cat = Procwright.spawn("cat", stdin: :pipe)
      Fiber.schedule { said = cat.stdout.gets }
      Fiber.schedule { sleep 0.01; cat.stdin.puts "from the other"; cat.stdin.close }
      assert_predicate cat.wait, :success?
    end
    assert_equal "from the other\n", said
  end

  def test_runs_beside_each_other
    Dir.mktmpdir do |directory|
      ended = []
      Scheduler.run do
        # Each ends only once the next has run.
        Fiber.schedule { ended << Procwright.run("until test -e #{directory}/a; do sleep 0.01; done; echo 1", shell: true) }
        Fiber.schedule { ended << Procwright.run("until test -e #{directory}/b; do sleep 0.01; done; touch #{directory}/a; echo 2", shell: true) }
        Fiber.schedule { ended << Procwright.run("touch #{directory}/b; echo 3", shell: true) }
      end
      assert_equal %W[1\n 2\n 3\n], ended.map(&:stdout).sort
    end
  end

  def test_a_reader_of_much_takes_turns
    [{}, { overflow: :block }].each do |options|
      turns = 0
      data = nil
      Scheduler.run do
        flood = Procwright.spawn(CHILD, "flood", "--out", "20000000", **options)
        Fiber.schedule do
          until data
            turns += 1
            sleep 0
          end
        end
        data = flood.stdout.read
        flood.wait
      end
      assert_equal 20_000_000, data.bytesize
      assert_operator turns, :>, 5
    end
  end

  def test_lines_of_two_children_as_they_come
    order = []
    Scheduler.run do
      cats = Array.new(2) { Procwright.spawn("cat", stdin: :pipe) }
      cats.each_with_index do |cat, number|
        Fiber.schedule do
          cat.stdout.each_line do |line|
            order << [number, line]
            # So the next line is the other's.
            other = cats[1 - number]
            line.to_i == 9 ? cats.each { |one| one.stdin.close } : other.stdin.puts(line.to_i + 1)
          end
        end
      end
      cats[0].stdin.puts 0
    end
    assert_equal((0..9).map { |n| [n % 2, "#{n}\n"] }, order)
  end

  def test_a_close_ends_the_wait_of_a_fiber
    Scheduler.run do
      fiber { @child.stdout.gets }
      sleep 0.01
      @child.stdout.close
    end
    assert_instance_of Procwright::StreamClosed, @value
  end

  def test_what_was_read_when_a_fiber_was_raised_in_is_read_again
    other = Procwright.spawn("printf abc; read line; printf def", shell: true, stdin: :pipe)
    Scheduler.run do
      waiting = fiber { other.stdout.read }
      other.wait_for(/never/, timeout: 0.02) rescue nil
      waiting.raise(Boom)
      assert_instance_of Boom, @value
      other.stdin.puts
    end
    assert_equal "abcdef", other.stdout.read
  end

  def test_a_line_of_both_outputs_that_came_for_a_fiber_that_was_raised_in_is_read_again
    other = Procwright.spawn(marked, CHILD, "cat", merged: true, stdin: :pipe)
    Scheduler.run do
      waiting = fiber { other.merged.gets }
      other.stdin.write("half")
      sleep 0.01
      waiting.raise(Boom)
      sleep 0.01 until @value
      assert_instance_of Boom, @value
      other.stdin.write(" a line\n")
      assert_equal "half a line\n", other.merged.gets.line
    end
    other.stdin.close
    other.wait
  end

  def test_a_second_time_ends_the_grace
    Scheduler.run do
      waiting = fiber { Procwright.run(*stubborn, **STUBBORN) }
      sleep 0.01 until stubborn?("S")
      waiting.raise(Boom, "first")
      sleep 0.01 until stubborn?("T")
      assert_predicate waiting, :alive?
      waiting.raise(Boom, "second")
    end
    assert_equal "first", @value.message
    @child.stop
    assert gone?
  end

  def test_a_run_leaves_nothing_behind
    Scheduler.run do
      waiting = fiber { Procwright.run(marked, CHILD, "fork-tree", "2", "2") }
      sleep 0.01 until Dir.glob("/proc/[0-9]*/environ").count { |f| File.binread(f).include?(mark) rescue false } > 3
      waiting.raise(Boom)
    end
    @child.stop
    assert gone?
  end

  def test_times_that_are_none
    errors = []
    Scheduler.run do
      errors << raised { @child.wait(timeout: Float::NAN) }
      errors << raised { @child.process.wait(timeout: Float::NAN) }
      errors << raised { @child.wait(timeout: -1) }
      errors << raised { @child.process.wait(timeout: 0) }
      errors << raised { @child.communicate(timeout: 0) }
      Fiber.schedule { sleep 0.01; @child.kill }
      errors << @child.wait(timeout: Float::INFINITY)
    end
    wait = Procwright::WaitTimeout
    invalid = Procwright::InvalidValue
    assert_equal [invalid, invalid, wait, wait, wait, Procwright::Status], errors.map(&:class)
  end

  def test_a_child_that_nobody_reads_is_found_out
    Scheduler.run do
      other = Procwright.spawn(CHILD, "flood-forever", overflow: :block, stall_after: 0.02)
      fiber { other.wait }
      sleep 0.01 while @value.nil?
      other.stop
    end
    assert_instance_of Procwright::Stalled, @value
  end

  def test_what_waits_for_a_descriptor_needs_no_thread
    here = nil
    before = Thread.list.size
    Scheduler.run do
      calls = WAITING.values_at("gets", "read all", "eof?", "wait for a child", "wait for a process", "wait_readable")
      waiting = calls.map { |call| fiber { call.call(self) } }
      sleep 0.01
      here = Thread.list.size
      waiting.each { |one| one.raise(Boom) }
    end
    # That of the scheduler. Threads of earlier tests may end meanwhile.
    assert_operator here, :<=, before + 1
  end

  def test_a_fiber_that_may_block_does
    Scheduler.run do
      blocking = Fiber.new(blocking: true) { Procwright.run("echo", "blocking").stdout }
      @value = blocking.resume
    end
    assert_equal "blocking\n", @value
  end

  def test_open3
    both = nil
    Scheduler.run do
      Procwright::Open3.popen3("cat; echo err >&2") do |stdin, stdout, stderr, waiter|
        Fiber.schedule { stdin.write("x" * 1_000_000); stdin.close }
        both = [stdout.read.bytesize, stderr.read, waiter.value.success?]
      end
    end
    assert_equal [1_000_000, "err\n", true], both
  end
end
