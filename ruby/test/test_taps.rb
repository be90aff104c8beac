# frozen_string_literal: true

require_relative "helper"
require "stringio"
require "tmpdir"

# Output that somebody gets while it comes.
class TestTaps < Minitest::Test
  class Boom < StandardError; end

  def test_lines_of_both_in_their_order
    seen = []
    result = Procwright.run(CHILD, "says", "out:a\\nb", "err:oops\\n", "out:c\\n", "out:end",
                            on_line: ->(line, stream) { seen << [stream, line] })
    assert_equal "a\nbc\nend", result.stdout
    assert_equal ["a\n", "bc\n", "end"], seen.filter_map { |stream, line| line if stream == :stdout }
    assert_equal ["oops\n"], seen.filter_map { |stream, line| line if stream == :stderr }
  end

  def test_lines_of_one
    out = []
    err = []
    Procwright.run(CHILD, "says", "out:a\\n", "err:b\\n", on_stdout_line: out.method(:<<))
    Procwright.run(CHILD, "says", "out:a\\n", "err:b\\n", on_stderr_line: err.method(:<<))
    assert_equal [["a\n"], ["b\n"]], [out, err]
    both = []
    Procwright.run(CHILD, "says", "out:a\\n", "err:b\\n", on_stdout_line: -> { both << [1, _1] }, on_stderr_line: -> { both << [2, _1] })
    assert_equal [[1, "a\n"], [2, "b\n"]], both.sort
  end

  def test_a_line_comes_while_the_run_goes_on
    # It goes on only when its line has come.
    reader, writer = IO.pipe
    Procwright.run(CHILD, "says", "out:now\\n", "ack", stdin: reader, on_line: ->(line, _) { writer.write(line) })
    writer.close
    reader.close
  end

  def test_lines_of_a_flood
    bytes = lines = 0
    on_line = lambda do |line, _|
      lines += 1
      bytes += line.bytesize
    end
    result = Procwright.run(CHILD, "trickle", "20000", "0", "--size", "50", on_line: on_line)
    assert_equal [20_000, result.stdout.bytesize], [lines, bytes]
  end

  def test_a_line_longer_than_a_piece
    long = nil
    result = Procwright.run(CHILD, "big-line", "3000000", on_stdout_line: ->(line) { long = line })
    assert_equal result.stdout, long
    assert_operator long.bytesize, :>=, 3_000_000
  end

  def test_encodings
    lines = []
    Procwright.run(CHILD, "print-bytes", "e9210a", on_line: ->(line, _) { lines << line }, encoding: "ISO-8859-1:UTF-8")
    Procwright.run(CHILD, "print-bytes", "61000a006200", on_line: ->(line, _) { lines << line }, encoding: "UTF-16LE")
    Procwright.run(CHILD, "print-bytes", "ff0a", on_line: ->(line, _) { lines << line }, binmode: true)
    assert_equal ["é!\n", "a\n".encode("UTF-16LE"), "b".encode("UTF-16LE"), "\xFF\n".b], lines
  end

  def test_what_it_raises_stops_the_run
    error = assert_raises(Boom) do
      Procwright.run(marked, CHILD, "trickle", "1000000", "1", on_line: ->(*) { raise Boom, "mine" })
    end
    assert_equal "mine", error.message
    assert gone?
  end

  def test_what_it_raises_at_the_last_line
    assert_raises(Boom) { Procwright.run(CHILD, "says", "out:no end", on_line: ->(*) { raise Boom }) }
  end

  def test_a_deadline_holds_whatever_it_does
    stuck = Queue.new
    with_time do |seconds|
      error = assert_raises(Procwright::TimeoutExpired) do
        Procwright.run(CHILD, "says", "out:x\\n", timeout: seconds, on_line: ->(*) { stuck.pop })
      end
      assert_equal "x\n", error.result.stdout
      assert_equal 2, error.result.stdout_info.undelivered_bytes
    end
  end

  def test_an_interrupt_ends_it
    inside = Queue.new
    thread = thread { Procwright.run(CHILD, "says", "out:x\\n", on_line: ->(*) { inside << 1; sleep }) }
    inside.pop
    thread.raise(Boom)
    assert_instance_of Boom, thread.value
  end

  def test_tee_to_an_io
    Dir.mktmpdir do |folder|
      path = File.join(folder, "log")
      File.open(path, "w") do |file|
        file.write("before\n")
        result = Procwright.run(CHILD, "says", "out:a\\n", "err:b\\n", tee: file)
        assert_equal "a\n", result.stdout
      end
      assert_equal %W[a\n b\n before\n], File.readlines(path).sort
    end
  end

  def test_tee_to_what_writes
    copy = StringIO.new
    result = Procwright.run(CHILD, "flood", "--out", "1M", tee: copy)
    assert_equal result.stdout, copy.string
  end

  def test_tee_to_our_own
    result = ruby(<<~RUBY)
      result = Procwright.run(ENV.fetch("PROCWRIGHT_TEST_CHILD"), "says", "out:a", "err:b", tee: true)
      $stdout.write(result.stdout.upcase)
      # What was shown is not said again.
      result = Procwright.run(ENV.fetch("PROCWRIGHT_TEST_CHILD"), "says", "err:b", "exit:3", tee: true)
      $stdout.write(result.explanation)
    RUBY
    assert_equal "bb", result.stderr
    assert_match(/\AaA.*exited with code 3\z/, result.stdout)
  end

  def test_tee_to_a_pipe_that_is_full
    reader, writer = IO.pipe
    copy = Thread.new { reader.read }
    result = Procwright.run(CHILD, "flood", "--out", "2M", tee: writer)
    writer.close
    assert_equal result.stdout.b, copy.value.b
    reader.close
  end

  def test_tee_to_what_cannot_take_it
    reader, writer = IO.pipe
    reader.close
    error = assert_raises(Errno::EPIPE) { Procwright.run(CHILD, "flood-forever", tee: writer) }
    assert_kind_of Procwright::Error, error
    writer.close
  end

  def test_what_cannot_be_one
    assert_raises(Procwright::InvalidValue) { Procwright.run(CHILD, "exit", "0", on_line: 5) }
    assert_raises(Procwright::InvalidValue) { Procwright.run(CHILD, "exit", "0", tee: 5.0) }
    assert_raises(Procwright::InvalidValue) { Procwright.run(CHILD, "exit", "0", stdout: :null, on_stdout_line: ->(_) {}) }
    assert_raises(Procwright::InvalidValue) { Procwright.spawn(CHILD, "exit", "0", on_line: ->(_) {}) }
  end

  def test_nothing_is_left_of_it
    GC.start
    before = [fds, tasks]
    100.times do |round|
      Procwright.run(CHILD, "says", "out:a\\n", on_line: ->(*) { raise Boom if round.odd? }, tee: StringIO.new)
    rescue Boom
      nil
    end
    # What is kept for the next, by us and by Ruby, is less than one of each.
    eventually { fds <= before[0] + 50 && tasks <= before[1] + 50 }
  end
end
