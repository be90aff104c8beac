# frozen_string_literal: true

require_relative "helper"
require "pathname"
require "tmpdir"

# What people type from habit works, or its error says what to type.
class TestHabits < Minitest::Test
  def test_one_name_catches_every_timeout
    error = assert_raises(Procwright::TimeoutExpired) { Procwright.run(CHILD, "sleep-forever", timeout: 0.1, stop: "KILL") }
    assert_kind_of Procwright::RunError, error
    assert_equal :timeout, error.result.reason
    assert_equal error.result.explanation, error.message
    child = Procwright.spawn(CHILD, "sleep-forever")
    error = assert_raises(Procwright::WaitTimeout) { child.wait(timeout: 0.1) }
    assert_kind_of Procwright::TimeoutExpired, error
    refute_kind_of Procwright::RunError, error
    assert_nil error.result
  ensure
    child&.stop("KILL")
  end

  def test_a_path_is_the_shell_to_use
    Dir.mktmpdir do |dir|
      shell = File.join(dir, "shell")
      File.write(shell, "#!/bin/sh\necho \"mine: $2\"\n", perm: 0o755)
      [shell, Pathname(shell)].each do |one|
        assert_equal "mine: a line\n", Procwright.run("a line", shell: one).stdout
      end
    end
    [1, 1.5, "", :sh, []].each do |wrong|
      error = assert_raises(Procwright::InvalidValue) { Procwright.run("x", shell: wrong) }
      assert_equal "shell is #{wrong.inspect}: pass true for /bin/sh, or the path of a shell that has -c, \"/bin/bash\"",
                   error.message
    end
  end

  def test_a_file_that_two_outputs_name_is_refused
    Dir.mktmpdir do |dir|
      file = File.join(dir, "all")
      [file, Pathname(file), File.join(dir, "..", File.basename(dir), "all")].each do |other|
        error = assert_raises(Procwright::InvalidValue) { Procwright.run("true", stdout: file, stderr: other) }
        assert_operator error.message, :end_with?, ": stdout names that file too: pass :merged"
      end
      refute_path_exists file
      assert_predicate Procwright.run("true", stdout: File::NULL, stderr: File::NULL), :success?
    end
  end

  def test_every_habit_has_a_hint
    Procwright::Options::HABITS.each do |name, hint|
      %i[run spawn].each do |call|
        error = assert_raises(Procwright::InvalidValue) { Procwright.public_send(call, "true", name => 5) }
        assert_equal "#{name} is 5, and #{call} has no such keyword: #{hint}", error.message
      end
    end
  end
end
