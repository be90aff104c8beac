# frozen_string_literal: true

require_relative "helper"

# Children that nobody keeps, and those that are to live on.
class TestKeeper < Minitest::Test
  # What Ruby code printed, in a process of its own, and what it said on stderr.
  def host(code)
    result = ruby(code, CHILD, until: :exit)
    [result.stdout, result.stderr]
  end

  def alive?(pid)
    File.read("/proc/#{pid}/stat")[/\) (.)/, 1] !~ /[ZX]/
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end

  def test_what_nobody_keeps_is_told_of_and_stopped
    out, err = host(<<~RUBY)
      def start = Procwright.spawn(ARGV[0], "sleep-forever").pid
      told = []
      Warning.define_singleton_method(:warn) { |text, **| told << text }
      # The stack may still seem to have the last of them.
      until told.any?
        start
        GC.start
      end
      told = told.first
      Procwright::Process.new(told[/pid (\\d+)/, 1].to_i).wait rescue nil
      puts told
    RUBY
    assert_match(/\A-e:1: warning: nobody keeps the child .*sleep-forever \(pid \d+\)/, out, err)
    assert_includes out, "detach: true"
  end

  # The thread that calls `on_event` has the closure, and by that what stands around it.
  def test_a_closure_that_has_the_child_keeps_it_and_one_without_does_not
    out, err = host(<<~RUBY)
      HOOK = ->(_event) {}
      OPTIONS = { stdin: :pipe, input_wanted: true }
      def with_child
        child = Procwright.spawn(ARGV[0], "sleep-forever", **OPTIONS, on_event: ->(_event) { child })
        child.pid
      end
      def without = Procwright.spawn(ARGV[0], "sleep-forever", **OPTIONS, on_event: HOOK).pid
      told = []
      Warning.define_singleton_method(:warn) { |text, **| told << text[/pid (\\d+)/, 1].to_i }
      kept = Array.new(5) { with_child }
      # The stack may still seem to have the last of them.
      until told.any?
        without
        GC.start
      end
      puts (told & kept).length
    RUBY
    assert_equal "0", out.lines(chomp: true).first, err
  end

  def test_each_part_keeps_its_child
    out, err = host(<<~RUBY)
      parts = %i[stdin stdout stderr].map do |part|
        Array.new(5) { Procwright.spawn(ARGV[0], "cat", stdin: :pipe).public_send(part) }
      end
      parts << Array.new(5) { Procwright.spawn(ARGV[0], "cat", stdin: :pipe, merged: true).merged }
      told = []
      Warning.define_singleton_method(:warn) { |text, **| told << text }
      10.times { GC.start }
      puts told.length, parts.flatten.length
      # At the end nobody keeps them.
      at_exit { puts told.length }
    RUBY
    assert_equal ["0", "20"], out.lines(chomp: true).first(2), err
  end

  def test_at_the_end_of_ruby_nobody_keeps_a_child
    out, err = host(<<~RUBY)
      child = Procwright.spawn(ARGV[0], "sleep-forever", "--print-ready")
      puts child.stdout.gets[/\\d+/]
    RUBY
    assert_match(/^-e:1: warning: nobody keeps the child/, err)
    refute alive?(out.to_i)
  end

  # Ruby code that starts a program which ignores SIGTERM, and prints its number.
  DEFIANT = <<~RUBY
    def start(grace = 0.3)
      child = Procwright.spawn(ARGV[0], "ignore-term", "--print-ready", stop: { signal: "TERM", grace: grace })
      child.stdout.gets
      puts child.pid
      $stdout.flush
      child
    end
  RUBY

  def left_by(code)
    out, err = host(DEFIANT + code)
    pids = out.lines.map(&:to_i)
    refute_empty pids, err
    left = pids.select { |pid| alive?(pid) && !ends?(pid) }
    left.each { |pid| Process.kill(:KILL, pid) }
    [left, err]
  end

  # Whether a process ends that nothing is sent any more: one that was sent SIGKILL may take its time.
  def ends?(pid)
    !!Procwright::Process.new(pid).wait(timeout: 60)
  rescue Procwright::NoSuchProcess
    true
  rescue Procwright::WaitTimeout
    false
  end

  def test_the_end_waits_for_those_that_were_collected_before
    left, err = left_by(<<~RUBY)
      Thread.new { 5.times { start } }.join
      GC.start
    RUBY
    assert_equal [], left, err
  end

  def test_a_broken_stderr_keeps_no_child_from_its_end
    left, err = left_by(<<~RUBY)
      kept = Array.new(3) { start }
      read, write = IO.pipe
      read.close
      write.sync = true
      $stderr = write
    RUBY
    assert_equal [], left, err
  end

  def test_an_interrupt_of_the_end_kills_all
    left, err = left_by(<<~RUBY)
      kept = Array.new(3) { start(600) }
      # As it waits: before that it would be an interrupt of the program.
      interrupted = Module.new do
        def wait
          Process.kill(:INT, $$) unless $sent
          $sent = true
          super
        end
      end
      Procwright.const_get(:Keeper).const_get(:Kept).prepend(interrupted)
    RUBY
    assert_equal [], left, err
  end

  def test_a_pipe_that_was_handed_on_leaves_the_child_to_itself
    out, err = host(<<~RUBY)
      child = Procwright.spawn(ARGV[0], "sleep-forever", overflow: :block, stderr: :null)
      puts child.pid
      child.stdout.fileno
    RUBY
    assert_equal "", err
  ensure
    Process.kill(:KILL, out.to_i) if out.to_i.positive? && alive?(out.to_i)
  end

  def test_a_fork_leaves_its_parents_child_alone
    out, err = host(<<~RUBY)
      child = Procwright.spawn(ARGV[0], "cat", stdin: :pipe)
      Process.wait(fork { exit })
      puts child.alive?
      child.communicate("x")
    RUBY
    assert_equal ["true\n", ""], [out, err]
  end

  def test_who_is_detached_lives_on
    out, err = host(<<~RUBY)
      options = { stdout: :null, stderr: :null, detach: true }
      child = Procwright.spawn(ARGV[0], "sleep-forever", **options) { |one| one }
      puts child.alive?, Process.getsid(child.pid) == child.pid, child.pid
    RUBY
    *said, pid = out.lines(chomp: true)
    assert_equal [%w[true true], ""], [said, err]
    process = Procwright::Process.new(pid.to_i)
    assert_predicate process, :alive?
  ensure
    process&.kill
  end

  def test_what_would_end_with_us_is_refused
    nowhere = { stdout: :null, stderr: :null }
    {
      {} => /stdout is :pipe, which comes to us/,
      { stdout: :null } => /stderr is :pipe, which comes to us/,
      { **nowhere, stdin: :pipe } => /stdin is :pipe, which comes from us/,
      { **nowhere, input: "x" } => /stdin comes from us/,
      { **nowhere, die_with_parent: true } => /die_with_parent is true, which ends a program/,
      { **nowhere, channel: :from_child } => /channel is :from_child, which is between/
    }.each do |options, text|
      error = assert_raises(Procwright::InvalidValue) { Procwright.spawn(CHILD, "exit", "0", detach: true, **options) }
      assert_match text, error.message
    end
  end
end
