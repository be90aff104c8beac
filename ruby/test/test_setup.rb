# frozen_string_literal: true

require_relative "helper"
require "json"
require "tmpdir"

# The set-up of a program's process is seen in the program.
class TestSetup < Minitest::Test
  def shown(**options) = JSON.parse(Procwright.run!(CHILD, "show", **options).stdout)

  def number(name) = Signal.list.fetch(name)

  def test_each_is_seen
    last = shown["cpus"].last
    seen = shown(
      blocked_signals: ["USR1", :TERM], ignored_signals: ["SIGWINCH"], default_signals: [number("HUP")],
      cpu_affinity: [last], sched_policy: :batch, ionice: "best-effort:7", oom_score_adj: 1000, no_new_privs: true
    )
    assert_equal [number("USR1"), number("TERM")], seen["sig_blocked"]
    assert_includes seen["sig_ignored"], number("WINCH")
    assert_equal [last], seen["cpus"]
    assert_equal [3, (2 << 13) | 7, 1000, 1], seen.values_at("sched_policy", "ioprio", "oom_score_adj", "no_new_privs")
    assert_empty shown["sig_blocked"]
  end

  def test_a_signal_ignored_here_has_its_default_there
    before = trap("USR2", "IGNORE")
    assert_includes shown["sig_ignored"], number("USR2")
    refute_includes shown(default_signals: %w[USR2])["sig_ignored"], number("USR2")
  ensure
    trap("USR2", before || "DEFAULT")
  end

  def test_spawn_takes_them
    child = Procwright.spawn(CHILD, "show", blocked_signals: [:INT], ionice: :idle)
    seen = JSON.parse(child.stdout.read)
    child.wait
    assert_equal [[number("INT")], 3 << 13], seen.values_at("sig_blocked", "ioprio")
  end

  def test_a_keyring
    theirs = shown(new_keyring: true)["session_keyring"]
    refute_nil theirs
    refute_equal shown["session_keyring"], theirs
  rescue Procwright::SpawnError => e
    assert_equal :"keyctl(KEYCTL_JOIN_SESSION_KEYRING)", e.step
    skip "there are no keyrings, or they are forbidden"
  end

  def test_a_cgroup
    mount = File.readlines("/proc/self/mounts").map(&:split).find { |_, where, kind| kind == "cgroup2" && File.writable?(where) }
    skip "no cgroup can be made" unless mount
    own = File.join(mount[1], "procwright-ruby-#{$$}")
    Dir.mkdir(own)
    lines = shown(cgroup: own)["cgroups"]
    assert(lines.any? { |line| line.end_with?("/#{File.basename(own)}") }, lines.inspect)
  ensure
    Dir.rmdir(own) if own
  end

  def test_what_is_refused_is_named_and_nothing_is_started
    Dir.mktmpdir do |directory|
      mark = File.join(directory, "mark")
      [
        [{ cpu_affinity: [0, 8191] }, "sched_setaffinity", "cpu_affinity: one of them"],
        [{ cgroup: "/usr" }, "cgroup.procs", "cgroup: name a directory"],
        [{ chroot: "/nonexistent/root" }, "chroot", "chroot: "]
      ].each do |options, step, hint|
        %i[run spawn].each do |function|
          error = assert_raises(Procwright::SpawnError) { Procwright.public_send(function, "touch", mark, **options) }
          assert_equal step.to_sym, error.step
          assert_includes error.message, hint
        end
      end
      refute_path_exists mark
    end
  end
end
