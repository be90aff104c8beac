# frozen_string_literal: true

require_relative "helper"
require "pathname"
require "stringio"
require "tmpdir"

# Copies of a child's output: `tee` and `keep_full` of `spawn`, and the places of `tee`.
class TestSpawnTee < Minitest::Test
  class Boom < StandardError; end

  BOTH = ["sh", "-c", "echo out; echo err >&2"].freeze

  # What takes nothing before its gate opens.
  Stuck = Struct.new(:gate) do
    def write(_text) = gate.pop
  end

  def lines(text) = text.lines.sort

  def test_on_our_own
    result = ruby(<<~RUBY)
      child = Procwright.spawn("sh", "-c", "echo a; echo b >&2", tee: true)
      child.wait
      # A wait is for the copy, too: this comes behind it.
      $stdout.puts("end")
      $stdout.flush
      p child.communicate
      Procwright.spawn("sh", "-c", "echo c; echo d >&2", tee: { stderr: true }).wait
    RUBY
    assert_equal ["a\nend\n[\"a\\n\", \"b\\n\"]\n", "b\nd\n"], [result.stdout, result.stderr]
  end

  def test_what_writes
    copy = StringIO.new
    child = Procwright.spawn(*BOTH, tee: copy)
    assert_equal %W[out\n err\n], child.communicate
    assert_equal %W[err\n out\n], lines(copy.string)
    out = StringIO.new
    err = StringIO.new
    Procwright.spawn(*BOTH, tee: { stdout: out, stderr: err }, merged: true) { nil }
    assert_equal %W[out\n err\n], [out.string, err.string]
    flood = StringIO.new
    child = Procwright.spawn(CHILD, "flood", "--out", "1M", tee: flood, overflow: :drop_oldest)
    child.wait
    assert_equal 1 << 20, flood.string.bytesize
  end

  def test_paths_and_descriptors
    Dir.mktmpdir do |folder|
      path = File.join(folder, "copy")
      %i[run spawn].each do |start|
        done = lambda do |**options|
          started = Procwright.public_send(start, *BOTH, **options)
          start == :run ? started : started.result
        end
        File.write(path, "of before")
        assert_raises(Procwright::SpawnError) { Procwright.public_send(start, "/no/such/program", tee: path) }
        assert_equal "of before", File.read(path)
        [path, Pathname(path)].each do |name|
          result = done.call(tee: name)
          assert_equal %W[out\n err\n], [result.stdout, result.stderr]
          assert_equal %W[err\n out\n], lines(File.read(path))
        end
        done.call(tee: { stderr: path, stdout: nil })
        assert_equal "err\n", File.read(path)
        File.open(path, "w") { |file| done.call(tee: file.fileno) }
        assert_equal %W[err\n out\n], lines(File.read(path))
        File.open(path, "w") { |file| done.call(tee: file) }
        assert_equal %W[err\n out\n], lines(File.read(path))
        error = assert_raises(Procwright::SpawnError) { Procwright.public_send(start, "true", tee: File.join(folder, "no", "such")) }
        assert_includes error.message, "it is to get a copy of the output: name a file"
        assert_raises(Errno::ENOSPC) { done.call(tee: "/dev/full") }
      end
    end
  end

  def test_what_cannot_be_copied_is_refused
    {
      { tee: :stderr } => "tee is :stderr: pass { stderr: true } for that stream alone",
      { tee: "stderr" } => "tee is \"stderr\": pass { stderr: true }",
      { tee: { out: true } } => "a stream in tee is :out: it is :stdout or :stderr",
      { tee: true, stdout: :null, stderr: :null } => "tee is true: it needs stdout or stderr captured",
      { tee: { stderr: true }, stderr: :null } => "tee[:stderr] is true: it needs stderr captured",
      { tee: { stderr: true }, pty: true } => "tee[:stderr] is true: it needs stderr captured",
      { tee: 1.5 } => "tee is 1.5: pass true for our own",
      { tee: "a\0b" } => "tee is \"a\\u0000b\", which contains a NUL byte"
    }.each do |options, text|
      %i[run spawn].each do |start|
        error = assert_raises(Procwright::InvalidValue) { Procwright.public_send(start, "true", **options) }
        assert error.message.start_with?(text), error.message
      end
    end
    error = assert_raises(Procwright::InvalidValue) { Procwright.spawn("true", tee: true, overflow: :block) }
    assert_includes error.message, "tee is true: it needs output to be read ahead"
    error = assert_raises(Procwright::InvalidValue) { Procwright.spawn("true", keep_full: "/x", overflow: :block) }
    assert_includes error.message, "keep_full is \"/x\", which needs the streams to be read ahead"
  end

  def test_keep_full
    Dir.mktmpdir do |folder|
      path = File.join(folder, "full")
      child = Procwright.spawn(*BOTH, keep_full: path)
      child.wait
      assert_equal %W[out\n err\n], [File.read(path), File.read("#{path}.stderr")]
      assert_equal path, child.result.stdout_info.kept_at
    end
  end

  def test_what_it_raises_is_raised_once
    %i[wait communicate result].each do |way|
      broken = Object.new
      broken.define_singleton_method(:write) { |_| raise Boom, "no room" }
      child = nil
      _, told = capture_io do
        child = Procwright.spawn(CHILD, "flood", "--out", "1M", tee: broken)
        error = assert_raises(Boom) { child.public_send(way) }
        assert_equal "no room", error.message
        # On the thread that has called it: the call may come first.
        eventually { $stderr.string.include?("it gets no more\n") }
      end
      assert_includes told, "has raised TestSpawnTee::Boom: no room; it gets no more"
      assert_equal 1 << 20, child.communicate.first.bytesize
      assert_equal 0, child.wait.exitstatus
    end
  end

  def test_what_is_stuck_holds_up_no_timeout
    gate = Queue.new
    with_time do |seconds|
      child = Procwright.spawn(CHILD, "flood-forever", tee: Stuck.new(gate), timeout: seconds, stop: "KILL", stall_after: nil)
      error = assert_raises(Procwright::TimeoutExpired) { child.result }
      info = error.result.stdout_info
      assert_operator info.undelivered_bytes, :>, 0
      assert_equal info.bytes, error.result.stdout.bytesize
    end
  ensure
    gate.close
  end

  def test_the_end_of_stderr_is_in_the_text_of_every_wait
    child = Procwright.spawn("sh", "-c", "echo said >&2; echo ready; sleep 60", stop: "KILL")
    child.wait_for(/ready/, stream: :stdout)
    error = nil
    loop do
      error = assert_raises(Procwright::WaitTimeout) { child.wait(timeout: 0.1) }
      break if error.message.include?("the end of stderr")
    end
    assert_includes error.message, "\n  the end of stderr:\n    said"
    child.stop
    with_time do |seconds|
      limited = Procwright.spawn("sh", "-c", "echo said >&2; sleep 60", stop: "KILL", timeout: seconds)
      error = assert_raises(Procwright::TimeoutExpired) { limited.wait }
      assert_includes error.message, "the end of stderr:\n    said"
    end
  end

  def test_what_ends_with_us_is_refused_with_detach
    { timeout: 5, idle_timeout: 5, limit: 5, keep_full: "x", until: :exit, cancel: Procwright::Cancel.new, tee: true }.each do |name, value|
      error = assert_raises(Procwright::InvalidValue) do
        Procwright.spawn("true", detach: true, stdout: :null, stderr: :null, name => value)
      end
      assert_match(/\A#{name} is .*(by us|of us|to us)/, error.message)
    end
  end
end
