# frozen_string_literal: true

require "minitest/autorun"
require "procwright"
require "rbconfig"

# Undoes what `nohup`, or `&` in a script, ignores: programs that a test interrupts would
# inherit it, and not end.
%w[HUP INT QUIT TERM].each { |signal| trap(signal, "DEFAULT") }

# What the tests share. They never race the clock: no test has an upper time limit but that
# of the watchdog, which is there so that a hang says where.
module Helper
  ROOT = File.expand_path("../..", __dir__)
  CHILD = ENV.fetch("PROCWRIGHT_TEST_CHILD")
  LIB = File.join(ROOT, "ruby", "lib")
  WATCHDOG = Integer(ENV.fetch("WATCHDOG", 300))

  # Ends everything, and says where it hangs.
  def self.watch(name, patience)
    Thread.new do
      sleep patience
      warn "#{name} hangs:"
      Thread.list.each { |thread| warn thread.inspect, thread.backtrace&.first(15) }
      exit!(1)
    end
  end

  def setup
    @watchdog = Helper.watch("#{self.class}##{name}", patience)
  end

  # Seconds after which the watchdog bites.
  def patience = WATCHDOG

  def teardown
    @watchdog.kill.join
  end

  # Tries again until the block is true: for what comes by itself, and nobody tells when. A
  # moment before the watchdog it says what `instead` tells.
  def eventually(instead = nil)
    bites = now + (patience * 0.9)
    loop do
      value = yield
      return value if value

      flunk(instead.call) if instead && now > bites
      sleep 0.005
    end
  end

  # Calls the block with seconds, with ever more of them while it fails: how long a program needs
  # for its first word is up to the machine.
  def with_time(least = 0.3)
    [least, 10 * least].each do |seconds|
      return yield seconds
    rescue Minitest::Assertion
      next
    end
    yield 60
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # Lets other threads go first, so many times, but not for long: on a busy machine each time may
  # take some hundredths of a second, and thousands of them minutes.
  def give_turns(count)
    over = now + 0.02
    count.times { now < over ? Thread.pass : break }
  end

  # Until this thread is asleep in a call of ours.
  def until_blocked(thread)
    eventually { thread.status == "sleep" || !thread.alive? }
    # It is told to be asleep a moment before it is: what follows has to work in both.
  end

  # What the block raises.
  def raised
    yield
    nil
  rescue Exception => e # rubocop:disable Lint/RescueException
    e
  end

  # What the block gives, or as what a call of the standard library would have raised it.
  def outcome_of
    yield
  rescue SystemCallError, IOError, ArgumentError, TypeError => e
    [class_elsewhere(e), e.is_a?(SystemCallError) ? e.errno : nil]
  end

  # The class of an exception by which those rescue it who do not know this library.
  def class_elsewhere(error)
    error.class.ancestors.grep(Class).find { |one| one.name && !one.name.start_with?("Procwright") }
  end

  # A thread whose exception is its value.
  def thread
    Thread.new do
      yield
    rescue Exception => e # rubocop:disable Lint/RescueException
      e
    end
  end

  # Another Ruby, which is given these lines.
  def ruby(lines, *args, extra_env: {}, **options)
    Procwright.run(RbConfig.ruby, "--disable-gems", "-w", "-EUTF-8", "-I#{LIB}", "-rprocwright", "-e", lines, *args,
                   extra_env: { "PROCWRIGHT_TEST_CHILD" => CHILD }.merge(extra_env), **options)
  end

  def fds = Dir.children("/proc/self/fd").size
  def tasks = Dir.children("/proc/self/task").size

  # Our children that have not been reaped, as lines of `/proc/PID/stat`.
  def children
    all = Dir.glob("/proc/self/task/*/children").flat_map { |file| File.read(file).split }
    all.to_h { |pid| [pid, File.read("/proc/#{pid}/stat")] }
  rescue SystemCallError
    retry # a thread or a process that has ended meanwhile
  end

  # A variable by which a process, and its children, are known again.
  def mark = @mark ||= "#{self.class}.#{name}.#{$$}"
  def marked = { "PROCWRIGHT_MARK" => mark }

  # Whether no process has the mark of this test.
  def gone?
    Dir.glob("/proc/[0-9]*/environ").none? do |file|
      File.binread(file).split("\0").include?("PROCWRIGHT_MARK=#{mark}")
    rescue SystemCallError
      false
    end
  end

end

class Minitest::Test
  include Helper
end
