"""The set-up of a program's process is seen in the program, by run, spawn and map."""

import json
import os
import pathlib
import signal

import pytest

import procwright
from procwright._setup import SETUP


def shown(child, **options):
    return json.loads(procwright.run([child, "show"], check=True, **options).stdout)


def plain(child):
    return shown(child)


def test_each_is_seen(child):
    last = max(os.sched_getaffinity(0))
    seen = shown(
        child,
        blocked_signals=["USR1", signal.SIGTERM],
        ignored_signals=("SIGWINCH",),
        default_signals=[signal.SIGHUP],
        cpu_affinity={last},
        sched_policy="batch",
        ionice="best-effort:7",
        oom_score_adj=1000,
        no_new_privs=True,
    )
    assert seen["sig_blocked"] == [signal.SIGUSR1, signal.SIGTERM]
    assert signal.SIGWINCH in seen["sig_ignored"]
    assert seen["cpus"] == [last]
    assert (seen["sched_policy"], seen["ioprio"]) == (3, 2 << 13 | 7)
    assert (seen["oom_score_adj"], seen["no_new_privs"]) == (1000, 1)
    assert plain(child)["sig_blocked"] == []


def test_a_signal_ignored_here_has_its_default_there(child):
    before = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        assert signal.SIGUSR2 in plain(child)["sig_ignored"]
        there = shown(child, default_signals=["USR2"])
        assert signal.SIGUSR2 not in there["sig_ignored"]
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_spawn_and_map_take_them(child):
    with procwright.spawn([child, "show"], blocked_signals=["INT"], nice=1) as held:
        assert json.loads(held.stdout.read())["sig_blocked"] == [signal.SIGINT]
    commands = [[child, "show"], {"args": [child, "show"], "ionice": "idle"}]
    with procwright.map(commands, no_new_privs=True, ordered=True) as ended:
        seen = [json.loads(one.result.stdout) for one in ended]
    assert [one["no_new_privs"] for one in seen] == [1, 1]
    assert seen[1]["ioprio"] == 3 << 13


def test_a_keyring(child):
    try:
        theirs = shown(child, new_keyring=True)["session_keyring"]
    except procwright.SpawnError as error:
        if error.step != "keyctl(KEYCTL_JOIN_SESSION_KEYRING)":
            raise
        pytest.skip("there are no keyrings, or they are forbidden")
    assert theirs not in (None, plain(child)["session_keyring"])


def cgroup2():
    """A directory in which a cgroup can be made, or None."""
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split(" ")
        if kind == "cgroup2" and os.access(where, os.W_OK):
            return pathlib.Path(where)
    return None


def test_a_cgroup(child):
    where = cgroup2()
    if where is None:
        pytest.skip("no cgroup can be made")
    own = where / f"procwright-python-{os.getpid()}"
    own.mkdir()
    try:
        for options in ({}, {"user": os.geteuid()}, {"die_with_parent": True}):
            cgroups = shown(child, cgroup=own, **options)["cgroups"]
            assert any(line.endswith("/" + own.name) for line in cgroups), cgroups
    finally:
        own.rmdir()


@pytest.mark.parametrize(
    ("options", "step", "hint"),
    [
        ({"cpu_affinity": [0, 8191]}, "sched_setaffinity", "cpu_affinity: one of them"),
        ({"cgroup": "/usr"}, "cgroup.procs", "cgroup: name a directory of a cgroup"),
        ({"chroot": "/nonexistent/root"}, "chroot", "chroot: "),
    ],
)
def test_what_is_refused_is_named_and_nothing_is_started(tmp_path, options, step, hint):
    mark = tmp_path / "mark"
    for function in (procwright.run, procwright.spawn):
        with pytest.raises(procwright.SpawnError) as caught:
            function(["touch", mark], **options)
        assert caught.value.step == step
        assert hint in str(caught.value)
    assert not mark.exists()


def test_the_table_is_the_core_s():
    assert {"blocked_signals", "cgroup", "new_keyring"} <= SETUP.keys()
    assert {kind for kind, _, _ in SETUP.values()} == {
        "flag",
        "number",
        "numbers",
        "text",
        "signals",
        "path",
    }
