# frozen_string_literal: true

require_relative "helper"
require "pathname"

# Several programs side by side, as a stage of a pipeline.
class TestFan < Minitest::Test
  Fan = Procwright::Fan

  def pipeline(...) = Procwright.pipeline(...)
  def judged(result) = result.stages.map(&:judgement)
  def shell(line) = ["sh", "-c", line]

  # Refused, with these words, and nothing was started.
  def refused(words, *stages, **options)
    assert_match words, assert_raises(Procwright::InvalidValue) { pipeline(*stages, **options) }.message
  end

  def test_each_gets_all_and_has_an_output_of_its_own
    Dir.mktmpdir do |dir|
      copy = File.join(dir, "copy")
      to_file = { argv: ["cat"], stdout: copy, env: { "A" => "b" } }
      result = pipeline(%w[seq 9], ["cat"], Fan.new(%w[wc -l], to_file, %w[tail -1]))
      assert_predicate result, :success?
      assert_equal [:success] * 5, judged(result)
      assert_equal [nil, nil, "9\n", nil, "9\n"], result.stages.map(&:stdout)
      assert_equal "9\n", result.stdout
      assert_equal "1\n2\n3\n4\n5\n6\n7\n8\n9\n", File.read(copy)
      assert_equal [nil, nil, 18, 18, 18], result.stages.map { |stage| stage.fan&.fetch(:bytes_out) }
      assert_equal "seq 9 | cat | {wc -l, cat, tail -1} ended well", result.summary
    end
  end

  def test_volume_comes_to_each_whole
    data = (0..255).map(&:chr).join.b * 16_384
    slow = shell("head -c 1; sleep 0.1; cat")
    [false, true, { 0 => Procwright::Overflow.new(memory: "64KiB") }].each do |elastic|
      result = Procwright.pipeline!(["cat"], Fan.new(["cat"], slow, ["cat"]), input: data, elastic: elastic, binmode: true)
      assert(result.stages[1..].all? { |stage| stage.stdout == data })
    end
  end

  def test_one_that_leaves_or_fails_ends_no_other
    result = Procwright.pipeline!(%w[seq 1000000], Fan.new(%w[head -1], %w[wc -l]))
    assert_equal [nil, "1\n", "1000000\n"], result.stages.map(&:stdout)
    result = pipeline(%w[seq 1000000], Fan.new(shell("kill -KILL $$"), %w[wc -l]))
    assert_equal %i[success failed success], judged(result)
    assert_equal [9, "1000000\n"], [result.termsig, result.stdout]
  end

  def test_the_one_that_holds_up_the_rest_is_named
    stages = [["yes"], Fan.new(shell("exec cat >/dev/null"), %w[sleep 1000])]
    # More each time, until the first has come to read before.
    timeout = 0.2
    begin
      error = assert_raises(Procwright::TimeoutExpired) { pipeline(*stages, timeout: timeout, stop: "KILL") }
      result = error.result
    end while (timeout *= 2) < 60 && judged(result) != %i[collateral collateral failed]
    assert_equal %i[collateral collateral failed], judged(result)
    assert_includes result.explanation, "stage 3 of 3 held up the rest: sleep 1000"
    assert_operator result.stages[2].fan[:lag_bytes], :>, 0
  end

  def test_all_are_started_or_none
    Dir.mktmpdir do |dir|
      made = File.join(dir, "made")
      reads = shell("cat; touch #{made}")
      error = assert_raises(Errno::ENOENT) { pipeline(["yes"], Fan.new(reads, ["/no/such/program"], reads)) }
      assert_equal 2, error.stage
      assert_includes error.message, "stage 3 of 4, /no/such/program"
      refute_path_exists made
    end
  end

  def test_the_result_as_a_hash_has_the_figures_of_each
    result = pipeline(%w[echo x], Fan.new(["cat"], ["cat"]))
    first, second, = result.to_h[:stages]
    refute_includes first, :fan
    assert_equal 2, second[:fan][:bytes_out]
    assert_equal 2, result.stages[2].deconstruct_keys(nil)[:fan][:bytes_in]
  end

  def test_one_that_is_held_has_the_stdout_of_the_last
    Dir.mktmpdir do |dir|
      copy = File.join(dir, "copy")
      fan = Fan.new({ argv: ["cat"], stdout: copy }, ["cat"])
      result = Procwright.spawn_pipeline(["cat"], fan, stdin: :pipe) do |child|
        assert_match(/cat \| \{cat, cat\}, pids/, child.inspect)
        child.stdin.puts "pear"
        assert_equal "pear\n", child.stdout.gets
        child.result
      end
      assert_predicate result, :success?
      assert_equal "pear\n", File.read(copy)
    end
    quiet = Fan.new({ argv: ["cat"], stdout: :null }, ["cat"])
    assert_equal ["x\n", ""], Procwright.spawn_pipeline(%w[echo x], quiet, &:communicate)
    error = assert_raises(Procwright::InvalidValue) { Procwright.spawn_pipeline(["cat"], Fan.new(["cat"], ["cat"])) }
    assert_match(/stdout.*one stdout, of its last program/, error.message)
    first = Fan.new(%w[echo pear], %w[echo apple])
    assert_equal ["apple\npear\n", ""], Procwright.spawn_pipeline(first, ["sort"], &:communicate)
  end

  def test_where_a_fan_cannot_be
    fan = Fan.new(["cat"], ["cat"])
    function = ->(input, output) { IO.copy_stream(input, output) }
    refused(/\Astages\[0\] is #<Procwright::Fan .*put a program before it or behind it/, fan)
    refused(/\Astages\[1\] is #<Procwright::Fan .*put a \["cat"\] between/, ["cat"], fan, function)
    refused(/\Astages\[1\] is #<Procwright::Fan .*put a \["cat"\] between/, ["cat"], fan, function, ["cat"])
    refused(/\Astages\[2\] is #<Procwright::Fan .*put a program between/, ["cat"], fan, fan, ["cat"])
    refused(/\Astages\[1\] is #<Procwright::Fan .*put a program between/, fan, fan)
    refused(/\Astages\[0\] is #<Procwright::Fan .*put a \["cat"\] between/, fan, function, ["cat"])
    refused(/\Astages\[2\] is #<Procwright::Fan .*put a \["cat"\] between/, ["cat"], function, fan)
    refused(/elastic/, ["cat"], fan, elastic: { 1 => true })
    refused(/elastic is .*which is one of a fan/, fan, ["cat"], elastic: { 0 => true })
  end

  def test_what_a_fan_cannot_have
    fan = Fan.new(["cat"], ["cat"])
    { [] => /name one at least/, [fan] => /side by side already/,
      [->(input, output) {}] => /a function stands between two programs/ }.each do |programs, words|
      assert_match words, assert_raises(Procwright::InvalidValue) { Fan.new(*programs) }.message
    end
    assert_match(/\Aprograms\[1\]: argv\[0\] is nil: /, assert_raises(Procwright::InvalidValue) { Fan.new(["cat"], [nil]) }.message)
    refused(/\Astage 2: .*in one string|\Astage 2: the program and its arguments are one string/, ["cat"], Fan.new("cat -n"))
    # Of one alone it is an option of the whole.
    refused(/\Astage 2: stdout is :null, .*it is one of the whole/, ["cat"], { argv: ["cat"], stdout: :null })
    refused(/\Astage 2: stdin is nil, .*it is one of the whole/, ["cat"], Fan.new({ argv: ["cat"], stdin: nil }))
    refused(/\Astage 1: stdout is :null, .*it is one of the whole/, Fan.new({ argv: ["cat"], stdout: :null }, ["cat"]), ["cat"])
    # One program is a stage like any other.
    assert_equal "x\n", pipeline(%w[echo x], Fan.new(["cat"])).stdout
    assert_equal '#<Procwright::Fan ["cat"]>', Fan.new(["cat"]).inspect
    assert_equal [true, false], [Fan.new(["cat"]) == Fan.new(["cat"]), Fan.new(["cat"]) == fan]
  end

  def test_no_end_is_said_twice
    fan = Fan.new(["cat"], { argv: ["cat"], stdout: :null })
    refused(/\Astdout is "x": the last program of the Fan has a stdout of its own/, ["cat"], fan, stdout: "x")
    assert_nil pipeline(%w[echo x], fan, stdout: :capture).stdout
    own = Fan.new({ argv: ["cat"], stdin: :null })
    refused(/\Ainput is "x": the first program has a stdin of its own/, own, ["cat"], input: "x")
    refused(/\Astdin is :null: the first program has a stdin of its own/, own, ["cat"], stdin: :null)
    refused(/\Ainput and stdin are for one program/, Fan.new(["cat"], ["cat"]), ["cat"], input: "x")
    fed = Fan.new(["cat"], { argv: ["cat"], stdin: StringIO.new("x") })
    refused(/\Astage 2: stdin is .*each reads a file or nothing/, fed, ["cat"])
    Dir.mktmpdir do |dir|
      path = File.join(dir, "x")
      same = Fan.new({ argv: ["cat"], stdout: path }, { argv: ["cat"], stdout: path })
      refused(/two stages would open that file/, ["cat"], same)
    end
  end

  def test_lines_of_several_come_whole_to_the_next
    Dir.mktmpdir do |dir|
      given = File.join(dir, "given")
      File.write(given, "fig\n")
      writes = ["seq", "-f", "%.0f and more words of this line", "50000"]
      first = Fan.new(writes, { argv: ["cat"], stdin: Pathname(given) }, writes)
      result = Procwright.pipeline!(first, ["cat"])
      expected = (1..50_000).map { |number| "#{number} and more words of this line" }
      assert_equal [*expected, *expected, "fig"].sort, result.stdout.lines(chomp: true).sort
      assert_equal [nil] * 4, result.stages.map(&:fan)
    end
  end

  def test_each_of_several_writers_is_judged
    result = pipeline(Fan.new(["yes"], shell("exit 3"), ["yes"]), %w[head -1])
    assert_equal %i[forgiven failed forgiven success], judged(result)
    assert_equal "failed: stage 2 of 4 exited with code 3", result.outcome
  end

  def test_a_fan_at_both_ends_and_a_buffer_where_there_may_be_one
    fan = Fan.new(%w[wc -l], %w[wc -l])
    [true, { 2 => true }].each do |elastic|
      result = pipeline(Fan.new(%w[seq 9], %w[seq 9]), ["cat"], fan, elastic: elastic)
      assert_predicate result, :success?
      assert_equal [nil, nil, nil, "18\n", "18\n"], result.stages.map(&:stdout)
    end
  end

  def test_in_the_middle_each_gets_all_and_the_next_one_the_lines_of_all
    even = shell("sed -n '2~2s/$/ is even/p'")
    odd = shell("sed -n '1~2s/$/ is odd/p'")
    result = Procwright.pipeline!(%w[seq 4], Fan.new(even, odd), ["sort"])
    assert_equal "1 is odd\n2 is even\n3 is odd\n4 is even\n", result.stdout
    assert_equal [nil, 8, 8, nil], result.stages.map { |stage| stage.fan&.fetch(:bytes_out) }
    assert_equal [nil] * 3, result.stages.take(3).map(&:stdout)
    count = ->(input, output) { output << "#{input.each_line.count}\n" }
    cats = Fan.new(["cat"], ["cat"])
    [false, true].each do |elastic|
      stages = [Fan.new(%w[seq 9], %w[seq 9]), ["cat"], cats, ["cat"], count, ["cat"], cats, ["sort"], Fan.new(["cat"])]
      assert_equal "36\n36\n", Procwright.pipeline!(*stages, elastic: elastic).stdout
    end
    stages = [["cat"], cats, ["cat"]]
    Procwright.spawn_pipeline(*stages, stdin: :pipe) do |child|
      assert_match(/cat \| \{cat, cat\} \| cat, pids/, child.inspect)
      child.stdin.puts "pear"
      assert_equal %W[pear\n pear\n], [child.stdout.gets, child.stdout.gets]
    end
    refused(/\Astage 2: stdout is :null, .*it is one of the whole/, ["cat"], Fan.new({ argv: ["cat"], stdout: :null }, ["cat"]), ["cat"])
  end

  def test_a_line_that_is_too_long_in_the_middle_is_an_error
    error = assert_raises(IOError) { pipeline(%w[cat /dev/zero], Fan.new(["cat"], ["cat"]), ["cat"], stdout: :null, stop: "KILL") }
    assert_includes error.message, "a line of more than 16777216 bytes"
    assert_kind_of Procwright::Error, error
  end

  def test_what_feeds_the_first_feeds_all
    given = %W[a\n b\n].each
    result = pipeline("cat", Fan.new("wc -l", "sort -r"), shell: true, stdin: given)
    assert_equal [nil, "2\n", "b\na\n"], result.stages.map(&:stdout)
  end
end
