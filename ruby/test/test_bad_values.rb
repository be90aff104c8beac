# frozen_string_literal: true

require_relative "helper"
require "pathname"
require "socket"
require "stringio"
require "tmpdir"

# A bad value of any parameter of any public call is one error in one shape of words.
#
# The calls are those of the signatures in sig/, their parameters those of Method#parameters
# and of the tables of options: one without rows here fails.
class TestBadValues < Minitest::Test
  Q = Procwright::Queue
  SIG = File.join(ROOT, "ruby", "sig", "procwright.rbs")

  # What answers as a class of Ruby's does, and has its errors.
  AS_IN_RUBY = {
    "Procwright::Stream" => "an IO", "Procwright::Open3" => "the standard library's",
    "Procwright::Open3::Waiter" => "a Thread", "Procwright::Status" => "a Process::Status"
  }.freeze

  # Parameters that take any object: for its truth, or since pattern matching asks.
  ANYTHING = %i[
    new_session no_new_privs new_keyring detach liveness merged input_wanted binmode chomp non_block keys _keys ordered resume
    rerun_failed rerun_unknown sync
  ].freeze

  # A value of no type that anything takes.
  ODD = Object.new
  def ODD.inspect = "<odd>"

  # A bad value. `text` is how the error begins, if not with the parameter and the value.
  Row = Struct.new(:value, :text)

  def self.bad(*values) = values.map { |value| Row.new(value) }

  HUGE = 2**70
  LAST_ID = (2**32) - 1
  SECONDS = bad("x", "1", ODD, true, [1], Float::NAN, Complex(1, 1))
  CALLBACK = bad("x", 5, ODD, true)
  ACCOUNT = [*bad(1.5, true, ODD, [0], :root, -1, 2**32, HUGE), Row.new(LAST_ID, "%s is #{LAST_ID}, which"),
             Row.new("no such", "%s is \"no such\", which is not known")].freeze
  ENV = [
    *bad("x", 5, true, ODD, ["A=1"]), Row.new({ "A" => 1 }, '%s["A"] is 1: '), Row.new({ 5 => "x" }, "a name in %s is 5: "),
    Row.new({ A: :b }, "%s[:A] is :b: ")
  ].freeze
  SIGNAL = bad(1.5, true, ODD, nil, [1], "X", "SIG", :X, -1, 0, 65, HUGE, "\xff")
  STOP = [
    *bad(15, 5, 1.5, false, ODD, "X", :X, "", "KILL\0", "\xff", { "signal" => 1 }, { signals: 1 }, ["TERM"]),
    Row.new({ grace: "x" }, 'grace is "x": ')
  ].freeze
  DESCRIPTOR = bad("x", 1.5, ODD, true, nil, -1, HUGE)
  BYTES = bad("x", "", "1 XB", "64KB", "-1", "1e3", "1KiB\n1KiB", "9" * 30, "\xff", "1KiB".encode("UTF-16LE"), :"1KiB", 1.5, true, ODD, -1, HUGE)
  COUNT = bad("x", 1.5, true, nil, 0, -1, HUGE)
  WORD = bad(5, "no", :no, true, ODD)
  STRING = bad(5, :x, ODD, ["x"])
  PATH = [*bad(5, :x, ODD, ["x"]), Row.new("a\0b", "%s is #{"a\0b".inspect}, which contains")].freeze
  CODEC = bad(5, :utf_8, ODD, "no such", "a\0b", "", ":")
  FDS = [
    *bad("x", 5, ODD, nil), Row.new(["x", 1], 'fds[0] is "x": '), Row.new([0, -1], "fds[1] is -1: "),
    *[[], [0], [0, 0, 0]].map { |fds| Row.new(fds) }
  ].freeze
  PROCESS = [1.5, true, ODD, nil, [1], 0, -1, HUGE].freeze
  SINK = [
    *bad(1.5, ODD, true, [1], ["x", "r"], ["x"], [nil, "w"], %w[x w y], :no, -9, HUGE, StringIO.new),
    Row.new("a\0b", "%s is #{"a\0b".inspect}, which contains")
  ].freeze

  OK_CODES_OF_STAGES = [
    *bad("x", 5, ODD, [1]), Row.new({ 1 => [1] }, "a stage in ok_codes is 1: "), Row.new({ "x" => [1] }, 'a stage in ok_codes is "x": '),
    Row.new({ 0 => 1 }, "ok_codes[0] is 1: "), Row.new({ 0 => [0, 256] }, "ok_codes[0][1] is 256: "), Row.new({ 0 => nil }, "ok_codes[0] is nil: ")
  ].freeze

  # Bad values by the names of parameters, or by call and parameter, which goes first.
  ROWS = {
    argv: [
      Row.new([], "argv is [], which is empty"), Row.new([nil], "argv[0] is nil: "), Row.new(["a", nil], "argv[1] is nil: "),
      Row.new(["a", ODD], "argv[1] is <odd>: "), Row.new(["a", ["b"]], 'argv[1] is ["b"]: '),
      Row.new(["a", "b\0"], "argv[1] is #{"b\0".inspect}, which contains")
    ],
    shell: [*bad(5, 1.5, ODD, "", [1], :sh), *bad("a\0b")],
    env: ENV, extra_env: ENV,
    cwd: PATH, chdir: PATH,
    user: ACCOUNT, group: ACCOUNT,
    extra_groups: [
      *bad("x", 5, ODD, { 1 => 2 }), Row.new([-1], "extra_groups[0] is -1: "), Row.new([0, 1.5], "extra_groups[1] is 1.5: "),
      Row.new([nil], "extra_groups[0] is nil: "), Row.new(["\xff"], "extra_groups[0] is \"\\xFF\": "), Row.new([0, LAST_ID], "extra_groups")
    ],
    umask: bad("x", 1.5, true, ODD, -1, 0o1000, HUGE),
    rlimits: [
      *bad("x", 5, ODD, [:nofile, 1]), *[[1], [], [1, 2, 3], "x", 1.5, nil, -2, HUGE, [1, nil]].map { |value|
        Row.new({ nofile: value }, "rlimits[:nofile] is #{value.inspect}: ")
      }, Row.new({ 5 => 1 }, "a name in rlimits is 5: "), Row.new({ "\xff" => 1 }, "a name in rlimits is \"\\xFF\": "), Row.new({ x: 1 }, "rlimits is"), Row.new({ core: [2, 1] }, "rlimits is")
    ],
    nice: bad("x", 1.5, true, ODD, HUGE),
    process_group: bad("x", 1.5, false, ODD, -1, HUGE), pgroup: bad("x", 1.5, false, ODD, -1, HUGE),
    pty: bad("x", 5, ODD, [1], [0, 1], [1, 1 << 16], [1, "x"], [1.5, 2], [1, 2, 3]),
    die_with_parent: bad(1.5, ODD, [], "X", :X, -1, 0, 65, HUGE),
    **%i[blocked_signals ignored_signals default_signals].to_h { |name|
      rows = [
        *bad("TERM", 5, ODD, { a: 1 }), Row.new(["X"], '%s[0] is "X": '), Row.new([1.5], "%s[0] is 1.5: "),
        Row.new(["INT", 65], "%s[1] is 65: "), Row.new([nil], "%s[0] is nil: ")
      ]
      rows << Row.new(["STOP"], '%s is ["STOP"], which has SIGSTOP, which no') unless name == :default_signals
      [name, rows]
    },
    cpu_affinity: [
      *bad("0-3", 0, ODD), Row.new([true], "cpu_affinity[0] is true: "), Row.new([0, -1], "cpu_affinity[1] is -1: "),
      Row.new([HUGE], "cpu_affinity[0] is #{HUGE}: "), Row.new([], "cpu_affinity is [], which is empty: "),
      Row.new([8192], "cpu_affinity is [8192], which has 8192, and no kernel")
    ],
    **{
      ionice: ["x", "", :no, "best-effort:8", "idle:1", "IDLE"], sched_policy: ["x", "", :fifo, "rr:0", "fifo:100", "deadline"]
    }.to_h { |name, words|
      [name, bad(5, ODD, true, "\xff", "idle".encode("UTF-16LE"), ["fifo", 5]) +
        words.map { |word| Row.new(word, "%s is #{word.inspect}, which is not known: ") }]
    },
    oom_score_adj: [
      *bad("x", 1.5, true, ODD, HUGE), Row.new(1001, "oom_score_adj is 1001, which is out of range: "),
      Row.new(-1001, "oom_score_adj is -1001, which is out of range: ")
    ],
    cgroup: PATH, chroot: PATH,
    fds: [
      *bad("x", 5, ODD), Row.new([nil], "fds[0] is nil: "), Row.new([-1], "fds[0] is -1: "), Row.new({ 5 => "x" }, 'fds[5] is "x": '),
      Row.new({ "x" => 1 }, 'a number in fds is "x": '), Row.new({ -1 => 1 }, "a number in fds is -1: "),
      Row.new({ HUGE => 1 }, "a number in fds is #{HUGE}: ")
    ],
    "Procwright::Queue::Invitation.new:fds": FDS, "Procwright::LivenessInvitation.new:fds": FDS,
    stop: STOP,
    stdin: [*bad("text", 1.5, ODD, true, :no, -9, HUGE)],
    input: [*STRING],
    stdout: [*SINK, *bad(:merged)], stderr: SINK,
    encoding: CODEC, external_encoding: [*CODEC, *bad("utf-8:utf-16le")], internal_encoding: CODEC,
    on_event: CALLBACK + bad(false), on_line: CALLBACK + bad(false), on_stdout_line: CALLBACK, on_stderr_line: CALLBACK,
    timeout: SECONDS, idle_timeout: SECONDS, explain_after: SECONDS, stall_after: SECONDS, wait: SECONDS,
    until: WORD + bad(nil, "\xff"), on_timeout: WORD + bad(nil), too_long: WORD + bad(nil),
    limit: BYTES,
    keep_full: PATH,
    cancel: bad(5, "x", true, ODD), tee: bad(1.5, -1, ODD, :no, :stderr),
    max_length: bad("x", 1.5, true, ODD, 0, -1, HUGE),
    overflow: WORD + bad(nil), channel: WORD,
    "Procwright::Stop.new:signal": SIGNAL, signal: SIGNAL,
    # The signal without its keyword.
    named: SIGNAL.map { |row| Row.new(row.value, "signal is #{row.value.inspect}: ") },
    grace: SECONDS, scope: WORD + bad(nil, "\xff"),
    bytes: BYTES + bad(nil), beyond: WORD + bad(nil),
    policy: WORD + bad(nil), memory: BYTES + bad(nil), disk: BYTES,
    which: [*PROCESS.map { |value| Row.new(value, "process is #{value.inspect}: ") }, Row.new("x", "process")],
    peer: PROCESS.map { |value| Row.new(value, "process is #{value.inspect}: ") },
    pidfd: DESCRIPTOR,
    things: [
      *["x", 1.5, ODD, nil, true].map { |value| Row.new([value], "a member of things is #{value.inspect}: ") },
      Row.new([-1], "process is -1: "), Row.new(HUGE, "process is #{HUGE}: ")
    ],
    mode: bad("no", :no, true, ODD, nil, 0, -1, 1.5), event: WORD + bad(nil),
    pattern: bad(5, nil, :x, ODD), stream: WORD,
    rows: bad("x", 1.5, true, nil, 0, -1, 1 << 16), columns: bad("x", 1.5, true, nil, 0, -1, 1 << 16),
    holder: WORD + bad(nil),
    ticket: STRING + bad(nil),
    socket: bad("x", 5, ODD, nil, true),
    lanes: COUNT + bad(4097), most: COUNT,
    first: BYTES, keep: BYTES + bad(nil), "Procwright::Queue::Receiver:limit": BYTES + bad(nil), "Procwright::Queue::Receiver#sender:limit": BYTES,
    name: [*STRING, *bad(nil), Row.new("a/b", 'name is "a/b", which is no name')],
    invitation: bad(5, nil, "x", ODD),
    message: STRING + bad(nil),
    messages: [*bad("x", 5, nil, ODD), Row.new(["x", 5], "messages[1] is 5: "), Row.new([nil], "messages[0] is nil: ")],
    commands: bad("x", 5, nil, ODD, { argv: ["x"] }),
    parallel: bad("x", 1.5, true, 0, -1, 100_001, HUGE), ahead: bad("x", 1.5, true, -1, HUGE),
    stop_after_failures: bad("x", 1.5, true, 0, -1, HUGE), deadline: SECONDS,
    journal: [*bad(5, :x, ODD, ["x"]), Row.new("a\0b", "%s is #{"a\0b".inspect}, which contains")],
    path: [*bad(5, :x, ODD, ["x"], nil), Row.new("a\0b", "%s is #{"a\0b".inspect}, which contains")],
    joblog: PATH,
    # A command of a map is fed by nobody.
    stages: [
      Row.new([], "stages is []: "), Row.new([nil], "stage 1: argv[0] is nil: "), Row.new([["x", ODD]], "stage 1: argv[1] is <odd>: "),
      Row.new([[]], "stage 1: argv is [], which is empty: "), Row.new([{ argv: 5, nice: "x" }], 'stage 1: nice is "x": '),
      Row.new([{ nice: 5 }], "stage 1: it is #{{ nice: 5 }}, which has no argv: "),
      Row.new([["x", "a\0b"]], "stage 1: argv[1] is #{"a\0b".inspect}, which contains")
    ],
    programs: [
      Row.new([], "Fan.new has no program"), Row.new([nil], "programs[0]: argv[0] is nil: "),
      Row.new([["x", ODD]], "programs[0]: argv[1] is <odd>: "), Row.new([{ nice: 5 }], "programs[0]: it is #{{ nice: 5 }}, which has no argv: "),
      Row.new([["x"], Procwright::Fan.new(["x"])], "programs[1] is #<Procwright::Fan "), Row.new([:x.to_proc], "programs[0] is #<Proc")
    ],
    success: WORD + bad(nil),
    ok_codes: [*bad("x", 5, ODD, { 0 => [1] }), Row.new([256], "ok_codes[0] is 256: "), Row.new([1, nil], "ok_codes[1] is nil: ")],
    **%w[pipeline pipeline! spawn_pipeline].to_h { |name| [:"Procwright.#{name}:ok_codes", OK_CODES_OF_STAGES] },
    elastic: [
      *bad("x", 5, ODD, nil, :spill), Row.new({ 0 => true }, "a stage in elastic is 0: "), Row.new({ "x" => true }, 'a stage in elastic is "x": ')
    ],
    "Procwright.map:stdin": bad("text", 1.5, ODD, true, :no, -9, HUGE),
    # That of `overflow=`.
    "Procwright::Queue::Sender#overflow=:overflow": WORD + bad(nil)
  }.freeze

  Call = Struct.new(:owner, :method, :class_method) do
    def to_s = "#{owner.name}#{class_method ? '.' : '#'}#{method}"

    # The parameters by their names, as pairs of kind and name; options by theirs.
    def parameters
      table = { run: :RUN, run!: :RUN, spawn: :SPAWN, map: :MAP, pipeline: :PIPELINE, pipeline!: :PIPELINE,
                spawn_pipeline: :SPAWN_PIPELINE }[method] if owner == Procwright
      if table
        first = { MAP: [:req, :commands], PIPELINE: [:stages, :stages], SPAWN_PIPELINE: [:stages, :stages] }.fetch(table, [:argv, :argv])
        return [first, *Procwright.const_get(:Options).const_get(table).keys.map { |name| [:key, name] }]
      end

      return [[:stages, :programs]] if owner == Procwright::Fan && class_method

      target = if !class_method then owner.instance_method(method)
               elsif method == :new && owner.method(:new).owner == Class then owner.instance_method(:initialize)
               else owner.method(method)
               end
      target.parameters.reject { |kind, _| kind == :block }
    end
  end

  # Every public call that the signatures name.
  CALLS = begin
    found = []
    nesting = []
    File.foreach(SIG) do |line|
      case line
      when /^\s*(?:module|class|interface)\s+(\w+)/ then nesting << $1
      when /^\s*end\s*$/ then nesting.pop
      when /^\s*def (self\??\.)?([^\s:]+(?:=|\?|!)?):/
        at, name = $1, $2.to_sym
        owner = nesting.join("::")
        next if owner.include?("::_") || AS_IN_RUBY.key?(owner)

        owner = Object.const_get(owner)
        next if owner.is_a?(Class) && (owner < Struct || owner < Exception)

        name == :initialize ? found << Call.new(owner, :new, true) : found << Call.new(owner, name, !at.nil?)
      end
    end
    found
  end

  def keys(call, name) = [:"#{call}:#{name}", :"#{call.owner.name}:#{name}", name]
  def rows_of(call, name) = ROWS[keys(call, name).find { |key| ROWS.key?(key) }]

  def test_every_parameter_is_here
    missing = []
    names = []
    CALLS.each do |call|
      call.parameters.each do |kind, name|
        names << name
        refute_includes %i[rest keyrest nokey], kind, "#{call} takes what no table names"
        missing << "#{call}: #{name}" unless ANYTHING.include?(name) || rows_of(call, name)
      end
    end
    assert_empty missing
    assert_empty ROWS.keys.map { |key| key[/[^:]+\z/].to_sym } - names, "rows of no parameter"
    %w[Procwright.run Procwright.spawn Procwright::Queue::Sender#send Procwright::Stop.new].each do |one|
      assert_includes CALLS.map(&:to_s), one
    end
  end

  CALLS.each do |call|
    define_method(:"test_bad_values_of_#{call}") do
      call.parameters.each do |_, name|
        next if ANYTHING.include?(name)

        (rows_of(call, name) || []).each { |row| check(call, name, row) }
      end
    end
  end

  # Values that most parameters refuse.
  KINDS = {
    "of no type" => -> { ODD },
    "NaN" => -> { Float::NAN },
    "huge" => -> { HUGE },
    "NUL" => -> { "a\0b" },
    "broken UTF-8" => -> { "\xff" },
    "UTF-16" => -> { "x".encode("UTF-16LE") },
    "closed file" => -> { File.open(IO::NULL).tap(&:close) },
    "closed socket" => -> { UNIXSocket.pair.each(&:close).first },
    "closed memory" => -> { StringIO.new("data").tap(&:close) }
  }.freeze

  # Parameters, by call or alone, that take values of these kinds, or tell of them in other words.
  PATHS = %i[shell cwd chdir cgroup chroot keep_full tee path joblog journal].freeze
  # They are of bytes: whatever those are, they may be the name of a program or a file.
  BYTES_OF_ANY_KIND = [*PATHS, :stdout, :stderr, :argv, :stages, :programs, :input, :message].freeze
  TAKES = {
    # 2**70 seconds are a time, and so many more than there are is all.
    "huge" => [*ROWS.filter_map { |name, rows| name if rows.equal?(SECONDS) }, :mode, :argv, :stages, :programs],
    "NUL" => %i[programs message pattern name input ticket which peer],
    "broken UTF-8" => [*BYTES_OF_ANY_KIND],
    "UTF-16" => [*BYTES_OF_ANY_KIND, :pattern],
    "NaN" => %i[argv stages programs],
    # A File has its path when it is closed, too.
    "closed file" => [*PATHS, :argv, :stages, :programs]
  }.freeze

  # What a value is called that stands for something else.
  PARTS = ["process", "a member of things", "argv[0]", "stage 1: argv[0]", "programs[0]: argv[0]", "signal"].freeze

  # For parameters that are new as well: which one takes such a value is said above.
  CALLS.each do |call|
    define_method(:"test_kinds_of_values_of_#{call}") do
      call.parameters.each do |_, name|
        next if ANYTHING.include?(name)

        KINDS.each do |kind, make|
          next if keys(call, name).any? { |key| TAKES.fetch(kind, []).include?(key) }

          value = make.call
          error = refusal(call, name, value)
          said = [name, *PARTS].map { |one| "#{one} is #{value.inspect}" }
          where = "#{call}(#{name}:), #{kind}"
          assert_instance_of Procwright::InvalidValue, error, "#{where}: #{error.inspect}"
          assert said.any? { |one| error.message.start_with?(one) }, "#{where}: #{error.message}"
        end
      end
    end
  end

  def test_a_refused_run_has_read_nothing_and_written_nothing
    { until: :no, tee: 1.5, cancel: 5, on_event: 5, on_line: 5, max_length: 0, user: -1, limit: -1 }.each do |name, value|
      source = StringIO.new("data")
      assert_instance_of Procwright::InvalidValue, raised { Procwright.run("cat", stdin: source, name => value) }
      assert_equal 0, source.pos, name
    end
  end

  def test_a_keyword_of_others_says_what_to_type
    {
      order: "stderr: :merged has the exact order", out: "use stdout: with the same", stdin_data: "use input:", capture_output: "both outputs come to you",
      exception: "use run!, which raises CommandFailed", rlimit_nofile: "use rlimits: { nofile: ... }",
      timout: "did you mean timeout?", overflow: "spawn has it", qqq: "it has "
    }.each do |name, hint|
      error = assert_raises(Procwright::InvalidValue) { Procwright.run("x", name => 5) }
      assert_operator error.message, :start_with?, "#{name} is 5, and run has no such keyword: #{hint}"
    end
    { on_line: "go through the lines", err: "use stderr:" }.each do |name, hint|
      error = assert_raises(Procwright::InvalidValue) { Procwright.spawn("x", name => 5) }
      assert_operator error.message, :start_with?, "#{name} is 5, and spawn has no such keyword: #{hint}"
    end
  end

  def test_a_number_where_text_goes_is_told_as_text
    error = assert_raises(Procwright::InvalidValue) { Procwright.run("x", env: { N: 1 }) }
    assert_equal 'env[:N] is 1: every value is a String, here "1"', error.message
    error = assert_raises(Procwright::InvalidValue) { Procwright.run({ "N" => 1.5 }, "x") }
    assert_equal 'extra_env["N"] is 1.5: every value is a String, or nil to remove it, here "1.5"', error.message
  end

  def test_a_signal_alone_is_a_stop
    ["INT", :USR1, "SIGQUIT"].each do |stop|
      name = "SIG#{stop.to_s.delete_prefix('SIG')}"
      result = Procwright.run("sleep", "60", timeout: 0, stop: stop, on_timeout: :return)
      assert_equal name, result.status.signal_name
      one = Procwright.spawn("sleep", "60")
      one.stop(stop)
      assert_equal name, one.status.signal_name
      assert_equal name, Procwright::Stop.new(stop).signal
      assert_equal Procwright::Stop.new(signal: stop, grace: 2), Procwright::Stop.new(stop, grace: 2)
    end
    assert_equal Procwright::Stop.new(grace: Float::INFINITY), Procwright::Stop.new(grace: nil)
    # Signal 5, or five seconds?
    error = assert_raises(Procwright::InvalidValue) { Procwright.run("x", stop: 5) }
    assert_operator error.message, :start_with?, "stop is 5: a number may be a signal or seconds; pass"
    error = assert_raises(Procwright::InvalidValue) { Procwright::Stop.new("INT", signal: "KILL") }
    assert_equal 'signal is "KILL", and "INT" as well: pass it once', error.message
  end

  def test_bytes_with_a_unit
    { "64KiB" => 65_536, "1K" => 1024, "2m" => 2 << 20, "1 mib" => 1 << 20, "1.5KiB" => 1536, "10" => 10 }.each do |text, number|
      assert_equal number, Procwright::Limit.new(text).bytes
      assert_equal number, Procwright::Overflow.new(memory: text).memory
    end
    assert_equal 1024, Procwright.run("seq", "30000", limit: "1KiB").stdout_info.kept_bytes
    receiver = keep(Q::Receiver.new(limit: "1MiB", first: "4KiB", keep: "1MiB"))
    sender = keep(receiver.sender(limit: "64KiB"))
    assert_raises(Q::TooLarge) { sender.send("x" * (1 << 20)) }
  end

  def test_a_long_value_is_shown_in_part
    ["x" * (10**6), ["x" * (10**6)], "\u00e4" * (10**6)].each do |value|
      error = assert_raises(Procwright::InvalidValue) { Procwright::Stop.new(signal: value) }
      assert_operator error.message.size, :<, 500
    end
  end

  def test_a_value_that_cannot_be_shown_is_named
    value = Class.new { def inspect = raise("no") }.new
    error = assert_raises(Procwright::InvalidValue) { Procwright.run("x", timeout: value) }
    assert_match(/\Atimeout is an object of #<Class:0x\h+>: /, error.message)
  end

  def teardown
    @open&.reverse_each { |one| one.respond_to?(:close) ? one.close : one.wait }
    FileUtils.rm_r(@directory) if @directory
    super
  end

  private

  def check(call, name, row)
    begins = row.text ? row.text.gsub("%s", name.to_s) : "#{name} is #{row.value.inspect}: "
    where = "#{call}(#{name}: #{row.value.inspect[0, 60]})"
    error = refusal(call, name, row.value)
    assert_instance_of Procwright::InvalidValue, error, "#{where}: #{error.inspect}"
    assert_operator error.message, :start_with?, begins, where
    # What would do stands behind.
    assert_match(/: [^ :]+ [^ ]/, error.message[[begins.size - 2, 0].max..], where)
    assert_kind_of Procwright::Error, error
  end

  def keep(one)
    (@open ||= []) << one
    one
  end

  # It ends by itself: no call that takes a bad value waits for ever.
  def child(**options) = keep(Procwright.spawn(CHILD, "exit", "0", stdin: :pipe, **options))
  def queue = @queue ||= keep(Q::Receiver.new)

  # The object whose method is called.
  def receiver_of(call)
    return call.owner if call.class_method

    @owners ||= {}
    @owners[call.owner] ||= case call.owner.name.delete_prefix("Procwright::")
                            when "Child" then child
                            when "PipelineChild" then keep(Procwright.spawn_pipeline([CHILD, "exit", "0"], stdin: :pipe))
                            when "Map" then keep(Procwright.map([]))
                            when "Merged" then child(merged: true).merged
                            when "Process" then Procwright::Process.new($$)
                            when "LivenessMonitor" then Procwright::LivenessMonitor.new($$)
                            when "LivenessInvitation" then (@token = Procwright::LivenessToken.new).invite
                            when "Queue::Receiver" then queue
                            when "Queue::Sender" then keep(queue.sender)
                            when "Queue::Invitation" then keep(queue.invite)
                            else flunk "no object of #{call.owner} to call"
                            end
  end

  # Good values of the parameters that have to be given.
  def value(name)
    case name
    when :bytes, :most then 5
    when :rows then 24
    when :columns then 80
    when :fds then [0, 1]
    when :ticket, :message, :name, :pattern then "x"
    when :messages, :things then []
    when :commands then [["touch", mark_file]]
    when :path then File.join(directory, "journal")
    when :invitation then keep(queue.invite)
    else flunk "no value of #{name}"
    end
  end

  # What the call raises for a bad value of this parameter. Nothing was started, and nothing is
  # left.
  def refusal(call, name, bad)
    start_what_stays
    # Each look at what is open reads all of it. What other tests have left may be 2,500 descriptors,
    # of which the collector does not know.
    GC.start if fds > 300
    receiver = receiver_of(call)
    arguments, keywords = arguments_of(call, name, bad)
    # The kernel's list leaves some out while others end: who is in neither came later.
    before = ours | ours
    made = nil
    error = raised do
      made = receiver.public_send(call.method, *arguments, **keywords)
      # What the core refuses of a command is told with its result.
      made.each { |ended| raise ended.error if ended.error } if made.is_a?(Procwright::Map)
    end
    if error.nil?
      # Never got here with a bad value: what was started is ended.
      keep(made) if made.respond_to?(:close) || made.respond_to?(:pids) || made.is_a?(Procwright::Child)
      return
    end

    assert_empty((ours - before).select { |kind, _| kind == :process }, "#{call}(#{name}:)")
    refute_path_exists mark_file, "#{call}(#{name}:)"
    # A map takes a command before the core refuses it: what it has is collected some time.
    # Threads of before may end meanwhile. Else the watchdog comes.
    eventually { (ours - before).empty? || (GC.start; false) } unless call.method == :map && call.owner == Procwright
    error
  end

  # What the first use leaves for the next.
  def start_what_stays
    @@stays ||= begin
      Procwright.run(CHILD, "exit", "0")
      Procwright.map([[CHILD, "exit", "0"]]).to_a
      Procwright.spawn(CHILD, "exit", "0", &:communicate)
      Procwright::LivenessToken.hold(&:invite)
    end
  end

  # The children, threads and open descriptors of this process.
  def ours
    tasks = Dir.children("/proc/self/task")
    children = tasks.flat_map do |task|
      File.read("/proc/self/task/#{task}/children").split
    rescue Errno::ENOENT, Errno::ESRCH
      [] # it has ended
    end
    descriptors = Dir.children("/proc/self/fd").filter_map do |number|
      [:descriptor, number, File.readlink("/proc/self/fd/#{number}")]
    rescue Errno::ENOENT
      nil # that of the listing
    end
    [*tasks.map { |task| [:thread, task] }, *children.map { |child| [:process, child] }, *descriptors]
  end

  # The file that a program makes which is started.
  def mark_file = File.join(directory, "mark")
  def directory = @directory ||= Dir.mktmpdir

  # Positional arguments and keywords: the bad value, and good ones where some have to be.
  def arguments_of(call, name, bad)
    arguments = []
    keywords = {}
    call.parameters.each do |kind, one|
      case kind
      when :stages then arguments.concat(one == name ? (bad.is_a?(Array) ? bad : [bad]) : [["touch", mark_file]])
      when :argv then arguments.concat(one == name && bad.is_a?(Array) ? bad : one == name ? [bad] : ["touch", mark_file])
      when :req then arguments << (one == name ? bad : value(one))
      when :opt
        # Those before it are wanted as well.
        arguments << bad if one == name
      when :key, :keyreq then keywords[one] = bad if one == name
      end
    end
    keywords[:limit] = 5 if name == :keep_full && call.to_s != "Procwright.spawn"
    [arguments, keywords]
  end
end
