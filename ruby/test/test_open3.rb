# frozen_string_literal: true

require_relative "helper"
require "open3"
require "stringio"
require "tmpdir"

# The same calls against the standard library's Open3 and ours, and what comes of them
# compared: values, encodings, statuses, exceptions.
class TestOpen3 < Minitest::Test
  C = CHILD

  # What is compared of what a call gives.
  def self.seen(value)
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

  CAPTURES = {
    "one string" => ->(o) { o.capture3("echo a  b") },
    "one string for a shell" => ->(o) { o.capture3("echo out; echo err >&2; exit 3") },
    "one word" => ->(o) { o.capture3("true") },
    "no program" => ->(o) { o.capture2(nil) },
    "a number for a program" => ->(o) { o.capture3(5) },
    "no argument" => ->(o) { o.capture2e("echo", nil) },
    "all words in a list" => ->(o) { o.capture2(%w[echo a b]) },
    "an empty list" => ->(o) { o.capture2([]) },
    "whether streams are in step" => ->(o) { o.popen3("cat") { |*streams, _| streams.map(&:sync) } },
    "what the thread knows" => ->(o) { o.popen3("true") { |*, thread| [thread.key?(:pid), thread.key?(:x), thread.keys] } },
    "a builtin of the shell" => ->(o) { o.capture3("exit 7") },
    "a variable before the command" => ->(o) { o.capture3("A=1 printenv A") },
    "what only some shells have built in" => ->(o) { o.capture3("umask 22") },
    "a glob" => ->(o) { o.capture3("echo /etc/host*name") },
    "blanks around it" => ->(o) { o.capture3("  echo  a ") },
    "words" => ->(o) { o.capture3(C, "echo", "a  b") },
    "words that a shell would read" => ->(o) { o.capture3("echo", "*", "$HOME", ";") },
    "a program and its name" => ->(o) { o.capture3([C, C], "echo", "x") },
    "variables" => ->(o) { o.capture3({ "A" => "x" }, "echo $A") },
    "variables that are removed" => ->(o) { o.capture3({ "HOME" => nil }, "echo ${HOME-none}") },
    "variables alone" => ->(o) { o.capture3({ "A" => "1", "PATH" => ENV["PATH"] }, C, "env", unsetenv_others: true) },
    "variables and words" => ->(o) { o.capture3({ "A" => "b" }, "printenv", "A") },
    "stdin_data" => ->(o) { o.capture3("cat", stdin_data: "in") },
    "much stdin_data" => ->(o) { o.capture3("cat", stdin_data: "x" * 1_000_000) },
    "stdin_data that nobody reads" => ->(o) { o.capture3("exit 0", stdin_data: "x" * 1_000_000) },
    "stdin_data of an object" => ->(o) { o.capture3("cat", stdin_data: StringIO.new("from an object")) },
    "stdin_data of a file" => ->(o) { File.open(__FILE__) { |f| f.gets && o.capture3("cat", stdin_data: f) } },
    "no stdin_data" => ->(o) { o.capture3("cat") },
    "binmode" => ->(o) { o.capture3("cat", stdin_data: "\xff\0é", binmode: true) },
    "bytes that are no text" => ->(o) { o.capture3(C, "invalid-utf8") },
    "chdir" => ->(o) { o.capture3("pwd", chdir: "/") },
    "umask" => ->(o) { o.capture3("umask;", umask: 0o027) },
    "rlimit" => ->(o) { o.capture3("ulimit -n;", rlimit_nofile: 64) },
    "rlimit, soft and hard" => ->(o) { o.capture3("ulimit -Sn; ulimit -Hn", rlimit_nofile: [50, 60]) },
    "pgroup" => ->(o) { o.capture3("test $(ps -o pgid= -p $$) = $$ && echo leads", pgroup: true) },
    "no pgroup" => ->(o) { o.capture3("echo x", pgroup: nil) },
    "close_others" => ->(o) { o.capture3("echo x", close_others: true) },
    "more than a pipe holds on both" => ->(o) { o.capture3(C, "flood", "--out", "300K", "--err", "300K") },
    "a signal" => ->(o) { o.capture3(C, "signal-self", "TERM") },
    "a kill of the shell" => ->(o) { o.capture3("kill -9 $$") },
    "a file for another number" => ->(o) { o.capture3("cat <&5", 5 => ["/etc/hostname"]) },
    "an IO for another number" => ->(o) { File.open("/etc/hostname") { |f| o.capture3("cat <&6", 6 => f) } },
    "a file to write for another number" => lambda { |o|
      Dir.mktmpdir { |d| [o.capture3("echo x >&5", 5 => ["#{d}/f", "w"]), File.read("#{d}/f")] }
    },
    "stderr where stdout goes" => ->(o) { o.capture2("echo a; echo b >&2", err: [:child, :out]) },
    "stderr to a file" => ->(o) { Dir.mktmpdir { |d| [o.capture2("echo b >&2", err: "#{d}/f"), File.read("#{d}/f")] } },
    "stderr added to a file" => lambda { |o|
      Dir.mktmpdir { |d| [(File.write("#{d}/f", "a"); o.capture2("echo b >&2", err: ["#{d}/f", "a"])), File.read("#{d}/f")] }
    },
    "stderr nowhere" => ->(o) { o.capture2("echo b >&2", err: File::NULL) },
    "stderr to an IO" => lambda { |o|
      r, w = IO.pipe
      [o.capture2("echo b >&2", 2 => w), w.close, r.read]
    },
    "capture2" => ->(o) { o.capture2("cat", stdin_data: "x") },
    "capture2, binary" => ->(o) { o.capture2("cat", stdin_data: "x", binmode: true) },
    "capture2e" => ->(o) { o.capture2e("echo a; echo b >&2; echo c; exit 2") },
    "capture2e, stdin_data" => ->(o) { o.capture2e("cat >&2", stdin_data: "x") },
    "nobody of that name" => ->(o) { o.capture3("no-such-program-anywhere", "x") },
    "nobody of that path" => ->(o) { o.capture3("/no/such/program") },
    "nothing" => ->(o) { o.capture3("") },
    "what cannot be run" => ->(o) { o.capture3("/etc/hostname", "x") },
    "no such directory" => ->(o) { o.capture3("true", chdir: "/no/such/directory") },
    "a NUL" => ->(o) { o.capture3("echo", "a\0b") },
    "an unknown option" => ->(o) { o.capture3("true", no_such_option: 1) },
    "no command" => ->(o) { o.capture3 },
    "popen3" => lambda { |o|
      o.popen3("cat; echo e >&2") { |i, out, e, t| [i.write("x"), i.close, out.read, e.read, t.value, t.pid.class] }
    },
    "popen3, its ends" => ->(o) { o.popen3("true").tap { |ends| ends.last.join } },
    "popen3, they are closed" => ->(o) { (ends = nil) || o.popen3("cat") { |*all| ends = all } && ends[0, 3].map(&:closed?) },
    "popen3, the waiter" => lambda { |o|
      o.popen3("cat") { |i, _, _, t| [t.alive?, t.join(0.01), i.close, t.join.equal?(t), t.alive?, t.status, t[:pid] == t.pid] }
    },
    "popen3, words and options" => ->(o) { o.popen3({ "A" => "1" }, "pwd; echo $A", chdir: "/") { |_, out, _, _| out.readlines } },
    "popen3, a signal" => ->(o) { o.popen3(C, "sleep-forever") { |_, _, _, t| Process.kill(:TERM, t.pid) && t.value } },
    "popen2" => ->(o) { o.popen2("tr a b") { |i, out, t| [i.puts("aaa"), i.close, out.gets, t.value] } },
    "popen2e" => ->(o) { o.popen2e("echo a; echo b >&2; cat") { |i, out, t| [i.print("c"), i.close, out.read, t.value] } },
    "popen2, what its block gives" => ->(o) { o.popen2("true") { 42 } },
    "popen2, what its block raises" => ->(o) { o.popen2("cat") { raise IOError, "by the block" } },
    "popen3, gets until the end" => ->(o) { o.popen3("echo a; echo b") { |_, out, _, _| [out.gets, out.gets, out.gets, out.eof?] } },
    "popen3, EPIPE" => ->(o) { o.popen3("exec true") { |i, _, _, t| t.join && i.write("x" * 100_000) } },
    "popen3, nobody of that name" => ->(o) { o.popen3("no-such-program-anywhere") }
  }.freeze

  def outcome(library, call)
    outcome_of { self.class.seen(call.call(library)) }
  end

  CAPTURES.each do |name, call|
    define_method("test_as_the_standard_library: #{name}") do
      assert_equal outcome(::Open3, call).inspect, outcome(Procwright::Open3, call).inspect
    end
  end

  def test_there_are_sixty_of_them = assert_operator(CAPTURES.size, :>=, 60)

  def test_what_its_threads_cannot_do_is_told_in_one_line
    Procwright::Open3.popen3("cat") do |*, thread|
      { kill: "Process.kill", wakeup: "there is no thread", success?: "use value.success?" }.each do |name, hint|
        error = assert_raises(NoMethodError) { thread.public_send(name) }
        assert_includes error.message, hint
        # Ruby would show a line of the library's code below it.
        assert_equal 1, error.message.lines.size
        assert_equal __FILE__, error.backtrace.first[/\A[^:]+/]
      end
      assert_raises(NoMethodError) { thread.surprise }
    end
  end

  # What the guide tells as differences.
  def test_differences
    assert_raises(Procwright::InvalidValue) { Procwright::Open3.capture3(%w[true other-name]) }
    assert_raises(Procwright::InvalidValue) { Procwright::Open3.capture2("true", err: :close) }
    status = Procwright::Open3.capture3("true").last
    refute_kind_of Process::Status, status
    Procwright::Open3.popen3("true") { |_, out, _, _| refute_respond_to out, :to_io }
    Procwright::Open3.popen3("echo x", overflow: :block) { |_, out, _, _| assert_equal "x\n", out.to_io.gets }
  end

  def test_what_deadlocks_there_does_not_here
    # stderr fills while stdout is read to its end; and nobody reads at all.
    Procwright::Open3.popen3(CHILD, "flood", "--out", "1M", "--err", "1M") do |_, out, err, waiter|
      assert_equal [1 << 20, 1 << 20], [out.read.bytesize, err.read.bytesize]
      assert_predicate waiter.value, :success?
    end
    Procwright::Open3.popen3(CHILD, "flood", "--out", "1M", "--err", "1M") { |*, waiter| assert waiter.value.success? }
  end

  def test_what_is_new
    with_time do |seconds|
      error = assert_raises(Timeout::Error) { Procwright::Open3.capture3("echo early; exec sleep 100", timeout: seconds) }
      assert_equal "early\n", error.result.stdout
    end
    out, = Procwright::Open3.capture2(CHILD, "fork-holder", "0", "--print-ready", "--say", "own", until: :exit)
    assert_match(/\Aready (\d+)\nown\n\z/, out)
    Process.kill(:KILL, Integer(out[/\d+/]))
    assert_equal 10, Procwright::Open3.capture3(CHILD, "echo", "x" * 100, limit: 10).first.bytesize
    assert_raises(ArgumentError) { Procwright::Open3.popen3("true", timeout: 1) }
    assert_raises(ArgumentError) { Procwright::Open3.popen3("true", stdin_data: "x") }
  end
end
