# frozen_string_literal: true

require_relative "helper"

# What two threads do at the same moment, again and again, with a little more time between
# them in each round. STRESS=1 makes 100,000 rounds of each; ROUNDS=n so many.
class TestRaces < Minitest::Test
  class Boom < StandardError; end

  ROUNDS = Integer(ENV.fetch("ROUNDS") { ENV["STRESS"] ? 100_000 : 150 })

  # What never returns by itself, on a child that says nothing, reads nothing and goes on.
  BLOCKING = {
    "gets" => ->(child) { child.stdout.gets },
    "readline" => ->(child) { child.stdout.readline },
    "each_line" => ->(child) { child.stdout.each_line { flunk } },
    "read" => ->(child) { child.stdout.read },
    "read of some" => ->(child) { child.stdout.read(10) },
    "readpartial" => ->(child) { child.stdout.readpartial(100) },
    "readpartial of much" => ->(child) { child.stdout.readpartial(100_000) },
    "getc" => ->(child) { child.stdout.getc },
    "eof?" => ->(child) { child.stdout.eof? },
    "wait_readable" => ->(child) { child.stdout.wait_readable },
    "write" => ->(child) { child.stdin.write("x" * 300_000) },
    "puts" => ->(child) { child.stdin.puts("x" * 300_000) },
    "wait" => ->(child) { child.wait },
    "wait with a timeout" => ->(child) { child.wait(timeout: 1000) },
    "wait of a process" => ->(child) { child.process.wait },
    "wait for many" => ->(child) { Procwright.wait([child, child.stdout], mode: :all) },
    "wait_for" => ->(child) { child.wait_for(/never/) },
    "communicate" => ->(child) { child.communicate },
    "result" => ->(child) { child.result },
    "Waiter#value" => ->(child) { Procwright::Open3::Waiter.new(child).value },
    "run" => ->(_) { Procwright.run(CHILD, "sleep-forever", stop: KILL) },
    "run with a feed" => ->(_) { Procwright.run(CHILD, "sleep-forever", stdin: ["x"].each, stop: KILL) },
    "capture3" => ->(_) { Procwright::Open3.capture3(CHILD, "sleep-forever", stop: KILL) },
    "spawn with a block" => ->(_) { Procwright.spawn(CHILD, "sleep-forever", stop: KILL) { |child| child.stdout.gets } }
  }.freeze
  KILL = Procwright::Stop.new(grace: 0)

  def patience = WATCHDOG * (1 + ROUNDS / 2_000)

  # Lets others go first: not at all, for some turns, or until they sleep.
  def give_way(round, thread)
    case round % 4
    when 0 then nil
    when 1 then Thread.pass until thread.stop?
    else give_turns(round * 37 % 101)
    end
  end

  def quietly(&block)
    Thread.new(&block).tap { |thread| thread.report_on_exception = false }
  end

  # Nothing is left of it but what is kept for the next: a few descriptors to wait with,
  # threads of Ruby's. Those of the core go after 100 ms, and children that were forgotten
  # are reaped behind us. A leak would be one of each a round.
  KEPT = 10

  def leaves_nothing
    before = [fds, tasks, children]
    yield
    # What a finalizer lets go of is collected by the next collection; what was stopped is let go
    # of by the next spawn.
    let_go = -> { Procwright.const_get(:Keeper).let_go_of_ended && GC.start }
    eventually { let_go.call || (fds <= before[0] + KEPT && tasks <= before[1] + KEPT) }
    left = -> { children.except(*before[2].keys) }
    eventually(-> { left.call.values.join }) { let_go.call || left.call.empty? }
  end

  BLOCKING.each do |name, call|
    define_method("test_raise_against_#{name}") do
      rounds = name.match?(/run|capture3|spawn/) ? (ROUNDS + 9) / 10 : ROUNDS
      child = Procwright.spawn(CHILD, "sleep-forever", stdin: :pipe, stall_after: nil)
      rounds.times do |round|
        thread = quietly { call.call(child) }
        give_way(round, thread)
        round % 8 == 7 ? thread.kill : thread.raise(Boom)
        came = raised { thread.value }
        # Never anything else, and never nothing.
        round % 8 == 7 ? assert_nil(came) : assert_instance_of(Boom, came)
      end
      # Nobody is in it any more, or holds it up.
      assert_predicate child, :alive?
      child.kill
      assert_equal 9, child.wait.termsig
      assert_equal "", child.stdout.read unless child.stdout.closed?
    end
  end

  def test_raise_leaves_nothing
    leaves_nothing do
      child = Procwright.spawn(CHILD, "sleep-forever", stdin: :pipe, stall_after: nil)
      (ROUNDS / 10).times do |round|
        BLOCKING.each_value do |call|
          thread = quietly { call.call(child) }
          give_way(round, thread)
          thread.raise(Boom)
          raised { thread.value }
        end
      end
      child.kill
      child.result
      child.stdin.close
    end
  end

  # A read that is interrupted gives all of what it had to the next.
  def test_raise_against_a_flow_loses_no_byte
    reads = {
      gets: ->(stream) { stream.gets },
      some: ->(stream) { stream.read(13) },
      part: ->(stream) { stream.readpartial(1 + rand(40)) rescue ($!.is_a?(EOFError) ? nil : raise) },
      much: ->(stream) { stream.read(20_000) },
      all: ->(stream) { stream.read.then { |all| all unless all.empty? } }
    }
    reads.each do |name, read|
      # To put all back and read it again takes its time.
      rounds = name == :all ? [ROUNDS, 3_000].min : ROUNDS
      expected = Array.new(rounds) { |n| "line #{n}\n" }.join
      child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
      all = +""
      booms = 0
      over = false
      ready = Queue.new
      reader = quietly do
        # What came between a read and the next line would be lost by us.
        Thread.handle_interrupt(Boom => :on_blocking) do
          ready << true
          loop do
            piece = read.call(child.stdout)
            break if piece.nil?

            all << piece
          rescue Boom
            booms += 1
          end
          over = true
        end
      end
      ready.pop
      rounds.times do |round|
        reader.raise(Boom) if round.odd?
        child.stdin.write("line #{round}\n")
        reader.raise(Boom) if round.even?
        # It will wait for the next line, if for none before.
        Thread.pass until booms > round || !reader.alive?
      end
      child.stdin.close
      assert_nil raised { reader.value }, name
      assert over, name
      assert_equal expected, all, name
      child.wait
    end
  end

  # A close ends the call, with an IOError that says so, or comes before or after it.
  def test_close_against_read
    reads = [
      ->(stream) { stream.gets }, ->(stream) { stream.read }, ->(stream) { stream.read(5) },
      ->(stream) { stream.readpartial(9) }, ->(stream) { stream.eof? }, ->(stream) { stream.wait_readable },
      ->(stream) { stream.each_line.to_a }, ->(stream) { stream.readpartial(100_000) },
      ->(stream) { Procwright.wait([stream]); raise IOError, "was ended" }
    ]
    leaves_nothing do
      (ROUNDS / 3).times do |round|
        child = Procwright.spawn(CHILD, "sleep-forever", stdin: :pipe)
        races = [child.stdout, child.stderr].map { |stream| [stream, reads[round % reads.size]] }
        races << [child.stdin, ->(stream) { stream.write("x" * 200_000) }]
        races.each do |stream, call|
          thread = quietly { call.call(stream) }
          give_way(round, thread)
          stream.close
          came = raised { thread.value }
          assert_kind_of IOError, came
          assert_predicate stream, :closed?
        end
        child.kill
        assert_equal 9, child.wait.termsig
      end
    end
  end

  # What has come is whole, or has not come.
  def test_close_against_a_read_that_finds_something
    (ROUNDS / 3).times do |round|
      child = Procwright.spawn(CHILD, "echo", "a whole line")
      thread = quietly { child.stdout.gets }
      give_way(round, thread)
      # Two at once.
      other = quietly { child.stdout.close }
      child.stdout.close
      other.join
      came = raised { assert_equal "a whole line\n", thread.value }
      assert_kind_of IOError, came unless came.nil?
      child.wait
    end
  end

  def test_kill_against_wait
    waits = [
      ->(child) { child.wait }, ->(child) { child.process.wait }, ->(child) { Procwright.wait([child]) && child.status },
      ->(child) { Procwright::Open3::Waiter.new(child).value }, ->(child) { child.result.status },
      ->(child) { child.wait(timeout: 1000) }, ->(child) { child.communicate && child.status }
    ]
    leaves_nothing do
      ROUNDS.times do |round|
        child = Procwright.spawn(CHILD, "sleep-forever", stdin: :null)
        # Only one may talk to its streams.
        threads = [waits[round % waits.size], waits[round % 4]].map { |wait| quietly { wait.call(child) } }
        give_way(round, threads.last)
        round.even? ? child.kill : child.process.kill
        # It may be gone by now, and nobody else gets it.
        child.kill
        threads.each { |thread| assert_equal 9, thread.value.termsig }
        [child.stdout, child.stderr].each(&:close)
      end
    end
  end

  # Two threads start, and end, what is one.
  def test_the_same_child_from_many_threads
    leaves_nothing do
      (ROUNDS / 3).times do |round|
        child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
        threads = [
          quietly { child.stdin.write("x\n") rescue $!.class },
          quietly { child.stdout.gets rescue $!.class },
          quietly { child.stop(KILL) },
          quietly { child.wait }
        ]
        give_way(round, threads.first)
        child.stdout.close if round.odd?
        threads.each(&:value)
        refute_nil child.status
        [child.stdin, child.stdout, child.stderr].each(&:close)
      end
    end
  end
end
