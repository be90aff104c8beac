# frozen_string_literal: true

require_relative "helper"

# Both outputs of a child as one.
class TestMerged < Minitest::Test
  def test_lines_in_their_order
    before = Time.now - 1
    # The program goes on when its line has been read, so there is one order.
    child = Procwright.spawn(CHILD, "says", "out:a\\n", "ack", "err:b\\n", "ack", "out:c\\nd", merged: true, stdin: :pipe)
    seen = []
    child.merged.each do |one|
      seen << [one.stream, one.line]
      # Each was read before the next was written.
      refute one.ambiguous
      assert_operator one.time, :>, before
      child.stdin.puts if seen.size < 3
    end
    assert_equal [[:stdout, "a\n"], [:stderr, "b\n"], [:stdout, "c\n"], [:stdout, "d"]], seen
    assert_nil child.merged.gets
    assert_nil child.stdout
    assert_nil child.stderr
    assert_predicate child.wait, :success?
  end

  def test_a_block_takes_a_line_apart
    child = Procwright.spawn(CHILD, "says", "out:a\n", merged: true)
    child.merged.each { |stream, line| assert_equal [:stdout, "a\n"], [stream, line] }
    child = Procwright.spawn(CHILD, "says", "out:a\n", merged: true)
    child.merged.each { |one| assert_equal [:stdout, "a\n", Time], [one.stream, one.line, one.time.class] }
    child.wait
  end

  def test_a_wait_for_it_knows_of_lines_that_were_read_already
    child = Procwright.spawn(CHILD, "says", "out:a\nb\nrest", "ack", stdin: :pipe, merged: true)
    assert_equal "a\n", child.merged.gets.line
    assert_equal [child.merged], Procwright.wait([child.merged], mode: :any).done
    assert_equal "b\n", child.merged.gets.line
    # What is no whole line yet is waited for.
    assert_empty Procwright.wait([child.merged], mode: :any, timeout: 0.05).done
    child.stdin.puts
    assert_equal ["rest"], child.merged.map(&:line)
    assert_equal [child.merged], Procwright.wait([child.merged], mode: :any).done
    child.wait
  end

  def test_a_line_with_a_time_limit
    child = Procwright.spawn(CHILD, "cat", stdin: :pipe, merged: true)
    [0, 0.05].each { |timeout| assert_raises(Procwright::WaitTimeout) { child.merged.gets(timeout: timeout) } }
    child.stdin.write("hal")
    assert_raises(Procwright::WaitTimeout) { child.merged.gets(timeout: 0.05) }
    child.stdin.write("f\n")
    assert_equal "half\n", child.merged.gets(timeout: 60).line
    child.stdin.close
    assert_nil child.merged.gets(timeout: 60)
  end

  def test_chomp_and_encoding
    child = Procwright.spawn(CHILD, "print-bytes", "e90a", merged: true, encoding: "ISO-8859-1:UTF-8")
    assert_equal ["é"], child.merged.each(chomp: true).map(&:line)
  end

  def test_what_nobody_reads_goes_elsewhere
    child = Procwright.spawn(CHILD, "flood", "--out", "1M", "--err", "1M", merged: true)
    assert_predicate child.wait, :success?
    sizes = child.merged.group_by(&:stream).transform_values { |all| all.sum { |one| one.line.bytesize } }
    assert_equal({ stdout: 1 << 20, stderr: 1 << 20 }, sizes)
  end

  def test_what_was_dropped_is_told_in_its_place
    overflow = Procwright::Overflow.new(:drop_newest, memory: 100_000)
    child = Procwright.spawn(CHILD, "trickle", "50000", "0", merged: true, overflow: overflow)
    child.wait
    lines, gaps = child.merged.partition { |one| one.is_a?(Procwright::Merged::Line) }
    all = Array.new(50_000) { |n| "line #{n}\n".bytesize }.sum
    assert_equal all, lines.sum { |one| one.line.bytesize } + gaps.sum(&:dropped_bytes)
    refute_empty gaps
  end

  def test_a_close_ends_a_read_and_a_wait
    child = Procwright.spawn(CHILD, "sleep-forever", merged: true)
    reader = thread { child.merged.gets }
    waiter = thread { Procwright.wait([child.merged]).done }
    [reader, waiter].each { |one| until_blocked(one) }
    child.merged.close
    assert_kind_of IOError, reader.value
    assert_equal [child.merged], waiter.value
    assert_predicate child.merged, :closed?
    assert_kind_of IOError, raised { child.merged.gets }
    child.kill
    child.wait
  end

  def test_an_interrupt_loses_nothing
    child = Procwright.spawn(CHILD, "cat", merged: true, stdin: :pipe)
    reader = Thread.new { child.merged.gets }
    reader.report_on_exception = false
    child.stdin.write("half")
    until_blocked(reader)
    reader.raise(IndexError)
    assert_instance_of IndexError, raised { reader.value }
    child.stdin.write(" a line\n")
    assert_equal "half a line\n", child.merged.gets.line
    child.stdin.close
    child.wait
  end

  def test_what_it_cannot_go_with
    %i[block drop_oldest].each do |overflow|
      error = assert_raises(Procwright::InvalidValue) { Procwright.spawn(CHILD, "exit", "0", merged: true, overflow: overflow) }
      assert_match(/merged/, error.message)
    end
    assert_raises(Procwright::InvalidValue) { Procwright.spawn(CHILD, "exit", "0", merged: true, encoding: "UTF-16LE") }
    child = Procwright.spawn(CHILD, "exit", "0", merged: true)
    assert_raises(Procwright::InvalidValue) { child.communicate }
    assert_raises(TypeError) { child.merged.dup }
    child.wait
    assert_nil Procwright.spawn(CHILD, "exit", "0").merged
  end
end
