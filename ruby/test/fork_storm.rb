# frozen_string_literal: true

# Forks a process again and again while callbacks of every kind run in it, and says how many
# of the forks hang.
#
#     ruby -Ilib test/fork_storm.rb FORKS [SECONDS]
#
# A fork that does not end within two minutes hangs: where there is gdb, it is told with its
# stack. After so many seconds no more are begun.

require "logger"
require "procwright"
require "stringio"

PATIENCE = 120
LINES = "i=0; while [ $i -lt 40 ]; do echo $i; echo $i >&2; i=$((i+1)); done"
FLOOD = "head -c 300000 /dev/zero & head -c 300000 /dev/zero >&2; wait"
# Something is told of such a run: the program has exited, and another holds its output.
HELD = "sleep 1.5 & echo up"

# What calls back, again and again, each on a thread of its own.
module Kinds
  module_function

  def lines
    Procwright.run(LINES, shell: true, on_line: ->(_, _) { yield })
  end

  def lines_of_each
    Procwright.run(LINES, shell: true, on_stdout_line: ->(_) { yield }, on_stderr_line: ->(_) { yield })
  end

  def lines_to_a_logger
    logger = Logger.new(StringIO.new)
    Procwright.run(LINES, shell: true, on_line: ->(line, _) { logger.info(line) && yield })
  end

  def tee
    Procwright.run(LINES, shell: true, tee: StringIO.new)
    yield
  end

  def pieces_of_stdin
    Procwright.run("cat", stdin: Enumerator.new { |into| 40.times { yield && into << ("x" * 1000) } })
  end

  def reads_of_stdin
    Procwright.run("wc", "-c", stdin: StringIO.new("x" * 300_000))
    yield
  end

  def input
    Procwright.run("wc", "-c", input: "x" * 300_000)
    yield
  end

  def streams
    Procwright.spawn(LINES, shell: true, stdin: :pipe) do |child|
      child.stdin.close
      child.stdout.each_line { yield }
      child.stderr.read
    end
  end

  def merged
    Procwright.spawn(LINES, shell: true, merged: true) { |child| child.merged.each { yield } }
  end

  def talk
    Procwright.spawn("cat", stdin: :pipe) do |child|
      20.times do |n|
        child.stdin.puts(n)
        yield if child.stdout.gets == "#{n}\n"
      end
    end
  end

  def events
    Procwright.run(HELD, shell: true, on_event: ->(_) { yield })
  end

  def events_to_a_logger
    logger = Logger.new(StringIO.new)
    Procwright.run(HELD, shell: true, on_event: ->(event) { logger.warn(event.to_s) && yield })
  end

  def events_of_a_child
    overflow = Procwright::Overflow.new(:drop_oldest, memory: 65_536)
    Procwright.spawn(FLOOD, shell: true, overflow: overflow, on_event: ->(_) { yield }, &:wait)
  end

  def failing_callback
    fail = ->(_) { yield && raise(KeyError) }
    Procwright.run(LINES, shell: true, on_stdout_line: fail, stop: Procwright::Stop.new(grace: 0))
  rescue KeyError
    # As it is to be.
  end

  def stops
    # One that ends with us, should we end here.
    Procwright.spawn("cat", stdin: :pipe) { |child| child.stop(Procwright::Stop.new(grace: 0)) }
    yield
  end
end

# Counts the calls of callbacks, by the kind of call.
class Calls
  attr_reader :counts, :failed

  def initialize
    @counts = Kinds.singleton_methods.to_h { |kind| [kind, 0] }
    @failed = []
  end

  def again_and_again(kind)
    loop { Kinds.public_send(kind) { @counts[kind] += 1 } }
  rescue Exception => e # rubocop:disable Lint/RescueException
    warn("#{kind} failed: #{e.full_message(highlight: false)}")
    @failed << kind
  end

  def missing = @counts.select { |_, count| count.zero? }.keys
end

# The forks that have not ended, the oldest first.
class Forks
  attr_reader :made, :hung, :bad

  def initialize
    @running = []
    @made = @hung = @bad = 0
  end

  def make
    pid = fork
    in_the_fork(@made) unless pid
    @made += 1
    @running << Process.detach(pid)
  end

  # Waits until no more than so many are left.
  def reap(at_most)
    while @running.size > at_most
      ended = @running.shift
      unless ended.join(PATIENCE)
        @hung += 1
        tell(ended.pid)
        Process.kill("KILL", ended.pid)
      end
      @bad += 1 unless ended.value.success?
    end
  end

  private

  # What a fork does: nothing, or a run of its own, or a good end.
  def in_the_fork(number)
    GC.start if number % 10 == 3
    case number % 50
    when 7
      result = Procwright.run("echo", "forked", on_line: ->(*) {})
      exit!(2) if result.stdout != "forked\n"
    when 9 then exit
    end
    exit!(0)
  end

  def tell(pid)
    warn("HANG: fork #{pid}")
    system("gdb", "-p", pid.to_s, "-batch", "-ex", "thread apply all bt 30", out: :err, err: File::NULL)
  end
end

$stdout.sync = true
at_most = Integer(ARGV.fetch(0))
over = Process.clock_gettime(Process::CLOCK_MONOTONIC) + (ARGV[1] ? Float(ARGV[1]) : Float::INFINITY)
calls = Calls.new
calls.counts.each_key { |kind| Thread.new { calls.again_and_again(kind) } }
forks = Forks.new
while forks.made < at_most && Process.clock_gettime(Process::CLOCK_MONOTONIC) < over
  forks.make
  forks.reap(7)
  puts "#{forks.made} forks, #{forks.hung} hung, #{forks.bad} ended badly" if (forks.made % 1000).zero?
end
forks.reap(0)
# The short form waits until each kind has called back once.
sleep(0.01) while calls.failed.empty? && !calls.missing.empty?
puts "Ruby #{RUBY_VERSION}: #{forks.made} forks, #{forks.hung} hung, #{forks.bad} ended badly, " \
     "#{calls.counts.values.sum} callbacks"
# The threads go on as they are.
exit!(forks.hung.zero? && forks.bad.zero? && calls.failed.empty?)
