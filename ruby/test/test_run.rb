# frozen_string_literal: true

require_relative "helper"
require "fcntl"
require "pathname"
require "tmpdir"
require "stringio"
require "tempfile"
require "fileutils"
require "zlib"

class TestRun < Minitest::Test
  def test_codes_that_are_no_failure
    result = Procwright.run!(CHILD, "exit", "1", ok_codes: [1, 4])
    assert_predicate result, :success?
    assert_equal [1, [1, 4]], [result.exitstatus, result.ok_codes]
    assert_raises(Procwright::CommandFailed) { Procwright.run!(CHILD, "exit", "2", ok_codes: [1]) }
    refute_predicate Procwright.run(CHILD, "signal-self", "KILL", ok_codes: [9, 137]), :success?
    child = Procwright.spawn(CHILD, "exit", "1", ok_codes: [1])
    assert_predicate child.result, :success?
    own = { argv: [CHILD, "exit", "2"], ok_codes: [2] }
    assert Procwright.map([[CHILD, "exit", "1"], own], ok_codes: [1]).all?(&:success?)
    assert_predicate Procwright.pipeline!(own, ["cat"]), :success?
    assert_raises(Procwright::CommandFailed) { Procwright.pipeline!([CHILD, "exit", "2"], ["cat"]) }
  end

  def test_a_result_has_all_of_it
    result = Procwright.run(CHILD, "echo", "hello")
    assert_equal [CHILD, "echo", "hello"], result.argv
    assert_equal ["hello\n", "", :finished, 0, nil, true],
                 [result.stdout, result.stderr, result.reason, result.exitstatus, result.termsig, result.success?]
    assert_operator result.pid, :>, 1
    assert_operator result.duration, :>, 0
    assert_kind_of Float, result.cpu_user
    assert_kind_of Float, result.cpu_system
    assert_empty result.survivors
    assert_equal [6, 6, 0, true, []],
                 [result.stdout_info.bytes, result.stdout_info.kept_bytes, result.stdout_info.dropped_bytes,
                  result.stdout_info.complete?, result.stdout_info.held_by]
    assert_kind_of Float, result.stdout_info.blocked
    assert_same result, result.check!
    assert_equal "hello\n", result.to_h[:stdout]
    assert_includes result.inspect, "exited with code 0"
  end

  def test_a_result_can_be_matched
    case Procwright.run(CHILD, "exit", "3")
    in { success: false, exitstatus: 3, status: { termsig: nil } } then pass
    end
  end

  def test_a_failure_is_no_exception_but_with_a_bang
    result = Procwright.run(CHILD, "exit", "3")
    refute_predicate result, :success?
    error = assert_raises(Procwright::CommandFailed) { Procwright.run!(CHILD, "exit", "3") }
    assert_equal 3, error.result.exitstatus
    assert_kind_of Procwright::Error, error
    assert_includes error.message, "exited with code 3"
    assert_equal "x\n", Procwright.run!(CHILD, "echo", "x").stdout
  end

  def test_the_status_is_that_of_ruby
    [%w[exit 0], %w[exit 3], %w[signal-self TERM], %w[signal-self KILL]].each do |words|
      ours = Procwright.run(CHILD, *words).status
      _, theirs = Process.wait2(spawn(CHILD, *words))
      %i[exitstatus termsig success? exited? signaled? coredump? stopped? stopsig to_i].each do |name|
        ours.public_send(name).then do |found|
          expected = theirs.public_send(name)
          expected.nil? ? assert_nil(found, "#{words} #{name}") : assert_equal(expected, found, "#{words} #{name}")
        end
      end
      assert_equal theirs.to_s.sub(/pid \d+/, ""), ours.to_s.sub(/pid \d+/, "")
      assert_equal ours, theirs.to_i
    end
  end

  def test_who_cannot_be_started_raises_what_process_spawn_raises
    error = assert_raises(Errno::ENOENT) { Procwright.run("/nonexistent/program") }
    assert_kind_of Procwright::SpawnError, error
    assert_equal [:exec, "/nonexistent/program"], [error.step, error.object]
    assert_includes error.message, "/nonexistent/program"
    error = assert_raises(Errno::ENOENT) { Procwright.run(CHILD, "exit", "0", chdir: "/nonexistent") }
    assert_equal :chdir, error.step
    error = assert_raises(Procwright::SpawnError) { Procwright.run("/") }
    assert_kind_of Errno::EACCES, error
  end

  def test_what_cannot_be_used_is_told_before_anything_starts
    {
      { timeout: Float::NAN } => /timeout/, { timeout: "5" } => /timeout/, { until: :never } => /until/,
      { limit: -1 } => /limit/, { on_timeout: :ignore } => /on_timeout/, { bogus: 1 } => /bogus/,
      { stdin: "text" } => /input:/, { stdin: :null, input: "x" } => /both/, { stdout: :merged } => /stdout/,
      { stop: { signal: "NONE" } } => /NONE/, { stop: { scope: :world } } => /scope/, { pty: [0, 1] } => /pty/,
      { user: "nobody-of-this-name" } => /nobody-of-this-name/, { cancel: true } => /cancel/,
      { cwd: "/", chdir: "/" } => /same/, { on_event: 1 } => /on_event/, { extra_env: { "A" => 1 } } => /A/,
      { rlimits: { nothing: 1 } } => /nothing/
    }.each do |options, words|
      error = assert_raises(Procwright::InvalidValue, options.inspect) { Procwright.run(CHILD, "exit", "0", **options) }
      assert_match words, error.message
      assert_kind_of ArgumentError, error
    end
  end

  def test_a_line_is_not_taken_for_a_program
    error = assert_raises(Procwright::InvalidValue) { Procwright.run("ls -l 'a b'") }
    assert_includes error.message, 'run("ls", "-l", "a b")'
    assert_includes error.message, "shell: true"
    assert_equal "a b\n", Procwright.run("echo 'a b'", shell: true).stdout
    assert_equal "1\n", Procwright.run('echo "$1"', "0", 1, shell: true).stdout
  end

  def test_words_that_the_shell_would_drop
    %i[run spawn].each do |call|
      error = assert_raises(Procwright::InvalidValue) do
        Procwright.public_send(call, "echo", "-l", "a b", shell: true)
      end
      assert_includes error.message, %(#{call}("echo -l a\\\\ b", shell: true))
      assert_includes error.message, %(#{call}("echo", "-l", "a b"))
    end
    ['echo "$@"', "echo ${1}", "echo $*"].each do |line|
      assert_equal "word\n", Procwright.run(line, "sh", "word", shell: true).stdout
    end
  end

  def test_a_cancelled_cancel_starts_nothing
    cancel = Procwright::Cancel.new
    cancel.cancel
    Dir.mktmpdir do |dir|
      made = File.join(dir, "made")
      [{}, { stdin: [].each }, { on_line: ->(_line, _stream) {} }, { on_timeout: :return }].each do |options|
        error = assert_raises(Procwright::Cancelled) { Procwright.run("mkdir", made, cancel: cancel, **options) }
        assert_nil error.result
        assert_includes error.message, "was cancelled before it was started"
        refute_path_exists made
      end
    end
  end

  def test_a_callable_that_is_none_is_refused_at_the_call
    Dir.mktmpdir do |dir|
      made = File.join(dir, "made")
      { run: %i[on_line on_stdout_line on_stderr_line on_event], spawn: %i[on_event] }.each do |call, names|
        names.each do |name|
          [5, "puts", Object.new].each do |value|
            error = assert_raises(Procwright::InvalidValue) do
              Procwright.public_send(call, "mkdir", made, name => value)
            end
            assert_match(/\A#{name} is /, error.message)
            refute_path_exists made
          end
        end
      end
    end
  end

  # Makes every start with one more of what is missing each time, until it is there.
  STARTS = <<~'RUBY'
    require "stringio"
    what, directory, user = ARGV
    called = []
    starts = {
      "run" => ->(argv) { Procwright.run(*argv) },
      "run, lines" => ->(argv) { Procwright.run(*argv, on_line: ->(*line) { called << line }) },
      "run, stdin" => ->(argv) { Procwright.run(*argv, stdin: StringIO.new("")) },
      "run, tee" => ->(argv) { Procwright.run(*argv, tee: $stdout) },
      "run, tee of ours" => ->(argv) { Procwright.run(*argv, tee: true) },
      "run, descriptors" => ->(argv) { Procwright.run(*argv, fds: { 7 => $stdin }) },
      "run, dies with us" => ->(argv) { Procwright.run(*argv, die_with_parent: true) },
      "spawn" => ->(argv) { Procwright.spawn(*argv).wait },
      "spawn, stdin" => ->(argv) { Procwright.spawn(*argv, stdin: :pipe).wait }
    }
    starts.each_value { |start| start.call(["true"]) }
    if what == "NPROC"
      Process::Sys.setgid(Integer(user))
      Process::Sys.setresuid(*[Integer(user)] * 3)
    end
    soft, hard = Process.getrlimit(what.to_sym)
    starts.each do |name, start|
      (0..64).each do |more|
        raise "#{name} does not start" if more == 64

        GC.start
        sleep 0.001 while what == "NPROC" && Dir.children("/proc/self/task").size > 2
        now = what == "NPROC" ? Dir.children("/proc/self/task").size : File.open("/dev/null", &:fileno)
        made = File.join(directory, "#{name} #{more}")
        # Ruby keeps threads that have ended for the next ones.
        Process.setrlimit(what.to_sym, now, hard)
        kept = []
        begin
          loop { kept << Thread.new { sleep } } if what == "NPROC"
        rescue ThreadError
          nil
        end
        Process.setrlimit(what.to_sym, now + more, hard)
        error = begin
          start.call(["mkdir", made])
          nil
        rescue Procwright::SpawnError => e
          e
        ensure
          Process.setrlimit(what.to_sym, soft, hard)
          kept.each { |thread| thread.kill.join }
        end
        if error.nil?
          raise "#{name} did nothing" unless File.directory?(made)
          break
        end
        raise "#{name} was started: #{error.message}" if File.exist?(made)
        $stderr.puts [name, error.class.superclass.name, error.step, called.size].join("; ")
      end
    end
  RUBY

  def starts_in_want(what)
    Dir.mktmpdir do |dir|
      File.chmod(0o777, dir)
      result = ruby(STARTS, what, dir, (300_000 + Process.pid).to_s, stdin: :null)
      assert_predicate result.status, :success?, result.stderr
      result.stderr.lines(chomp: true).map { |line| line.split("; ") }
    end
  end

  def test_descriptors_are_missed_before_the_start
    refused = starts_in_want("NOFILE")
    assert_equal [%w[Errno::EMFILE 0]], refused.map { |_, error, _, called| [error, called] }.uniq
    steps = refused.map { |_, _, step, _| step }.uniq
    assert_empty steps - %w[pipe dup open clone]
    assert_includes refused.map(&:first), "run, lines"
  end

  def test_threads_are_missed_before_the_start
    skip "root is needed, to become a user whom nobody else is" unless Process.euid.zero?
    refused = starts_in_want("NPROC")
    assert_equal [%w[Errno::EAGAIN 0]], refused.map { |_, error, _, called| [error, called] }.uniq
    assert_equal %w[clone pthread_create], refused.map { |_, _, step, _| step }.uniq.sort
  end

  def test_a_program_whose_name_has_a_space
    Dir.mktmpdir do |directory|
      path = File.join(directory, "my program")
      File.symlink(CHILD, path)
      assert_equal 1, Procwright.run(path, "exit", "1").exitstatus
      assert_equal 64, Procwright.run([path, "exit", 64]).exitstatus
    end
  end

  def test_variables
    assert_equal "A=1\0", Procwright.run(CHILD, "env", env: { "A" => "1" }).stdout
    assert_equal "A=1\0", Procwright.run({ "A" => "1", "B" => nil }, CHILD, "env", env: { "B" => "2" }).stdout
    assert_includes Procwright.run({ "A" => "1" }, CHILD, "env").stdout, "A=1\0"
    ENV["PROCWRIGHT_SEEN"] = "yes"
    assert_includes Procwright.run(CHILD, "env").stdout, "PROCWRIGHT_SEEN=yes\0"
  ensure
    ENV.delete("PROCWRIGHT_SEEN")
  end

  def test_what_it_reads
    assert_equal "", Procwright.run(CHILD, "cat").stdout
    assert_equal "\0\xff".b, Procwright.run(CHILD, "cat", input: "\0\xff".b, binmode: true).stdout
    Tempfile.create("in") do |file|
      file.write("from a file")
      file.flush
      assert_equal "from a file", Procwright.run(CHILD, "cat", stdin: Pathname(file.path)).stdout
      file.rewind
      assert_equal "from a file", Procwright.run(CHILD, "cat", stdin: file).stdout
    end
    reader, writer = IO.pipe
    writer.write("from a pipe")
    writer.close
    assert_equal "from a pipe", Procwright.run(CHILD, "cat", stdin: reader.fileno).stdout
  ensure
    reader&.close
  end

  def test_what_it_reads_of_an_object_of_rubys
    assert_equal "text", Procwright.run(CHILD, "cat", stdin: StringIO.new("text")).stdout
    assert_equal "ab", Procwright.run(CHILD, "cat", stdin: %w[a b].each).stdout
    other = Procwright.spawn(CHILD, "flood", "--out", "3M", "--err", "0", "--chunk", "4096")
    assert_equal 3 << 20, Procwright.run(CHILD, "cat", stdin: other.stdout).stdout.bytesize
    assert_predicate other.wait, :success?
    endless = Enumerator.new { |to| loop { to << ("x" * 10_000) } }
    assert_predicate Procwright.run(CHILD, "exit", "0", stdin: endless), :success?
  end

  def test_what_it_reads_of_an_object_that_is_more_than_its_descriptor
    path = File.join(Dir.mktmpdir, "data.gz")
    Zlib::GzipWriter.open(path) { |file| file.write("b\na\n") }
    Zlib::GzipReader.open(path) { |file| assert_equal "b\na\n", Procwright.run(CHILD, "cat", stdin: file).stdout }
    Zlib::GzipReader.open(path) do |file|
      assert_equal "b\na\n", Procwright.pipeline([CHILD, "cat"], [CHILD, "cat"], stdin: file).stdout
    end
    Zlib::GzipReader.open(path) do |file|
      assert_raises(Procwright::InvalidValue) { Procwright.spawn(CHILD, "cat", stdin: file) }
    end
  ensure
    FileUtils.rm_rf(File.dirname(path))
  end

  def test_it_reads_on_where_ruby_was
    Tempfile.create do |file|
      file.write("1\n2\n3\n")
      file.rewind
      file.gets
      assert_equal "2\n3\n", Procwright.run(CHILD, "cat", stdin: file).stdout
      file.rewind
      file.gets
      child = Procwright.spawn(CHILD, "cat", stdin: file)
      assert_equal "2\n3\n", child.communicate.first
    end
    Tempfile.open do |file|
      file.write("1\n2\n")
      file.rewind
      file.gets
      assert_equal "2\n", Procwright.run(CHILD, "cat", stdin: file).stdout
    end
  end

  def test_what_changes_what_is_written_to_it_gets_it_by_tee
    path = File.join(Dir.mktmpdir, "data.gz")
    %i[stdout stderr].each do |name|
      Zlib::GzipWriter.open(path) do |file|
        [:run, :spawn, :pipeline].each do |call|
          argv = call == :pipeline ? [[CHILD, "no-such-role"]] : [CHILD, "no-such-role"]
          error = assert_raises(Procwright::InvalidValue) { Procwright.public_send(call, *argv, name => file) }
          assert_includes error.message, "pass tee: { #{name}: it }"
        end
        Procwright.run(CHILD, "says", name == :stdout ? "out:plain\\n" : "err:plain\\n", tee: { name => file })
      end
      assert_equal "plain\n", Zlib::GzipReader.open(path, &:read)
    end
  ensure
    FileUtils.rm_rf(File.dirname(path))
  end

  def test_what_its_source_raises_ends_the_run
    source = Enumerator.new do |to|
      to << "a"
      raise KeyError, "no more"
    end
    assert_raises(KeyError) { Procwright.run(marked, CHILD, "sleep-forever", stdin: source) }
    assert gone?
    refute_includes Thread.list.map(&:status), "aborting"
  end

  def test_where_it_writes
    Dir.mktmpdir do |directory|
      path = File.join(directory, "out")
      result = Procwright.run(CHILD, "echo", "one", stdout: path)
      assert_nil result.stdout
      assert_nil result.stdout_info
      Procwright.run(CHILD, "echo", "two", stdout: [path, "a"])
      File.open(path, "a") do |file|
        file.write("three\n")
        # Still in Ruby's buffer: it comes first all the same.
        Procwright.run(CHILD, "echo", "four", stdout: file)
      end
      assert_equal "one\ntwo\nthree\nfour\n", File.read(path)
      Procwright.run(CHILD, "echo", "five", stdout: Pathname(path))
      assert_equal "five\n", File.read(path)
    end
  end

  # Ruby's pipes do not block. A program that has one must not learn of it.
  def test_what_it_gets_blocks
    pipes = Array.new(3) { IO.pipe }
    ends = [pipes[0][0], pipes[1][1], pipes[2][1]]
    assert(ends.all? { |one| one.fcntl(Fcntl::F_GETFL) & File::NONBLOCK != 0 })
    given = { stdin: pipes[0][0], stdout: pipes[1][1], stderr: pipes[2][1] }
    given.each do |name, io|
      result = Procwright.run(CHILD, "show", name => io)
      text = name == :stdout ? pipes[1][0].readpartial(100_000) : result.stdout
      assert_match(/"nonblocking":\[\]/, text, name)
    end
    assert_match(/"nonblocking":\[\]/, Procwright.run(CHILD, "show", stdin: ["x"].each).stdout)
    Procwright.spawn(CHILD, "show", stdin: IO.pipe.first) { |child| assert_match(/"nonblocking":\[\]/, child.stdout.read) }
    pipes.flatten.each(&:close)
  end

  def test_descriptors_that_it_gets
    reader, writer = IO.pipe
    writer.write("through 7")
    writer.close
    assert_equal "through 7", Procwright.run("cat <&7", shell: true, fds: { 7 => reader }).stdout
  ensure
    reader.close
  end

  def test_both_streams_in_their_order
    # The program goes on when its line has been read.
    seen = Thread::Queue.new
    acks = Enumerator.new { |to| 2.times { seen.pop && to << "\n" } }
    result = Procwright.run(CHILD, "says", "out:a\\n", "ack", "err:b\\n", "ack", "out:c\\n", merged: true, stdin: acks,
                            on_line: ->(*) { seen << true })
    assert_equal [[:stdout, "a\n"], [:stderr, "b\n"], [:stdout, "c\n"]], result.merged
    assert_equal ["a\nc\n", "b\n"], [result.stdout, result.stderr]
    first = result.merged.first
    assert_equal [:stdout, "a\n", false], [first.stream, first.data, first.ambiguous?]
    times = result.merged.map(&:time)
    assert_equal times.sort, times
  end

  def test_pieces_under_a_limit_and_within_characters
    flood = "[[$stdout, 'é'], [$stderr, 'à']].map { |io, one| Thread.new { 100.times { io.write(one * 1001) } } }.each(&:join)"
    result = Procwright.run(RbConfig.ruby, "-e", flood, merged: true, limit: 1000, encoding: "UTF-8")
    { stdout: result.stdout, stderr: result.stderr }.each do |name, whole|
      pieces = result.merged.select { |piece| piece.stream == name }
      assert_equal whole, pieces.map(&:data).join
      assert_equal 1000, whole.bytesize
    end
    none = { dropped_at: nil, dropped_bytes: 0 }
    segments = "aé€🙂z".bytesize.times.map { [1, 1, false, 1.5] }
    segments.insert(3, [2, 1, true, 2.5], [2, 1, true, 3.5])
    raw = { stdout: "aé€🙂z".b, stderr: "é".b, stdout_info: none, stderr_info: none, merged: segments }
    pieces = Procwright::Piece.all(raw, Procwright.const_get(:Encodings).new("UTF-8"))
    assert_equal ["a", "é", "€", "🙂", "z"], pieces.filter_map { |stream, data| data if stream == :stdout }
    other = pieces.find { |stream, _data| stream == :stderr }
    assert_equal ["é", true, Time.at(3.5)], [other.data, other.ambiguous?, other.time]
  end

  def test_more_than_a_pipe_holds_on_both
    result = Procwright.run(CHILD, "flood", "--out", "20M", "--err", "20M", "--chunk", "4096")
    assert_equal [20 << 20, 20 << 20], [result.stdout.bytesize, result.stderr.bytesize]
    pattern = Array.new(65_521) { |j| (j * 31 + j / 256) % 256 }.pack("C*")
    complement = pattern.each_byte.map { |byte| 255 - byte }.pack("C*")
    assert result.stdout.b == (pattern * 400).byteslice(0, 20 << 20)
    assert result.stderr.b == (complement * 400).byteslice(0, 20 << 20)
  end

  def test_encodings
    bytes = "\xc3\xa9"
    read = ->(**options) { Procwright.run(CHILD, "cat", input: bytes.b, **options).stdout }
    assert_equal [Encoding.default_external, bytes.b], read.call.then { |it| [it.encoding, it.b] }
    assert_equal Encoding::BINARY, read.call(binmode: true).encoding
    assert_equal "\u00c3\u00a9", read.call(encoding: "ISO-8859-1:UTF-8")
    assert_equal Encoding::EUC_JP, read.call(encoding: Encoding::EUC_JP).encoding
    # What cannot be said in the other is replaced: nothing that was captured is lost by it.
    assert_equal "??", Procwright.run(CHILD, "cat", input: bytes.b, encoding: "UTF-8:US-ASCII")
                                 .stdout.then { |it| it * 2 }
    result = Procwright.run(CHILD, "invalid-utf8")
    refute_predicate result.stdout, :valid_encoding?
    assert_equal "\xe9".b, Procwright.run(CHILD, "cat", input: "é", encoding: "ISO-8859-1").stdout.b
  end

  def test_strings_are_rubys_own
    result = Procwright.run(CHILD, "flood", "--out", "1M", "--err", "100", "--chunk", "4096")
    [result.stdout, result.stderr].each do |string|
      copy = string.b.dup
      string << "more"
      assert_equal copy + "more".b, string.b
      string.prepend("x")
      part = string.byteslice(10, 60_000)
      string.clear
      GC.start
      assert_equal "x#{copy}more".b.byteslice(10, 60_000), part.b
    end
  end

  def test_a_capture_is_not_copied
    # The data, and what little Ruby and the core have beside it.
    lines = <<~RUBY
      size = 96 << 20
      before = File.read("/proc/self/status")[/VmHWM:\\s+(\\d+)/, 1].to_i
      result = Procwright.run(ENV["PROCWRIGHT_TEST_CHILD"], "flood", "--out", size.to_s, "--err", "0", "--chunk", "65536")
      abort unless result.stdout.bytesize == size
      print((File.read("/proc/self/status")[/VmHWM:\\s+(\\d+)/, 1].to_i - before) / 1024)
    RUBY
    more = ruby(lines).check!.stdout.to_i
    assert_operator more, :>=, 96
    assert_operator more, :<=, 96 + 32
  end

  def test_a_timeout_has_the_result
    with_time do |seconds|
      error = assert_raises(Procwright::TimeoutExpired) do
        Procwright.run("echo early; exec sleep 1000", shell: true, timeout: seconds)
      end
      assert_kind_of Timeout::Error, error
      assert_equal ["early\n", :timeout, 15], [error.result.stdout, error.result.reason, error.result.termsig]
      assert_operator error.result.duration, :>=, seconds
    end
    result = Procwright.run(CHILD, "sleep-forever", timeout: 0.01, on_timeout: :return)
    assert_predicate result, :timed_out?
    refute_predicate result, :success?
    assert_raises(Procwright::IdleTimeout) { Procwright.run(CHILD, "sleep-forever", idle_timeout: 0.01) }
  end

  def test_a_limit
    error = assert_raises(Procwright::OutputLimitExceeded) do
      Procwright.run(CHILD, "flood-forever", limit: Procwright::Limit.new(100_000, beyond: :fail))
    end
    assert_equal 100_000, error.result.stdout.bytesize
    result = Procwright.run(CHILD, "flood", "--out", "1M", "--err", "0", "--chunk", "4096", limit: 1000)
    assert_equal [1000, (1 << 20) - 1000, 500],
                 [result.stdout.bytesize, result.stdout_info.dropped_bytes, result.stdout_info.dropped_at]
  end

  def test_cancel_from_another_thread
    cancel = Procwright::Cancel.new
    running = thread { Procwright.run(marked, CHILD, "sleep-forever", cancel: cancel) }
    eventually { !gone? }
    cancel.cancel
    assert_kind_of Procwright::Cancelled, running.value
    assert_equal :cancelled, running.value.result.reason
    assert_predicate cancel, :cancelled?
    assert gone?
  end

  def test_an_event_names_who_holds_the_pipe
    events = []
    # It holds the pipe until it is told of.
    hook = lambda do |event|
      events << event
      event.holders.each { |holder| holder.process.kill if holder.name == "test-child" }
    end
    result = Procwright.run(CHILD, "fork-holder", "0", "--say", "own", on_event: hook)
    assert_equal "own\n", result.stdout
    assert_equal [:held], events.map(&:kind)
    assert_operator events[0].holders.size, :>=, 1
    assert_includes events[0].to_s, "held open"
    assert_includes events[0].to_s, "(until: :exit would not wait)"
  end

  def test_a_run_is_over_when_what_is_left_of_it_is_silent
    result = Procwright.run(CHILD, "fork-holder", "0", "--say", "own", until: "silent:0.3s")
    assert_equal "own\n", result.stdout
    assert_equal :finished, result.reason
    assert_operator result.duration, :>=, 0.3
    holder = result.stdout_info.held_by.first
    process = holder.process
    assert_equal Procwright::Process.new(holder.pid), process
    process.kill
    process.wait
    assert_raises(Procwright::NoSuchProcess) { holder.process }
    { "silent:x" => "silent: and a time", "silent:0s" => "a silence of no time", "silent" => '"silent:" and a time' }
      .each do |value, said|
        error = assert_raises(ArgumentError) { Procwright.run("true", until: value) }
        assert_includes error.message, said
      end
  end

  def test_a_holder_is_no_later_process_of_its_number
    holder = Procwright.run(CHILD, "fork-holder", "0", until: :exit).stdout_info.held_by.first
    start, inode = holder.instance_variable_get(:@identity)
    # One that had the number before, by its start where there are no inodes.
    [[start - 1, inode && (inode - 1)], [start - 1, nil]].each do |earlier|
      former = Procwright::Holder.seen(holder.pid, holder.name, earlier)
      error = assert_raises(Procwright::NoSuchProcess) { former.process }
      assert_equal holder.pid, error.pid
    end
    error = assert_raises(Procwright::NoSuchProcess) { Procwright::Holder.new(holder.pid, holder.name).process }
    assert_includes error.message, "later process of its number"
    assert_predicate holder.process, :alive?
  ensure
    holder&.process&.kill
  end

  def test_the_timeout_of_a_run_that_was_held_open_names_the_way_out
    with_time do |seconds|
      error = assert_raises(Procwright::TimeoutExpired) { Procwright.run(CHILD, "fork-holder", "0", timeout: seconds) }
      assert_includes error.message, "hint: the program had exited; until: :exit does not wait"
    end
    # Here it is not the others that the run waits for.
    error = assert_raises(Procwright::TimeoutExpired) { Procwright.run(CHILD, "sleep-forever", timeout: 0.3) }
    refute_includes error.message, "until:"
  end

  # Without a hook it goes to stderr, in the words of Ruby.
  def test_a_run_that_is_held_open_says_so
    lines = 'Procwright.run(ENV["PROCWRIGHT_TEST_CHILD"], "fork-holder", "0", timeout: Float(ARGV[0]), on_timeout: :return)'
    with_time do |seconds|
      said = ruby(lines, seconds.to_s).stderr
      assert_match(/\Aprocwright: .* held open by .* \(until: :exit would not wait\)\n\z/, said)
    end
  end

  def test_what_a_hook_raises_ends_the_run
    hook = ->(_event) { raise IndexError, "by the hook" }
    error = assert_raises(IndexError) { Procwright.run(CHILD, "fork-holder", "0", "--say", "own", on_event: hook) }
    assert_equal "by the hook", error.message
  end

  def test_other_threads_go_on
    turns = 0
    other = Thread.new { loop { turns += 1 and Thread.pass } }
    # One that had waited for the lock would have had none.
    eventually do
      before = turns
      Procwright.run(CHILD, "sleep", "300")
      turns > before + 10
    end
  ensure
    other&.kill&.join
  end

  def test_a_panic_is_no_fatal_error
    lines = <<~RUBY
      begin
        Procwright::Native.panic("on purpose")
      rescue => e
        puts e.class, e.message, e.is_a?(Procwright::Error)
      end
      puts Procwright.run("echo", "and on it goes").stdout
    RUBY
    result = ruby(lines).check!
    assert_match(/\AProcwright::InternalError\n.*on purpose\ntrue\nand on it goes\n\z/, result.stdout)
  end
end
