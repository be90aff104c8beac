# frozen_string_literal: true

require_relative "helper"
require "csv"
require "json"
require "stringio"
require "zlib"

class TestStream < Minitest::Test
  TEXT = "first\nsecond line\n\n\n\nthird é€🦀 ünd\nlast".b.freeze

  # A stream that gives these bytes, and then its end.
  def stream(bytes = TEXT, **options)
    child = Procwright.spawn(CHILD, "cat", input: bytes, **options)
    (@children ||= []) << child
    child.stdout
  end

  # What Ruby's own gives for the same.
  def pipe(bytes = TEXT, **options)
    reader, writer = IO.pipe(**options)
    Thread.new do
      writer.binmode.write(bytes)
    rescue Errno::EPIPE
      # The test did not want all of it.
    ensure
      writer.close
    end
    reader
  end

  def teardown
    @children&.each(&:stop)
    super
  end

  # Each is called on a stream and on an IO: values, encodings and exceptions are the same.
  CALLS = {
    "gets" => ->(io) { Array.new(9) { io.gets } },
    "gets, chomp" => ->(io) { Array.new(9) { io.gets(chomp: true) } },
    "gets of a separator" => ->(io) { Array.new(6) { io.gets("in") } },
    "gets of a separator, chomp" => ->(io) { Array.new(6) { io.gets("in", chomp: true) } },
    "gets of a limit" => ->(io) { Array.new(20) { io.gets(4) } },
    "gets of both" => ->(io) { Array.new(20) { io.gets("d", 5) } },
    "gets of paragraphs" => ->(io) { Array.new(4) { io.gets("") } },
    "gets of paragraphs, chomp" => ->(io) { Array.new(4) { io.gets("", chomp: true) } },
    "gets of all" => ->(io) { [io.gets(nil), io.gets(nil)] },
    "gets of all, limited" => ->(io) { [io.gets(nil, 37), io.gets(nil)] },
    "gets of nothing" => ->(io) { [io.gets(0), io.gets] },
    "gets, negative" => ->(io) { io.gets(-1) },
    "each_line" => ->(io) { io.each_line.to_a },
    "each_line, chomp" => ->(io) { io.each_line(chomp: true).map(&:itself) },
    "each_line of a separator" => ->(io) { io.each_line("d").to_a },
    "each_line, which reads in between" => ->(io) { [].tap { |all| io.each_line { |line| all << line << io.gets << io.getc } } },
    "each_line with another encoding from there on" =>
      ->(io) { [].tap { |all| io.each_line { |line| all << line << line.encoding && io.set_encoding("ISO-8859-1:UTF-8") } } },
    "each_line and binmode" => ->(io) { [].tap { |all| io.each_line { |line| all << line && io.binmode } } },
    "each_line, left by break" => ->(io) { [io.each_line { |line| break line }, io.lineno, $., io.read] },
    "each_line, left by throw" => ->(io) { [catch(:out) { io.each_line { throw :out, $. } }, io.gets, io.lineno] },
    "each_line, left by an exception" => ->(io) { [(io.each_line { raise "out" } rescue $!.message), io.gets] },
    "each_line, closed within" => ->(io) { io.each_line { io.close } },
    "each_line of nothing" => ->(io) { io.each_line(0) { nil } },
    "readlines" => ->(io) { io.readlines },
    "lineno" => ->(io) { [io.gets, io.gets, io.lineno, $., io.each_line.count, io.lineno] },
    "readline" => ->(io) { Array.new(7) { io.readline } << io.readline },
    "read" => ->(io) { [io.read, io.read] },
    "read of a length" => ->(io) { [io.read(7), io.read(1000), io.read(1), io.read(0)] },
    "read into a buffer" => ->(io) { b = +"old"; [io.read(5, b), b, io.read(nil, b), b, io.read(1, b), b] },
    "read of a negative length" => ->(io) { io.read(-1) },
    "read bit by bit" => ->(io) { Array.new(12) { io.read(9) } },
    "getc" => ->(io) { Array.new(60) { io.getc } },
    "readchar" => ->(io) { io.read(1000) && io.readchar },
    "each_char" => ->(io) { io.each_char.to_a },
    "getbyte" => ->(io) { Array.new(9) { io.getbyte } },
    "readbyte" => ->(io) { io.read && io.readbyte },
    "each_byte" => ->(io) { io.each_byte.sum },
    "ungetc" => ->(io) { [io.getc, io.ungetc("é"), io.ungetc("xy"), io.gets, io.ungetc("z"), io.read(3)] },
    "ungetbyte" => ->(io) { [io.getbyte, io.ungetbyte(65), io.ungetbyte("BC"), io.gets, io.ungetbyte(nil)] },
    "eof?" => ->(io) { [io.eof?, io.read.bytesize, io.eof?, io.eof] },
    "readpartial at the end" => ->(io) { io.read && io.readpartial(5) },
    "readpartial of nothing" => ->(io) { io.readpartial(0) },
    "readpartial, its encoding" => ->(io) { io.gets && io.readpartial(3).encoding },
    "read_nonblock at the end" => ->(io) { io.read && [io.read_nonblock(5, exception: false), io.read_nonblock(5)] },
    "as an Enumerable" => ->(io) { [io.first(2), io.include?("last")] },
    "readlines of a limit" => ->(io) { io.readlines(10) },
    "encodings" => ->(io) { [io.external_encoding, io.internal_encoding, io.gets.encoding, io.read(2).encoding] },
    "another encoding" => ->(io) { io.set_encoding("ISO-8859-1:UTF-8") && io.read },
    "yet another" => ->(io) { io.set_encoding(Encoding::UTF_8, Encoding::UTF_16LE) && [io.gets, io.read] },
    "binmode" => ->(io) { [io.binmode.read, io.external_encoding] },
    "writing" => ->(io) { io.write("x") },
    "after close" => ->(io) { [io.closed?, io.close, io.close, io.closed?, io.gets] },
    "close_write" => ->(io) { io.close_write },
    "close_read" => ->(io) { [io.close_read, io.closed?] },
    "CSV" => ->(io) { CSV.new(io, col_sep: " ").read },
    "IO.copy_stream" => ->(io) { (to = StringIO.new) && [IO.copy_stream(io, to), to.string.b] },
    "IO.copy_stream of a length" => ->(io) { (to = StringIO.new) && [IO.copy_stream(io, to, 9), to.string.b, io.read] },
    "too many arguments" => ->(io) { io.gets("a", 1, 2) }
  }.freeze

  def outcome(io, call)
    call.call(io)
  rescue IOError, SystemCallError, ArgumentError => e
    [class_elsewhere(e), e.message]
  end

  CALLS.each do |name, call|
    define_method("test_as_an_io: #{name}") do
      ours = outcome(stream, call)
      theirs = outcome(pipe, call)
      if theirs.nil?
        assert_nil ours
      else
        assert_equal theirs, ours
        assert_equal theirs.inspect, ours.inspect
      end
    end
  end

  WRITES = {
    "write" => ->(io) { [io.write("a", 1, :b), io.write] },
    "<<" => ->(io) { io << "a" << 2 && nil },
    "print" => ->(io) { io.print("a", "b", 3) },
    "puts" => ->(io) { [io.puts("a", "b\n", ["c", ["d"]], nil, []), io.puts, io.puts([]), io.puts(nil)] },
    "printf" => ->(io) { io.printf("%03d\n", 7) },
    "putc" => ->(io) { [io.putc("xy"), io.putc(65 + 256)] },
    "write_nonblock" => ->(io) { io.write_nonblock("abc") },
    "syswrite" => ->(io) { io.syswrite("abc") },
    "another encoding" => ->(io) { io.set_encoding("ISO-8859-1") && io.write("é") },
    "flush" => ->(io) { io.flush.equal?(io) },
    "sync" => ->(io) { [io.sync = true, io.sync] },
    "JSON" => ->(io) { JSON.dump({ "a" => [1] }, io) && nil },
    "reading" => ->(io) { io.read },
    "gzip" => ->(io) { gz = Zlib::GzipWriter.new(io, mtime: 1); gz.write("text"); gz.finish && nil },
    "copy_stream" => ->(io) { IO.copy_stream(StringIO.new("abc"), io) },
    "after close" => ->(io) { [io.close, io.closed?, io.write("x")] }
  }.freeze

  WRITES.each do |name, call|
    define_method("test_as_an_io: into it, #{name}") do
      child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
      reader, writer = IO.pipe
      theirs = outcome(writer, call)
      ours = outcome(child.stdin, call)
      [writer, child.stdin].each(&:close)
      theirs.nil? ? assert_nil(ours) : assert_equal(theirs, ours)
      assert_equal reader.read.b, child.stdout.read.b
      reader.close
    end
  end

  def test_who_holds_the_stream_of_a_program_that_has_ended_is_said
    child = Procwright.spawn("sh", "-c", "sleep 1000 & exit 3")
    child.wait
    error = assert_raises(Procwright::WaitTimeout) { child.stdout.gets(timeout: 1) }
    assert_match(/\n  it has exited with code 3; stdout .*held open by sleep \(pid/, error.message)
  ensure
    child&.stop
  end

  def test_json_and_gzip_read_it
    assert_equal({ "a" => [1, nil] }, JSON.parse(stream('{"a":[1,null]}').read))
    assert_equal [1], JSON.load(stream("[1]"))
    gz = Zlib::GzipReader.new(stream(Zlib.gzip("text\n" * 1000)))
    assert_equal "text\n" * 1000, gz.read
  end

  def test_lines_longer_than_any_buffer
    long = "#{'x' * 3_000_000}\nshort\n"
    reader = stream(long)
    assert_equal [3_000_001, "short\n", nil], [reader.gets.bytesize, reader.gets, reader.gets]
  end

  def test_what_is_not_there_yet
    child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
    out = child.stdout
    assert_equal :wait_readable, out.read_nonblock(10, exception: false)
    assert_equal :wait_readable, out.read_nonblock(100_000, exception: false)
    error = assert_raises(IO::EAGAINWaitReadable) { out.read_nonblock(10) }
    assert_kind_of IO::WaitReadable, error
    assert_nil out.wait_readable(0.01)
    child.stdin << "ab\ncd"
    assert_same out, out.wait_readable
    assert_equal "ab\n", out.gets
    # Of what is here already the descriptor says nothing; we do.
    assert_same out, out.wait_readable(0)
    assert_equal "cd", eventually { (part = out.read_nonblock(10, exception: false)) != :wait_readable && part }
    child.stdin.close
    assert_same out, out.wait_readable
    assert_nil eventually { (part = out.read_nonblock(10, exception: false)) != :wait_readable && [part] }.first
  end

  def test_room_to_write
    child = Procwright.spawn(CHILD, "sleep-forever", stdin: :pipe)
    written = 0
    loop do
      n = child.stdin.write_nonblock("x" * 65_536, exception: false)
      break if n == :wait_writable

      written += n
    end
    assert_operator written, :>=, 4096
    assert_raises(IO::EAGAINWaitWritable) { child.stdin.write_nonblock("x") }
    assert_nil child.stdin.wait_writable(0.01)
    child.stop
    assert_raises(Errno::EPIPE) { child.stdin.write("x") }
  end

  def test_close_ends_exactly_the_calls_on_it
    calls = [->(io) { io.read }, ->(io) { io.gets }, ->(io) { io.readpartial(9) }, ->(io) { io.eof? },
             ->(io) { io.getc }, ->(io) { io.readpartial(1 << 20) }, ->(io) { io.wait_readable }]
    calls.each do |call|
      child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
      blocked = Array.new(5) { thread { call.call(child.stdout) } }
      other = thread { call.call(child.stderr) }
      [*blocked, other].each { |one| until_blocked(one) }
      assert_nil child.stdout.close
      blocked.each do |one|
        assert_kind_of IOError, one.value
        assert_includes ["stream closed in another thread", "closed stream"], one.value.message
      end
      assert_predicate other, :alive?
      assert_predicate child.stdout, :closed?
      assert_equal "closed stream", assert_raises(IOError) { call.call(child.stdout) }.message
      child.stderr.close
      other.join
    end
  end

  def test_the_blocked_call_itself_says_what_was_closed
    child = Procwright.spawn(CHILD, "sleep-forever")
    blocked = thread { child.stdout.read }
    until_blocked(blocked)
    sleep 0.05
    child.stdout.close
    # Where it had not got further than to be about to, it was closed before.
    assert_includes ["stream closed in another thread", "closed stream"], blocked.value.message
    assert_equal child.stdout.label, blocked.value.stream
    child.stop
  end

  def test_close_of_what_a_write_is_blocked_on
    child = Procwright.spawn(CHILD, "sleep-forever", stdin: :pipe)
    blocked = thread { child.stdin.write("x" * 10_000_000) }
    until_blocked(blocked)
    child.stdin.close
    assert_kind_of IOError, blocked.value
    child.stop
  end

  def test_close_under_a_thousand_readers
    child = Procwright.spawn(CHILD, "sleep-forever")
    blocked = Array.new(1000) { thread { child.stdout.gets } }
    blocked.each { |one| until_blocked(one) }
    before = fds
    child.stdout.close
    assert_equal [Procwright::StreamClosed], blocked.map { |one| one.value.class }.uniq
    # Who stops a child that an earlier test has left opens some for a moment.
    eventually { fds <= before }
    child.stop
  end

  def test_a_wait_for_several_is_resumed_by_a_close
    child = Procwright.spawn(CHILD, "sleep-forever")
    waiting = thread { Procwright.wait([child, child.stdout, child.stderr], mode: :any) }
    until_blocked(waiting)
    child.stderr.close
    assert_equal [child.stderr], waiting.value.done
    child.stop
  end

  def test_to_io_only_where_it_is_the_pipe
    child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
    refute_respond_to child.stdout, :to_io
    refute_respond_to child.stdout, :fileno
    assert_kind_of IO, child.stdin.to_io
    child.stdin.close
    child.stop

    first = Procwright.spawn(CHILD, "echo", "through two", overflow: :block)
    second = Procwright.run(CHILD, "cat", stdin: first.stdout)
    assert_equal "through two\n", second.stdout
    reader = Procwright.spawn(CHILD, "echo", "x", overflow: :block).stdout
    assert_equal [[reader], [], []], IO.select([reader])
    assert_equal reader.fileno, reader.to_io.fileno
    reader.close
    assert_raises(IOError) { reader.to_io }
  end

  def test_what_has_come_goes_on_at_once
    # The first never ends.
    Procwright.spawn("sh", "-c", "echo a; echo b; exec sleep 1000") do |first|
      assert_equal "a\n", Procwright.run("head", "-1", stdin: first.stdout).stdout
      first.stop("KILL")
    end
    Procwright.spawn("sh", "-c", "echo a; echo b; exec sleep 1000") do |first|
      assert_equal "a\n", first.stdout.gets
      assert_equal "b\n", Procwright.run("head", "-1", stdin: first.stdout).stdout
      first.stop("KILL")
    end
  end

  def test_a_pipe_of_which_a_part_is_here_is_handed_on_with_that_or_not_at_all
    child = Procwright.spawn("printf", "ready now\\nrest\\n", overflow: :block)
    child.wait
    child.wait_for(/ready/)
    error = assert_raises(IOError) { child.stdout.fileno }
    assert_match(/\Astdout of printf .* has no descriptor to hand on: 10 bytes wait in this process/, error.message)
    assert_raises(IOError) { IO.select([child.stdout]) }
    assert_equal " now\nrest\n", Procwright.run(CHILD, "cat", stdin: child.stdout).stdout
    # Once all of it was taken, the pipe is all that there is.
    child = Procwright.spawn("printf", "ready\\nrest\\n", overflow: :block)
    child.wait
    child.wait_for(/ready/)
    assert_equal "rest\n", child.stdout.read(5)
    assert_kind_of Integer, child.stdout.fileno
  end

  def test_a_slow_reader_does_not_slow_the_child
    child = Procwright.spawn(CHILD, "flood", "--out", "3M", "--err", "0", "--chunk", "4096")
    assert_predicate child.wait, :success?
    assert_equal 3 << 20, child.stdout.read.bytesize
  end

  def test_what_is_dropped_is_counted
    events = []
    child = Procwright.spawn(CHILD, "flood", "--out", "3M", "--err", "0", "--chunk", "4096",
                             overflow: Procwright::Overflow.new(:drop_oldest, memory: 65_536),
                             on_event: ->(event) { events << event.kind })
    child.wait
    data = child.stdout.read
    dropped = child.stdout.gaps.sum { |_, n| n }
    assert_operator dropped, :>, 0
    assert_equal 3 << 20, data.bytesize + dropped
    assert_equal 3 << 20, child.stdout.position
    assert_includes eventually { child.status && !events.empty? && events }, :dropping
  end

  def test_too_much_is_an_error_where_that_was_asked_for
    child = Procwright.spawn(CHILD, "flood", "--out", "3M", "--err", "0", "--chunk", "4096",
                             overflow: Procwright::Overflow.new(:fail, memory: 65_536))
    # A reader that keeps up with the program would never see too much. Refused output ends
    # the program.
    child.wait
    error = assert_raises(Procwright::StreamOverflow) { loop { child.stdout.readpartial(4096) } }
    assert_kind_of IOError, error
    assert_equal child.stdout.position, error.offset
    child.stop
  end

  def test_in_a_fork_it_is_refused
    child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
    reader, writer = IO.pipe
    pid = fork do
      said = [raised { child.stdout.gets }, raised { child.stdin.write("x") }].map { |error| error.class.name }
      said << Procwright.run(CHILD, "echo", "in a fork").stdout
      writer.write(said.join(" "))
      exit!(0)
    end
    writer.close
    assert_equal "Procwright::StreamForked Procwright::StreamForked in a fork\n", reader.read
    Process.wait(pid)
    child.stdin.puts "still ours"
    assert_equal "still ours\n", child.stdout.gets
    child.stop
  end

  def test_a_line_with_a_time_limit
    child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
    [0, 0.05].each do |timeout|
      error = assert_raises(Procwright::WaitTimeout) { child.stdout.gets(timeout: timeout) }
      assert_equal "no line from stdout of #{CHILD} cat within #{timeout} s; nothing is lost", error.message
      assert_equal [child.stdout], error.pending
    end
    child.stdin.write("hal")
    assert_raises(Procwright::WaitTimeout) { child.stdout.readline(timeout: 0.05) }
    child.stdin.write("f\nmore\nré")
    assert_equal ["half\n", "more", 2], [child.stdout.gets(timeout: 60), child.stdout.readline(chomp: true, timeout: 60), $.]
    assert_raises(Procwright::WaitTimeout) { child.stdout.gets(timeout: 0) }
    child.stdin.close
    assert_equal ["ré", nil], [child.stdout.gets(timeout: 60), child.stdout.gets(timeout: 60)]
    assert_raises(EOFError) { child.stdout.readline(timeout: 0) }
    child.stop
  end

  def test_a_line_with_a_time_limit_and_a_separator
    child = Procwright.spawn(CHILD, "cat", input: "a;b;\nc")
    assert_equal ["a;", "b", "\n", "c", nil], [child.stdout.gets(";", timeout: 60), child.stdout.gets(";", chomp: true, timeout: 60),
                                              child.stdout.gets(timeout: 60), child.stdout.gets(timeout: nil),
                                              child.stdout.gets(timeout: 60)]
    [-> { child.stdout.gets(3, timeout: 1) }, -> { child.stdout.gets(nil, timeout: 1) }, -> { child.stdout.gets("", timeout: 1) }].each do |call|
      error = assert_raises(Procwright::InvalidValue, &call)
      assert_operator error.message, :start_with?, "timeout is for a whole line, and gets was asked for "
    end
    child.stop
  end

  def test_a_line_with_a_time_limit_and_a_close
    child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
    reader = Thread.new { raised { child.stdout.gets(timeout: 600) } }
    Thread.pass until reader.status == "sleep"
    child.stdout.close
    assert_kind_of IOError, reader.value
    child.stop
  end

  def test_no_method_takes_a_keyword_that_it_has_not
    out = Procwright.spawn(CHILD, "cat", stdin: :pipe).stdout
    {
      gets: [], readline: [], each_line: [], each: [], readlines: [], read: [], readpartial: [5], sysread: [5], read_nonblock: [5],
      getc: [], readchar: [], getbyte: [], readbyte: [], set_encoding: ["UTF-8"]
    }.each do |name, arguments|
      error = assert_raises(Procwright::InvalidValue, name) { out.public_send(name, *arguments, surprise: 1) }
      assert_operator error.message, :start_with?, "surprise is 1, and "
      next if %i[gets readline set_encoding].include?(name)

      error = assert_raises(Procwright::InvalidValue, name) { out.public_send(name, *arguments, timeout: 0.3) }
      assert_match(/has no such keyword: .*0\.3/, error.message)
    end
  end

  def test_it_cannot_be_copied
    assert_raises(TypeError) { stream.dup }
    assert_raises(TypeError) { Marshal.dump(stream) }
  end
end
