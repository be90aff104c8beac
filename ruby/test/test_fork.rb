# frozen_string_literal: true

require "helper"
require "open3"
require "tmpdir"

# Forks of a process in which the core's threads call back, and of one that waits in a call.
# STRESS=1 makes 100,000.
class TestFork < Minitest::Test
  STORM = File.join(__dir__, "fork_storm.rb")

  def patience = ENV["STRESS"] == "1" ? 24 * 3600 : super

  def test_no_fork_hangs_while_callbacks_run
    forks = ENV["STRESS"] == "1" ? ["100000"] : %w[100 10]
    told, status = Open3.capture2e(RbConfig.ruby, "-w", "-I#{LIB}", STORM, *forks)
    assert_predicate status, :success?, told
    puts "FIGURE #{told.lines.last}" if ENV["STRESS"] == "1"
  end

  # The program goes on until the fork has ended.
  LINES = <<~'RUBY'
    how, directory = ARGV
    program = "echo up; until test -e #{directory}/over; do sleep 0.01; done; echo over"
    parent = $$
    trap("USR1") do
      pid = fork
      next unless pid

      Thread.new do
        ::Process.wait(pid)
        puts "fork #{$?.exitstatus}"
        File.write("#{directory}/over", "")
      end
    end
    up = ->(line) { ::Process.kill("USR1", parent) if line == "up\n" }
    begin
      if how == "run"
        told = Procwright.run(program, shell: true, on_stdout_line: up, on_event: ->(_) {}).stdout
      else
        child = Procwright.spawn(program, shell: true)
        told = child.stdout.gets
        Thread.new { sleep 0.05; up.call(told) }
        told += child.stdout.read
      end
      puts "parent #{told.inspect}"
    rescue SystemCallError, IOError => e
      puts e.class.name[/\w+$/]
      $stdout.flush
      exit!(5)
    end
  RUBY

  def test_a_call_ends_in_a_fork_that_a_signal_handler_makes_and_returns_in
    { "run" => "ECHILD", "read" => "StreamForked" }.each do |how, error|
      Dir.mktmpdir do |directory|
        # The timeout is for a fork that does not end.
        told = ruby(LINES, how, directory, timeout: patience / 2).stdout
        assert_equal [error, "fork 5", 'parent "up\nover\n"'], told.lines(chomp: true), how
      end
    end
  end

  # In the fork the thread of the hook is not there, and may have had the lock.
  def test_what_hands_over_events_is_its_makers
    handover = Procwright.const_get(:Native)::EventHandover.new
    reader = Thread.new { handover.take }
    until_blocked(reader)
    pid = fork do
      handover.close
      handover.answer(true)
      exit!(handover.take.nil?)
    end
    assert_predicate ::Process.wait2(pid)[1], :success?
    sleep 0.05
    assert_predicate reader, :alive?, "the fork has ended it"
    handover.close
    assert_nil reader.value
  end

  # It would wait for the child, which waits for its input's end, and that for the fork.
  def test_a_fork_that_leaves_the_block_of_a_child_waits_for_nobody
    status = nil
    parent = $$
    child = Procwright.spawn(CHILD, "cat", stdin: :pipe) do |it|
      if (pid = fork)
        status = ::Process.wait2(pid)[1]
        assert_predicate it, :alive?
      else
        Thread.new { sleep(patience / 2) && exit!(1) }
      end
      it
    end
    exit!(0) unless $$ == parent
    assert_predicate status, :success?
    assert_equal 0, child.status.exitstatus
  end
end
