# frozen_string_literal: true

require_relative "helper"
require "pathname"
require "stringio"
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

  def test_input_that_is_not_the_data_is_sent_to_stdin
    [%w[a b], %w[a b].each, $stdin, Pathname("a")].each do |input|
      error = assert_raises(Procwright::InvalidValue) { Procwright.run("cat", input: input) }
      assert_operator error.message, :end_with?, "; what has each, an IO or a Pathname goes into stdin:"
    end
  end

  def test_a_hash_is_no_stdin
    %i[run spawn].each do |call|
      error = assert_raises(Procwright::InvalidValue) { Procwright.public_send(call, "cat", stdin: { file: "in.txt" }) }
      assert_match(/\Astdin is .*the name of a file as Pathname\(\.\.\.\)\z/, error.message)
    end
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

  def test_run_says_where_lines_are_given
    %i[run run!].each do |name|
      error = assert_raises(ArgumentError) { Procwright.public_send(name, "true") { flunk } }
      assert_includes error.message, "on_line: ->(line)"
    end
  end

  def test_the_word_of_a_place_is_no_file
    Dir.mktmpdir do |dir|
      Procwright::Options::PLACES.each do |word, place|
        %w[stdout stderr].product(%i[run spawn]).each do |name, call|
          error = assert_raises(Procwright::InvalidValue) do
            Procwright.public_send(call, "true", name.to_sym => word, chdir: dir)
          end
          assert_equal "#{name} is #{word.inspect}: pass #{place}, or Pathname(#{word.inspect}) for a file of that name",
                       error.message
        end
        path = Pathname(File.join(dir, word))
        assert_predicate Procwright.run("true", stdout: path), :success?
      end
      assert_equal Procwright::Options::PLACES.size, Dir.children(dir).size
    end
  end

  def test_methods_of_others_have_a_hint
    { exit_code: "use exitstatus", returncode: "use exitstatus", ok?: "use success?" }.each do |name, hint|
      [Procwright.run("true"), Procwright.pipeline(["true"], ["cat"]), Procwright.map([["true"]]).first].each do |one|
        error = assert_raises(NoMethodError) { one.public_send(name) }
        assert_equal "undefined method '#{name}' for an instance of #{one.class}: #{hint}", error.message.lines.first.chomp
        refute_respond_to one, name
        assert_raises(NoMethodError) { one.surprise }
      end
    end
    error = assert_raises(NoMethodError) { Procwright.capture3("true") }
    assert_includes error.message, "use Procwright::Open3.capture3"
    assert_raises(NoMethodError) { Procwright.surprise }
  end

  def test_methods_of_others_have_a_hint_where_a_child_is_held
    child = Procwright.spawn("cat", stdin: :pipe)
    joined = Procwright.spawn_pipeline("cat", "cat", stdin: :pipe)
    {
      child => { send_signal: "use signal, as in", interrupt: 'use signal("INT")', gets: "use stdout.gets", puts: "use stdin.puts",
                 success?: "use wait.success?", exit_code: "use exitstatus" },
      joined => { signal: "use stop, which", terminate: "use stop, which", pid: "use pids", read: "use stdout.read" }
    }.each do |one, names|
      names.each do |name, hint|
        error = assert_raises(NoMethodError) { one.public_send(name) }
        assert_includes error.message, "undefined method '#{name}' for an instance of #{one.class}: #{hint}"
        refute_respond_to one, name
      end
      assert_raises(NoMethodError) { one.surprise }
    end
    [child, child.process, joined].each do |one|
      error = assert_raises(Procwright::InvalidValue) { one.kill("INT") }
      assert_match(/\Asignal is "INT": kill .*SIGKILL/, error.message)
    end
    assert_predicate child, :alive?
    [child, joined].each { |one| one.kill.then { one.wait } }
    assert_equal 9, child.status.termsig
  end

  def test_select_says_what_to_use
    child = Procwright.spawn("cat", stdin: :pipe)
    [[child.stdout], [child.stderr, $stdin]].each do |streams|
      error = assert_raises(TypeError) { IO.select(streams, nil, nil, 0) }
      assert_match(/\Astd(out|err) of cat is no IO: .*Procwright.wait\(/, error.message)
    end
    assert_includes assert_raises(NoMethodError) { child.stdout.to_io }.message, "Procwright.wait("
    assert_equal [[], [child.stdin], []], IO.select(nil, [child.stdin], nil, 0)
    # Where an IO would do, and something else does.
    assert_nil IO.try_convert(child.stdout)
    child.stdin.write("abc")
    child.stdin.close
    copy = StringIO.new
    assert_equal 3, IO.copy_stream(child.stdout, copy)
    child.wait
    barely = Procwright.spawn("echo", overflow: :block)
    assert_equal [[barely.stdout], [], []], IO.select([barely.stdout])
    barely.wait
  end

  def test_a_redirection_is_no_path
    error = assert_raises(Procwright::InvalidValue) { Procwright.run("true", stdout: ">>log") }
    assert_includes error.message, 'no line of a shell: pass ["log", "a"]'
    refute_path_exists ">>log"
  end

  def test_every_habit_has_a_hint
    Procwright::Options::HABITS.each do |name, hint|
      %i[run spawn].each do |call|
        error = assert_raises(Procwright::InvalidValue) { Procwright.public_send(call, "true", name => 5) }
        assert_equal "#{name} is 5, and #{call} has no such keyword: #{hint}", error.message
      end
    end
  end

  def test_other_names_for_codes_that_are_no_failure
    { ok: true, expected_exit_codes: [0, 4, 1], ok_code: 3 }.zip(["[1]", "[1, 4]", "[3]"]) do |(name, value), codes|
      %i[run spawn map].each do |call|
        error = assert_raises(Procwright::InvalidValue) { Procwright.public_send(call, call == :map ? [["true"]] : "true", name => value) }
        assert_includes error.message, "pass ok_codes: #{codes}"
      end
    end
    error = assert_raises(Procwright::InvalidValue) { Procwright.run("true", ok_codes: { 0 => [1] }) }
    assert_includes error.message, "codes by stage are those of a pipeline"
  end

  def test_every_habit_of_a_map_has_a_hint
    Procwright::Options::OF_MAP.each do |name, hint|
      error = assert_raises(Procwright::InvalidValue) { Procwright.map([["true"]], name => 5) }
      assert_equal "#{name} is 5, and map has no such keyword: #{hint}", error.message
    end
  end

  def test_no_hint_names_a_keyword_that_map_has_not
    Procwright::Options::OF_MAP.each do |name, hint|
      refute_includes Procwright::Options::MAP.keys, name
      named = hint[/\Apass (\w+):/, 1]
      assert_includes Procwright::Options::MAP.keys, named.to_sym if named
    end
  end

  def test_an_ended_has_what_its_result_has
    ended, missing = Procwright.map([["sh", "-c", "echo out; echo err >&2; exit 3"], ["/does/not/exist"]], ordered: true).to_a
    assert_equal ["out\n", "err\n", 3, "exited with code 3"], [ended.stdout, ended.stderr, ended.exitstatus, ended.outcome]
    assert_equal ended.result.status, ended.status
    assert_nil missing.stdout
    assert_nil missing.exitstatus
    assert_match(/No such file/, missing.outcome)
    refute_match(/hint/, missing.outcome)
    broken = Procwright.map([%w[echo x]], on_line: ->(*) { raise KeyError, "bug" }).first
    assert_equal "KeyError: bug", broken.outcome
  end

  def test_a_number_is_no_signal_of_a_stop
    [5, 2, 15].each do |number|
      [-> { Procwright::Stop.new(number) }, -> { Procwright::Stop.new(signal: number) }].each do |stop|
        error = assert_raises(Procwright::InvalidValue) { stop.call }
        assert_operator error.message, :start_with?, "signal is #{number}: a number may be a signal or seconds; pass"
      end
    end
  end

  def test_seconds_in_texts_are_rounded
    child = Procwright.spawn(CHILD, "sleep-forever")
    { 0.05999835700073163 => "within 0.06 s", -1.0000030039991543 => "within 0 s", 0 => "within 0 s" }.each do |timeout, text|
      [-> { child.wait(timeout: timeout) }, -> { child.wait_for("x", timeout: timeout) }].each do |call|
        error = assert_raises(Procwright::WaitTimeout) { call.call }
        assert_includes error.message, text
      end
    end
  ensure
    child&.stop("KILL")
  end

  def test_a_map_whose_results_nobody_takes_is_told_of_at_the_end
    never = "Procwright.map([%w[sleep 1000]])"
    taken = "Procwright.map([%w[true], %w[sleep 1000]]).next"
    stopped = "Procwright.map([%w[sleep 1000]]).stop"
    over = "map = Procwright.map([%w[true]]); sleep 0.01 until map.progress.all_taken && map.progress.running.zero?"
    { never => true, taken => false, stopped => false, over => false }.each do |script, told|
      lib = File.expand_path("../lib", __dir__)
      result = Procwright.run(RbConfig.ruby, "-I", lib, "-r", "procwright", "-e", script)
      assert_equal told, result.stderr.match?(/\A-e:1: warning: nobody has taken a result of this map.*to_a\n\z/), result.stderr
      assert_empty result.stderr unless told
    end
  end
end
