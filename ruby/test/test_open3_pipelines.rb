# frozen_string_literal: true

require_relative "helper"
require "open3"
require "tmpdir"

# The pipelines of the standard library's Open3 and of ours, called alike, and what comes of them
# compared: values, encodings, statuses, files, exceptions.
class TestOpen3Pipelines < Minitest::Test
  C = CHILD

  # What a call is made with: a library, and a folder of its own.
  Beside = Struct.new(:library, :folder) do
    def out = "#{folder}/out"
    def read(name = "out") = File.read("#{folder}/#{name}")

    # A pipeline that writes to a file: the statuses, and what the file has.
    def pipeline(*cmds, **options)
      [library.pipeline(*cmds, { out: out, **options }), read]
    end

    def file(name, text)
      "#{folder}/#{name}".tap { |path| File.write(path, text) }
    end

    def script(text) = file("script", text).tap { |path| File.chmod(0o755, path) }
  end

  CALLS = {
    # pipeline
    "two strings" => ->(o) { o.pipeline("echo b a", "tr ' ' '\\n'") },
    "one command" => ->(o) { o.pipeline("echo alone") },
    "three" => ->(o) { o.pipeline("printf 'b\\na\\n'", "sort", "head -1") },
    "ten" => ->(o) { o.pipeline("echo x", *(["cat"] * 9)) },
    "words" => ->(o) { o.pipeline(["echo", "*", "$HOME"], ["cat"]) },
    "a program and its name" => ->(o) { o.pipeline([%w[echo echo], "a"], [%w[cat cat]]) },
    "variables" => ->(o) { o.pipeline([{ "A" => "x" }, "echo $A"], [{ "A" => "y" }, "sh", "-c", "cat; echo $A"]) },
    "variables that are removed" => ->(o) { o.pipeline([{ "HOME" => nil }, "echo ${HOME-none}"], "cat") },
    "options of a command" => ->(o) { o.pipeline(["pwd", { chdir: "/" }], ["cat; pwd", { chdir: "/usr" }]) },
    "options of all" => ->(o) { o.pipeline("pwd", "cat; pwd", chdir: "/") },
    "options of a command over those of all" => ->(o) { o.pipeline(["pwd", { chdir: "/usr" }], "cat; pwd", chdir: "/") },
    "variables alone" => ->(o) { o.pipeline([{ "A" => "1", "PATH" => ENV["PATH"] }, C, "env", { unsetenv_others: true }], "cat") },
    "umask and rlimits" => ->(o) { o.pipeline("umask; ulimit -n", "cat", umask: 0o027, rlimit_nofile: 64) },
    "a group of its own" => ->(o) { o.pipeline(["test $(ps -o pgid= -p $$) = $$ && echo leads", { pgroup: true }], "cat") },
    "codes" => ->(o) { o.pipeline("exit 3", "cat; exit 4", "cat") },
    "false first" => ->(o) { o.pipeline("false", "cat") },
    "a reader that has enough" => ->(o) { o.pipeline("yes", "head -1") },
    "a signal" => ->(o) { o.pipeline([C, "signal-self", "TERM"], "cat") },
    "one in the middle is killed" => ->(o) { o.pipeline("echo x", "read x; kill -9 $$", "cat") },
    "a reader that does not read" => ->(o) { o.pipeline("exec 2>&-; yes", "exit 5") },
    "in of all" => ->(o) { o.pipeline("cat", "tr a b", in: o.file("in", "aaa")) },
    "in of the first over that of all" => ->(o) { o.pipeline(["cat", { in: o.file("own", "own") }], "cat", in: o.file("in", "all")) },
    "in of another than the first" => ->(o) { o.pipeline("echo first", ["cat", { in: o.file("in", "x") }]) },
    "in of nothing" => ->(o) { o.pipeline("cat", "wc -c", in: File::NULL) },
    "in of an IO" => ->(o) { File.open(o.file("in", "io")) { |file| o.pipeline("cat", "cat", in: file) } },
    "out of the last over that of all" => lambda { |o|
      [o.library.pipeline("echo x", ["cat", { out: "#{o.folder}/own" }], out: o.out), o.read("own"), File.exist?(o.out)]
    },
    "out of another than the last" => ->(o) { [o.pipeline(["echo x", { out: "#{o.folder}/no" }], "cat"), File.exist?("#{o.folder}/no")] },
    "out added to a file" => ->(o) { [o.library.pipeline("echo x", "cat", out: [o.file("out", "a"), "a"]), o.read] },
    "err of each to where out goes" => ->(o) { o.pipeline("echo a; echo b >&2", "cat; echo c >&2", err: [:child, :out]) },
    "err of one to a file" => ->(o) { [o.pipeline(["echo b >&2", { err: "#{o.folder}/err" }], "cat"), o.read("err")] },
    "err of each added to a file" => ->(o) { [o.pipeline("echo b >&2", "cat; echo c >&2", err: ["#{o.folder}/err", "a"]), o.read("err")] },
    "err nowhere" => ->(o) { o.pipeline("echo b >&2", "cat", err: File::NULL) },
    "a file for another number" => ->(o) { o.pipeline(["cat <&5", { 5 => [o.file("five", "5")] }], "cat") },
    "a script without its program" => ->(o) { o.pipeline([o.script("echo script $1"), "a"], "cat") },
    "much" => ->(o) { o.pipeline("head -c 300000 /dev/zero", "tr '\\0' x", "wc -c") },
    # pipeline_r, pipeline_w, pipeline_rw, pipeline_start
    "r" => ->(o) { o.library.pipeline_r("echo a", "tr a b") { |out, waiters| [out.read, waiters.map(&:value)] } },
    "r, without a block" => lambda { |o|
      out, waiters = o.library.pipeline_r("yes", "head -3")
      [out.readlines, out.close, waiters.map(&:value)]
    },
    "r, in of all" => ->(o) { o.library.pipeline_r("cat", "cat", in: o.file("in", "x")) { |out, _| out.gets } },
    "r, its encoding" => ->(o) { o.library.pipeline_r("echo é", "cat") { |out, _| [out.external_encoding, out.gets] } },
    "r, options of all" => ->(o) { o.library.pipeline_r("pwd", "cat; pwd", chdir: "/") { |out, _| out.read } },
    "r, what its block gives" => ->(o) { o.library.pipeline_r("true", "cat") { 42 } },
    "r, what its block raises" => ->(o) { o.library.pipeline_r("true", "cat") { raise IOError, "by the block" } },
    "rw, what is closed after its block" => ->(o) { o.library.pipeline_rw("cat", "cat") { |*ends| ends.first(2) }.map(&:closed?) },
    "w" => lambda { |o|
      done = o.library.pipeline_w("tr a b", "cat", out: o.out) { |into, waiters| [into.puts("aaa"), into.close, waiters.map(&:value)] }
      [done, o.read]
    },
    "w, its end is the end of the block" => ->(o) { [o.library.pipeline_w("cat", "sort", out: o.out) { |into, _| into.write("b\na\n") }, o.read] },
    "w, without a block" => lambda { |o|
      into, waiters = o.library.pipeline_w("cat", "cat", out: o.out)
      [into << "x" && nil, into.close, waiters.map(&:value), o.read]
    },
    "w, EPIPE" => ->(o) { o.library.pipeline_w("exec true", "cat") { |into, waiters| waiters.first.join && into.write("x" * 100_000) } },
    "rw" => lambda { |o|
      o.library.pipeline_rw("tr a b", "tr b c") { |into, out, waiters| [into.write("aaa"), into.close, out.read, waiters.map(&:value)] }
    },
    "rw, one line and its answer" => lambda { |o|
      echo = [C, "cat"]
      o.library.pipeline_rw(echo, echo) { |into, out, _| [into.puts("x"), out.gets, into.puts("y"), out.gets, into.close, out.gets] }
    },
    "rw, without a block" => ->(o) { o.library.pipeline_rw("cat", "cat").then { |into, out, ts| [into.close, out.read, out.close, ts.map(&:value)] } },
    "start" => ->(o) { [o.library.pipeline_start("echo x", "cat", out: o.out) { |waiters| waiters.map(&:value) }, o.read] },
    "start, without a block" => ->(o) { [o.library.pipeline_start("echo x", "cat; exit 3", "cat", out: o.out).map(&:value), o.read] },
    "start, the waiters" => lambda { |o|
      reader, writer = IO.pipe
      waiters = o.library.pipeline_start("cat", "cat", in: reader, out: o.out)
      reader.close
      alive = waiters.map { |waiter| [waiter.alive?, waiter.join(0.01), waiter[:pid] == waiter.pid] }
      writer.close
      [alive, waiters.map { |waiter| [waiter.join.equal?(waiter), waiter.alive?, waiter.status] }]
    },
    # What is refused
    "nobody of that name" => ->(o) { o.pipeline("cat", ["no-such-program-anywhere", "x"], in: File::NULL) },
    "r, nobody of that name" => ->(o) { o.library.pipeline_r("cat", "no-such-program-anywhere", in: File::NULL) },
    "no such directory" => ->(o) { o.pipeline(["true", { chdir: "/no/such/directory" }]) },
    "what cannot be run" => ->(o) { o.pipeline([o.file("plain", "x"), "a"]) },
    "no such file to read" => ->(o) { o.pipeline("cat", in: "/no/such/file") },
    "no commands" => ->(o) { o.library.pipeline },
    "options and no commands" => ->(o) { o.library.pipeline_r({ chdir: "/" }) },
    "an unknown option" => ->(o) { o.pipeline("true", "true", no_such_option: 1) },
    "a NUL" => ->(o) { o.pipeline(["echo", "a\0b"], "cat") }
  }.freeze

  def seen(value)
    case value
    when Array then value.map { |one| seen(one) }
    when String then [value, value.encoding]
    when Process::Status, Procwright::Status
      %i[exitstatus termsig success? exited? signaled? to_i].map { |name| value.public_send(name) }
    when Procwright::Stream, IO then :stream
    when Process::Waiter, Procwright::Open3::Waiter then :waiter
    else value
    end
  end

  def outcome(library, call)
    outcome_of { Dir.mktmpdir { |folder| seen(call.call(Beside.new(library, folder))) } }
  end

  CALLS.each do |name, call|
    define_method("test_as_the_standard_library: #{name}") do
      assert_equal outcome(::Open3, call).inspect, outcome(Procwright::Open3, call).inspect
    end
  end

  def test_there_are_forty_of_them = assert_operator(CALLS.size, :>=, 40)

  # What the guide tells as differences.

  def test_nothing_is_started_if_one_cannot_be
    Dir.mktmpdir do |folder|
      touch = ["touch", "#{folder}/made"]
      %i[pipeline pipeline_r pipeline_w pipeline_rw pipeline_start].each do |name|
        error = assert_raises(Errno::ENOENT) { Procwright::Open3.public_send(name, touch, ["no-such-program-anywhere", "x"]) }
        assert_kind_of Procwright::SpawnError, error
        assert_empty Dir.children(folder), name
      end
    end
  end

  def test_a_reader_that_was_started_takes_no_end_for_that_of_its_input
    Dir.mktmpdir do |folder|
      commits = ["cat > /dev/null; touch #{folder}/committed"]
      refused = ["true", { chdir: "/no/such/directory" }]
      20.times { assert_raises(Errno::ENOENT) { Procwright::Open3.pipeline_start(refused, commits) } }
      assert_empty Dir.children(folder)
    end
  end

  def test_statuses_streams_and_waiters
    Procwright::Open3.pipeline("true", "true").each { |status| assert_kind_of Procwright::Status, status }
    Procwright::Open3.pipeline_r("echo x", "cat") do |out, waiters|
      assert_kind_of Procwright::Stream, out
      refute_respond_to out, :to_io
      waiters.each { |waiter| assert_kind_of Procwright::Open3::Waiter, waiter }
    end
    Procwright::Open3.pipeline_r("echo x", "cat", overflow: :block) { |out, _| assert_equal "x\n", out.to_io.gets }
  end

  def test_a_place_for_what_is_a_stream
    assert_raises(ArgumentError) { Procwright::Open3.pipeline_r("true", ["cat", { out: File::NULL }]) }
    assert_raises(ArgumentError) { Procwright::Open3.pipeline_w(["cat", { in: File::NULL }], "cat") }
  end

  def test_limits
    error = assert_raises(Timeout::Error) { Procwright::Open3.pipeline([C, "sleep-forever"], [C, "cat"], timeout: 0.2) }
    assert_equal %i[failed collateral], error.result.stages.map(&:judgement)
    statuses = Procwright::Open3.pipeline([C, "sleep-forever"], timeout: 0.2, on_timeout: :return, stop: "KILL")
    assert_equal [9], statuses.map(&:termsig)
    assert_raises(ArgumentError) { Procwright::Open3.pipeline_start("true", timeout: 1) }
    assert_raises(ArgumentError) { Procwright::Open3.pipeline(["true", { timeout: 1 }]) }
  end

  def test_the_arrays_of_the_caller_stay_as_they_are
    command = ["pwd", { chdir: "/" }]
    2.times { Procwright::Open3.pipeline_r(command, "cat") { |out, _| assert_equal "/\n", out.read } }
    assert_equal ["pwd", { chdir: "/" }], command
  end

  # Whoever has the stream keeps all of the chain.
  def test_a_stream_keeps_the_commands_before_it
    out = Procwright::Open3.pipeline_r([C, "cat"], [C, "cat"], in: (reader, writer = IO.pipe).first).first
    reader.close
    5.times { GC.start }
    writer.write("still there\n")
    writer.close
    assert_equal "still there\n", out.read
  end

  def test_nobody_reads_and_it_ends
    Procwright::Open3.pipeline_r([C, "flood", "--out", "1M"], [C, "cat"]) do |_, waiters|
      assert_equal [0, 0], waiters.map { |waiter| waiter.value.exitstatus }
    end
  end

  def test_nothing_is_left
    run = -> { Procwright::Open3.pipeline_rw("cat", "cat") { |into, out, _| into << "x"; into.close; out.read } }
    run.call
    before = fds
    20.times { run.call }
    20.times { raised { Procwright::Open3.pipeline_r("cat", "no-such-program-anywhere") } }
    # Descriptors of other tests may go meanwhile; the stack may seem to have some of these still.
    eventually { fds <= before + 10 || (GC.start; false) }
  end
end
