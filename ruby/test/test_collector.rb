# frozen_string_literal: true

require_relative "helper"

# The collector at every step, moving what it can; and what is left over of thousands.
class TestCollector < Minitest::Test
  # A collection at every step takes its time.
  def patience = WATCHDOG * 5

  # All that the extension does, without a test library around it: under stress every
  # object that is made costs a collection of all that there are.
  CALLS = <<~'RUBY'
    require "stringio"
    C = ENV.fetch("PROCWRIGHT_TEST_CHILD")
    CALLS = {
      run: -> { Procwright.run(C, "echo", "x").stdout == "x\n" },
      failing: -> { (Procwright.run!(C, "exit", "3") rescue $!.result.exitstatus) == 3 },
      not_there: -> { (Procwright.run("/nonexistent") rescue $!.errno) == 2 },
      large: -> { Procwright.run(C, "flood", "--out", "300K", "--err", "100K").then { |r| [r.stdout.bytesize, r.stderr.bytesize] } == [300 << 10, 100 << 10] },
      input: -> { Procwright.run(C, "cat", input: "y" * 100_000, merged: true).merged.sum { |_, s| s.bytesize } == 100_000 },
      hook: -> { events = []; Procwright.run(C, "fork-holder", "0", on_event: ->(e) { events << e; e.holders.each { |h| h.process.kill rescue nil } }); events.size == 1 },
      timeout: -> { Procwright.run(C, "sleep-forever", timeout: 0.01, on_timeout: :return).timed_out? },
      raise: -> { (Timeout.timeout(0.05, IndexError) { Procwright.run(C, "sleep-forever") } rescue $!.class) == IndexError },
      lines: -> { Procwright.spawn(C, "trickle", "20", "0") { |c| c.stdout.each_line.count == 20 && c.stdout.eof? } },
      words: -> { Procwright.spawn(C, "cat", stdin: :pipe) { |c| c.stdin.puts "a", "b"; [c.stdout.gets, c.stdout.readpartial(9)] == ["a\n", "b\n"] } },
      all: -> { Procwright.spawn(C, "flood", "--out", "200K", "--err", "0").then { |c| c.stdout.read.bytesize + c.stdout.read(1).to_s.bytesize } == 200 << 10 },
      talk: -> { Procwright.spawn(C, "cat", stdin: :pipe).communicate("z" * 70_000).first.bytesize == 70_000 },
      result: -> { Procwright.spawn(C, "echo", "r").result.stdout == "r\n" },
      closed: -> { c = Procwright.spawn(C, "cat", stdin: :pipe); t = Thread.new { c.stdout.gets rescue $!.class }; Thread.pass until t.status == "sleep"; c.stdout.close; c.stdin.close; c.wait; t.value == Procwright::StreamClosed },
      wait: -> { cs = Array.new(3) { Procwright.spawn(C, "exit", "0") }; Procwright.wait(cs, mode: :all).all? && cs.all? { |c| c.wait.success? } },
      found: -> { Procwright.spawn("echo ready 7; cat", shell: true, stdin: :pipe) { |c| c.wait_for(/ready (\d)/)[1] == "7" } },
      stop: -> { c = Procwright.spawn(C, "sleep-forever"); c.stop.empty? && c.status.signaled? },
      stranger: -> { Procwright::Process.new(Process.pid).then { |p| p.alive? && p.name && p.id && p.exe } },
      pipeline: -> { Procwright.pipeline([C, "echo", "x"], [C, "cat"]).then { |r| [r.stdout, *r.stages.map(&:judgement)] } == ["x\n", :success, :success] },
      stages: -> { Procwright.pipeline([C, "says", "err:a\\n"], [C, "says", "err:b\\n"], [C, "cat"]).stages.map(&:stderr) == ["a\n", "b\n", ""] },
      held: -> { Procwright.spawn_pipeline([C, "says", "err:a\\n", "out:x\\n"], [C, "cat"]).result.then { |r| [r.stdout, *r.stages.map(&:stderr)] } == ["x\n", "a\n", ""] },
      function: -> { Procwright.pipeline([C, "echo", "x"], ->(i, o) { i.each_line { |line| o << line.upcase } }, [C, "cat"]).then { |r| [r.stdout, r.stages[0].function.end] } == ["X\n", :returned] },
      raises: -> { (Procwright.pipeline([C, "echo", "x"], ->(i, _) { raise IndexError, i.read }, [C, "cat"]) rescue [$!.class, $!.message]) == [IndexError, "x\n"] },
      held_function: -> { Procwright.spawn_pipeline([C, "echo", "x"], ->(i, o) { o.puts i.gets * 2 }, [C, "cat"]).result.then { |r| [r.stdout, r.stages[0].function.judgement] } == ["x\nx\n", :success] },
      refused: -> { (Procwright.pipeline([C, "cat"], "/nonexistent") rescue $!.stage) == 1 },
      joined: -> { Procwright::Open3.pipeline_r([C, "echo", "x"], [C, "cat"]) { |out, ts| [out.read, ts.size] } == ["x\n", 2] },
      capture3: -> { Procwright::Open3.capture3("cat; echo e >&2", stdin_data: "i").first(2) == ["i", "e\n"] },
      taps: -> { n = 0; copy = StringIO.new; Procwright.run(C, "trickle", "20", "0", on_line: ->(line, _) { n += line.bytesize }, tee: copy).stdout.bytesize == n && copy.string.bytesize == n },
      merged: -> { Procwright.spawn(C, "says", "out:a\\n", "err:b\\n", merged: true) { |c| c.merged.map(&:line).sort == ["a\n", "b\n"] } },
      feed: -> { Procwright.run(C, "cat", stdin: %w[a b].each).stdout == "ab" },
      panic: -> { (Procwright::Native.panic("on purpose") rescue $!.class) == Procwright::InternalError },
      asks: -> { told = nil; c = Procwright.spawn("printf 'Name: '; read name", shell: true, stdin: :pipe, input_wanted: true, on_event: ->(e) { told = [e.prompt, e.waiting.kind]; c.stdin.puts }); c.wait.success? && told == ["Name: ", :input] },
      cancel: -> { c = Procwright::Cancel.new; c.cancel; (Procwright.run(C, "sleep-forever", cancel: c) rescue $!.class) == Procwright::Cancelled },
      queue: -> { r = Procwright::Queue::Receiver.new; s = r.sender; s << "a" << "b" * 50_000; s.dup.tap { |o| o << "c" }.close; s.close; r.map(&:bytesize).sort == [1, 1, 50_000] },
      invited: -> { r = Procwright::Queue::Receiver.new; i = r.invite; o = Procwright::Queue::Invitation.new(i.fds, i.ticket); i.close; s = Procwright::Queue::Sender.attach(o); s.send_many(%w[a b c]) == 3 && r.recv_many(5) == %w[a b c] },
      woken: -> { r = Procwright::Queue::Receiver.new; s = r.sender; took = Thread::Queue.new; t = Thread.new { took << r.recv; r.recv rescue $!.class }; Thread.pass until t.status == "sleep"; s << "x"; x = took.pop; r.close; [x, t.value] == ["x", Procwright::Queue::EndClosed] },
      room: -> { r = Procwright::Queue::Receiver.new(first: 4096, limit: 65_536); s = r.sender; 99.times { s.try_send("x" * 1000) }; t = Thread.new { s.send("y" * 5000); s.send_many(["y" * 5000] * 9) }; n = 0; n += r.recv.count("y") until n == 50_000; t.value == 9 },
      queue_errors: -> { r = Procwright::Queue::Receiver.new(first: 4096, limit: 65_536); s = r.sender; [(r.recv(timeout: 0) rescue $!), (s.send("x" * 99_999) rescue $!), (r.close; s << "x" rescue $!)].map { |e| e.class.name[/\w+$/] }.then { |told| told == %w[TimedOut TooLarge Closed] or abort told.inspect } },
      queue_wait: -> { r = Procwright::Queue::Receiver.new; s = r.sender; w = Procwright.wait([r], timeout: 0).done; s << "x"; w.empty? && Procwright.wait([r]).done == [r] },
      liveness: -> { t = Procwright::LivenessToken.new; m = Procwright::LivenessMonitor.new(t.invite); w = Thread.new { m.wait }; Thread.pass until w.status == "sleep"; t.release; w.value == :released && m.guarantee.frozen? },
      mourned: -> { c = Procwright.spawn(C, "sleep-forever"); m = c.monitor; a = m.alive?; c.kill; [a, Procwright.wait([m]).done, m.confirm, (m.claim rescue $!.class)] == [true, [m], :died, Procwright::LivenessError] }
    }
  RUBY

  def check(lines, *names)
    result = ruby(CALLS + lines, *names, limit: 100_000)
    assert_predicate result, :success?, result.stderr
    assert_equal "all\n", result.stdout
  end

  def test_a_collection_at_every_step
    # Of the young objects; in the long form of all.
    check(<<~'RUBY', ENV["STRESS"] ? "all" : "young")
      CALLS.each do |name, call|
        call.call or abort "#{name} is wrong without stress"
        GC.stress = ARGV[0] == "all" || 0x01
        right = call.call
        GC.stress = false
        right or abort "#{name} is wrong under stress"
      end
      puts "all"
    RUBY
  end

  def test_everything_moves
    check(<<~'RUBY')
      # A collection that has begun by then pins nothing, and moves all the same what C code keeps
      # where it was: Ruby 3.1 dies of it ("try to mark T_NONE object").
      GC.start
      GC.auto_compact = true if GC.respond_to?(:auto_compact=)
      CALLS.each do |name, call|
        2.times do
          call.call or abort "#{name} is wrong"
          GC.compact
          GC.verify_compaction_references(toward: :empty, double_heap: true) if name == :run
        end
      end
      # What lives while all else moves.
      result = Procwright.run(C, "flood", "--out", "300K", "--err", "1K")
      sum = result.stdout.b.sum
      child = Procwright.spawn(C, "cat", stdin: :pipe)
      child.stdin.write("kept\n")
      part = result.stdout.byteslice(100_000, 50_000)
      3.times { GC.compact }
      result.stdout.b.sum == sum or abort "a capture has changed"
      part.b == result.stdout.b[100_000, 50_000] or abort "a part of it has changed"
      child.stdout.gets == "kept\n" or abort "a stream has changed"
      puts "all"
    RUBY
  end

  def test_nothing_is_left_over_of_thousands
    runs = ENV["STRESS"] ? 20_000 : 2_000
    check(<<~'RUBY', runs.to_s)
      Warning[:deprecated] = false
      def fds = Dir.children("/proc/self/fd").size
      def tasks = Dir.children("/proc/self/task").size
      def resident = (GC.start; File.read("/proc/self/statm").split[1].to_i * 4096)
      runs = Integer(ARGV[0])
      short = CALLS.slice(:run, :failing, :not_there, :large, :input, :lines, :words, :talk, :result, :closed, :wait, :stop, :capture3, :cancel, :queue, :invited, :room, :liveness)
      rest = CALLS.except(*short.keys, :hook, :panic)
      # Twice, so that all that is made once has been made.
      2.times { CALLS.except(:hook, :panic).each_value(&:call) }
      300.times { CALLS[:run].call }
      # What a finalizer lets go of is collected by the next collection.
      2.times { GC.start }
      before = [fds, tasks, resident]
      (runs / 20).times { rest[rest.keys[_1 % rest.size]].call } if runs > 2_000
      runs.times { |n| n % 10 == 0 ? short.values[n / 10 % short.size].call : CALLS[:run].call }
      GC.start
      # The threads of the core go 100 ms after their last work; children that were
      # forgotten are reaped behind us.
      sleep 0.01 until GC.start || (after = [fds, tasks]) && after[0] <= before[0] && after[1] <= before[1]
      # One that has not been reaped yet will be; a thread may end before its list is read.
      left = -> { Dir.glob("/proc/#{$$}/task/*/children").sum { |file| File.read(file).split.size rescue 1 } }
      sleep 0.01 until left.call.zero?
      grown = resident - before[2]
      grown < 24 << 20 or abort "#{grown} bytes more"
      puts "all"
    RUBY
  end

  def test_ractors_get_a_clear_error
    result = ruby(<<~RUBY)
      Warning[:experimental] = false
      calls = [
        'run("echo", "inside", tee: true)', 'run!("true")', 'spawn("true")', 'wait([1])', 'Process.new(1)', "Cancel.new",
        'Stop.new', 'Open3.capture3("true")', "Queue::Receiver.new", 'Queue::Sender.open("none")',
        "LivenessToken.new", "Limit.new(5)", "Overflow.new"
      ]
      calls.each do |call|
        ractor = Ractor.new(call) do |line|
          Thread.current.report_on_exception = false
          eval("Procwright::" + line)
        end
        ractor.take
        puts call
      rescue Ractor::RemoteError => e
        puts e.cause.class
      end
      puts Procwright.run("echo", "outside").stdout
    RUBY
    told = result.stdout.lines(chomp: true)
    assert_equal ["Limit.new(5)", "Overflow.new", "outside"], told.pop(3)
    assert_equal 11, told.size
    assert_empty told - %w[Ractor::UnsafeError Ractor::IsolationError]
  end

  def test_objects_cannot_be_made_of_nothing
    %i[Child Reader Writer Handle Communication].each do |name|
      kind = Procwright::Native.const_get(name)
      assert_raises(TypeError, NoMethodError) { kind.allocate }
    end
  end
end
