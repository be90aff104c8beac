"""Tokens, invitations and monitors: what they say, and what they refuse."""

from __future__ import annotations

import copy
import errno
import gc
import os
import pickle
import socket
import subprocess
import sys
import threading
import weakref

import pytest
from conftest import comes_back, descriptors

import procwright
from procwright import (
    InvalidValue,
    LivenessError,
    LivenessGuarantee,
    LivenessInvitation,
    LivenessMonitor,
    LivenessToken,
    NoSuchProcess,
    Process,
)

#: Only against hanging.
LONG = 100


HOLDERS = ["process", "thread"]

#: Whose end monitors tell of.
NAMES = {"process": "image", "thread": "thread"}


@pytest.mark.parametrize("holder", HOLDERS)
def test_alive_until_it_is_released(holder):
    token = LivenessToken(holder)
    monitor = LivenessMonitor(token.invite())
    assert monitor.alive() is True
    assert (monitor.state(), monitor.confirm()) == ("alive", "alive")
    assert monitor.process == Process(os.getpid())
    assert monitor.guarantee() == (NAMES[holder], "robust_word")
    assert monitor.guarantee() == LivenessGuarantee(NAMES[holder], mechanism="robust_word")
    assert token.guarantee() == monitor.guarantee()
    assert "alive" in repr(monitor)
    assert "held" in repr(token)
    token.release()
    token.release()
    assert monitor.alive() is False
    assert (monitor.state(), monitor.confirm(), monitor.wait()) == ("released",) * 3
    assert "released" in repr(monitor)
    assert "released" in repr(token)
    for call in (token.invite, token.guarantee):
        with pytest.raises(ValueError, match="was released"):
            call()


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_block_releases_it_however_it_is_left(holder):
    with LivenessToken(holder=holder) as token:
        monitor = LivenessMonitor(token.invite())
        assert monitor.alive()
    assert monitor.state() == "released"
    token = LivenessToken(holder=holder)
    monitor = LivenessMonitor(token.invite())
    with pytest.raises(ZeroDivisionError), token:
        raise ZeroDivisionError
    assert monitor.state() == "released"


@pytest.mark.parametrize("holder", HOLDERS)
def test_nobody_has_it_any_more(holder):
    token = LivenessToken(holder=holder)
    monitor = LivenessMonitor(token.invite())
    there = weakref.ref(token)
    del token
    gc.collect()
    assert there() is None
    assert monitor.state() == "released"


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_killed_peer(peers, holder):
    (peer,) = peers(1, holder)
    assert peer.monitor.alive()
    assert peer.monitor.process == Process(peer.process)
    # The thread that made it has ended long ago.
    peer.do("import time")
    peer.process.kill()
    assert peer.monitor.wait(LONG) == "died"
    assert not peer.monitor.alive()
    assert (peer.monitor.state(), peer.monitor.confirm()) == ("died", "died")
    assert peer.monitor.wait_gone(LONG) is None
    assert peer.process.wait() == -9
    assert peer.monitor.wait_gone(LONG) is None


def test_a_stopped_peer_is_alive(peers):
    (peer,) = peers()
    Process(peer.process).send_signal("STOP")
    assert peer.monitor.alive()
    assert peer.monitor.confirm() == "alive"


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_peer_that_releases_lives_on(peers, holder):
    (peer,) = peers(1, holder)
    of_process = LivenessMonitor(peer.process)
    peer.do("token.release()")
    assert peer.monitor.state() == "released"
    assert of_process.alive()
    peer.process.kill()
    assert of_process.wait(LONG) == "died"
    # What it said before it died it still says.
    assert peer.monitor.wait(LONG) == "released"


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_exec_ends_the_program_and_not_the_process(peers, child, holder):
    (peer,) = peers(1, holder)
    of_process = LivenessMonitor(peer.process)
    assert of_process.guarantee() == ("process", "watcher")
    peer.tell(f"os.execv({child!r}, [{child!r}, 'sleep-forever'])")
    assert peer.monitor.wait(LONG) == "died"
    assert of_process.alive()
    with pytest.raises(procwright.WaitTimeout):
        peer.monitor.wait_gone(0.01)


def test_a_peer_of_an_earlier_program_is_another(peers):
    one, other = peers(2)
    one.process.kill()
    assert one.monitor.wait(LONG) == "died"
    assert other.monitor.alive()
    # A monitor that comes late is told the same.
    assert LivenessMonitor(one.invitation).state() == "died"
    assert LivenessMonitor(other.invitation).alive()


def test_any_process(children, stranger, child):
    (ours,) = children(1)
    theirs = stranger(child, "sleep-forever")
    with procwright.spawn([child, "sleep-forever"]) as spawned:
        for peer in (ours, ours.pid, Process(ours).id, Process(ours), theirs, spawned):
            monitor = LivenessMonitor(peer)
            assert monitor.alive()
            assert monitor.process == Process(peer)
            assert monitor.guarantee() == ("process", "watcher")
        assert spawned.monitor().process == spawned.process
        monitors = [LivenessMonitor(ours), LivenessMonitor(theirs.pid), spawned.monitor()]
        for monitor in monitors:
            monitor.process.kill()
            assert monitor.wait(LONG) == "died"
            assert monitor.confirm() == "died"
    # A ticket alone is none either, nor its parts.
    for bad in (None, 3.5, ([0, 1], "0" * 24)):
        with pytest.raises(TypeError, match="pass a LivenessInvitation"):
            LivenessMonitor(bad)
    with pytest.raises(TypeError, match=r"pass token\.invite\(\)"), LivenessToken() as token:
        LivenessMonitor(token)
    with pytest.raises(InvalidValue):
        LivenessMonitor(0)
    ours.wait()
    with pytest.raises(NoSuchProcess):
        LivenessMonitor(ours)


def test_a_monitor_of_a_child_that_was_waited_for(child):
    with procwright.spawn([child, "exit", "0"]) as spawned:
        spawned.wait(LONG)
        assert spawned.monitor().state() == "died"


def fill(sock, invitation):
    while True:
        invitation.send(sock)


def test_over_a_socket():
    ours, theirs = socket.socketpair()
    with LivenessToken() as token, ours, theirs:
        token.invite().send(ours)
        # A descriptor or whatever has one will do.
        token.invite().send(ours.fileno())
        for sock in (theirs, theirs.fileno()):
            received = LivenessInvitation.receive(sock)
            assert LivenessMonitor(received).alive()
        ours.send(b"something else")
        with pytest.raises(InvalidValue, match="another message"):
            LivenessInvitation.receive(theirs)
        theirs.settimeout(0.01)
        with pytest.raises(TimeoutError):
            LivenessInvitation.receive(theirs)
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError) as caught:
            LivenessInvitation.receive(theirs)
        assert str(caught.value) == f"[Errno {errno.EAGAIN}] {os.strerror(errno.EAGAIN)}"
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            fill(ours, token.invite())
        ours.settimeout(0.01)
        with pytest.raises(TimeoutError):
            token.invite().send(ours)
        theirs.close()
        with pytest.raises(BrokenPipeError) as caught:
            token.invite().send(ours)
        assert caught.value.errno == errno.EPIPE
        assert str(caught.value) == "[Errno 32] Broken pipe"
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        with pytest.raises(InvalidValue, match="closed"):
            LivenessInvitation.receive(ours)
    for bad in ("socket", None, True):
        with pytest.raises(TypeError, match=r"^sock is .*: pass a connected Unix socket"):
            LivenessInvitation.receive(bad)


def test_over_no_other_kind_of_socket():
    # The bytes would arrive without what belongs to them, and nobody be told.
    with socket.create_server(("127.0.0.1", 0)) as server, LivenessToken() as token:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        with ours, theirs:
            with pytest.raises(InvalidValue, match="Unix socket"):
                token.invite().send(ours)
            ours.send(b"not for us")
            with pytest.raises(InvalidValue, match="Unix socket"):
                LivenessInvitation.receive(theirs)
            assert theirs.recv(100) == b"not for us"
        reading, writing = os.pipe()
        invitation = token.invite()
        with pytest.raises(OSError, match="ocket") as caught:
            invitation.send(writing)
        assert caught.value.errno == errno.ENOTSOCK
        os.close(reading)
        os.close(writing)
        with pytest.raises(OSError, match="descriptor") as caught:
            invitation.send(writing)
        assert caught.value.errno == errno.EBADF


def test_a_block_needs_a_token_that_is_held():
    token = LivenessToken()
    with token:
        pass
    with pytest.raises(ValueError, match="was released"), token:
        pass


def test_ctrl_c_while_none_comes(when_asleep):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        when_asleep(lambda: os.kill(os.getpid(), 2))
        with pytest.raises(KeyboardInterrupt):
            LivenessInvitation.receive(ours)
        # Nothing of it was taken.
        with LivenessToken() as token:
            token.invite().send(theirs)
            assert LivenessMonitor(LivenessInvitation.receive(ours)).alive()


WATCHER = """
import sys, procwright
*fds, ticket = sys.argv[1:]
monitor = procwright.LivenessMonitor(procwright.LivenessInvitation(map(int, fds), ticket))
print(monitor.process.pid, monitor.state(), flush=True)
print(monitor.wait(), flush=True)
"""


@pytest.mark.parametrize("text", ["spawn", "subprocess"])
def test_by_inheritance(text):
    token = LivenessToken()
    invitation = token.invite()
    argv = [sys.executable, "-c", WATCHER, *map(str, invitation.fds), invitation.ticket]
    if text == "spawn":
        child = procwright.spawn(argv, pass_fds=invitation.fds, stderr=procwright.INHERIT)
    else:
        child = subprocess.Popen(argv, pass_fds=invitation.fds, stdout=subprocess.PIPE)
    with child:
        assert child.stdout.readline() == f"{os.getpid()} alive\n".encode()
        token.release()
        assert child.stdout.readline() == b"released\n"


def test_parts_stay_the_callers():
    with LivenessToken() as token:
        invitation = token.invite()
        again = LivenessInvitation(invitation.fds, invitation.ticket)
        assert again.ticket == invitation.ticket
        assert set(again.fds).isdisjoint(invitation.fds)
        assert all(not os.get_inheritable(fd) for fd in (*again.fds, *invitation.fds))
        # Accepted as often as anybody likes.
        monitors = [LivenessMonitor(again) for _ in range(3)]
        del again
        assert all(monitor.alive() for monitor in monitors)
        assert all(os.fstat(fd) for fd in invitation.fds)


def test_what_is_no_invitation(tmp_path):
    with LivenessToken() as token:
        invitation = token.invite()
        fds, ticket = invitation.fds, invitation.ticket
        for bad in ("", "x" * len(ticket), ticket[:-1], ticket + "0", "-" + ticket[1:]):
            with pytest.raises(InvalidValue, match="ticket"):
                LivenessInvitation(fds, bad)
        for bad in ((), (*fds, fds[0])):
            with pytest.raises(InvalidValue, match="fds"):
                LivenessInvitation(bad, ticket)
        with pytest.raises(InvalidValue, match=r"^fds\[0\] is -1: "):
            LivenessInvitation([-1] * len(fds), ticket)
        with pytest.raises(OSError, match="descriptor 99999"):
            LivenessInvitation([99999] * len(fds), ticket)
        with pytest.raises(TypeError):
            LivenessInvitation(fds)
        with open(tmp_path / "file", "wb") as file:
            forged = LivenessInvitation([file.fileno()] * len(fds), ticket)
            with pytest.raises(InvalidValue, match="no invitation"):
                LivenessMonitor(forged)
        unsealed = os.memfd_create("unsealed")
        os.truncate(unsealed, 4096)
        forged = LivenessInvitation([unsealed] * len(fds), ticket)
        os.close(unsealed)
        with pytest.raises(InvalidValue, match="no invitation"):
            LivenessMonitor(forged)
        # Another token was, or will be, in that place.
        forged = LivenessInvitation(fds, ticket[:-1] + ("1" if ticket[-1] == "0" else "0"))
        with pytest.raises(LivenessError, match="stale") as caught:
            LivenessMonitor(forged)
        assert (caught.value.reason, caught.value.errno) == ("stale", errno.ESTALE)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.reason) == (str(caught.value), "stale")


def test_what_cannot_be_pickled():
    with LivenessToken() as token:
        monitor = LivenessMonitor(token.invite())
        for call in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=r"pass token\.invite\(\)"):
                call(token)
            with pytest.raises(TypeError, match=r"or token\.invite\(\)"):
                call(monitor)


def test_a_monitor_of_a_process_is_pickled_by_its_identity(children):
    (child,) = children(1)
    monitor = LivenessMonitor(child)
    if ":" not in Process(child).id:
        with pytest.raises(TypeError, match="nothing but its number"):
            pickle.dumps(monitor)
        return
    data = pickle.dumps(monitor)
    assert Process(child).id.encode() in data
    again = pickle.loads(data)
    child.kill()
    assert again.wait(LONG) == "died"
    child.wait()
    with pytest.raises(NoSuchProcess):
        pickle.loads(data)


def test_classes_are_final():
    for kind in (LivenessToken, LivenessInvitation, LivenessMonitor):
        assert kind.__module__ == "procwright"
        with pytest.raises(TypeError, match="not an acceptable base type"):
            type("Derived", (kind,), {})
    for bad in ("both", "Process", ""):
        with pytest.raises(InvalidValue, match="holder"):
            LivenessToken(bad)
    with pytest.raises(TypeError):
        LivenessToken(holder=None)


def on_another_thread(do):
    """Runs it on a thread that then ends, and gives back what came of it."""
    came = []

    def work():
        try:
            came.append(do())
        except BaseException as error:
            came.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return came[0]


def test_a_token_of_the_main_thread_stays_there():
    token = LivenessToken(holder="thread")
    monitor = LivenessMonitor(token.invite())
    calls = [
        lambda: LivenessToken(holder="thread"),
        token.invite,
        token.guarantee,
        token.release,
        lambda: token.__exit__(None, None, None),
    ]
    for call in calls:
        refused = on_another_thread(call)
        assert isinstance(refused, LivenessError)
        assert refused.reason == "not_main"
        assert "main thread" in str(refused)
    assert on_another_thread(monitor.alive) is True
    token.release()
    # There is nothing left to do.
    assert on_another_thread(token.release) is None
    assert monitor.state() == "released"


def test_another_thread_has_the_last_of_a_token_of_the_main_thread():
    kept = [LivenessToken(holder="thread")]
    monitor = LivenessMonitor(kept[0].invite())
    on_another_thread(kept.clear)
    # It cannot be given back there, and never is what has not happened.
    assert monitor.state() == "alive"
    LivenessToken(holder="thread").release()
    assert monitor.state() == "released"


FULL = """
import procwright
from procwright import LivenessError, LivenessMonitor, LivenessToken
tokens = [LivenessToken() for _ in range(1024)]
monitors = [LivenessMonitor(token.invite()) for token in tokens]
try:
    LivenessToken()
except LivenessError as error:
    print(error.reason, error)
for token in tokens[::2]:
    token.release()
print([monitor.state() for monitor in monitors] == ["released", "alive"] * 512)
more = [LivenessToken() for _ in range(512)]
print(all(monitor.alive() for monitor in monitors[1::2]))
"""


def test_as_many_as_there_may_be(script):
    out, err = script(FULL).communicate()
    assert err == ""
    full, *rest = out.splitlines()
    assert full.startswith("full ")
    assert "1024" in full
    assert rest == ["True", "True"]


def threads():
    return set(os.listdir("/proc/self/task"))


def test_nothing_is_left(children):
    (child,) = children(1)

    def once():
        with LivenessToken() as token:
            invitation = token.invite()
            monitors = [LivenessMonitor(invitation), LivenessMonitor(child)]
            assert all(monitor.alive() for monitor in monitors)
            with pytest.raises(procwright.WaitTimeout):
                monitors[0].wait(0)
            for monitor in monitors:
                monitor.readiness_fd()
        assert monitors[0].wait(LONG) == "released"

    # As many as a sheet of the ledger's has places, so that another follows.
    for _ in range(200):
        once()
    before, before_threads = descriptors(), threads()
    for _ in range(200):
        once()
    comes_back(before)
    # Else the watchdog comes: one that is on its way out is there for a moment yet.
    while len(threads()) > len(before_threads):
        os.sched_yield()


def test_many_threads_look_while_it_is_released():
    token = LivenessToken()
    monitor = LivenessMonitor(token.invite())
    started = threading.Barrier(9)
    seen = []

    def look():
        started.wait()
        while monitor.alive():
            pass
        seen.append(monitor.state())

    lookers = [threading.Thread(target=look) for _ in range(8)]
    for looker in lookers:
        looker.start()
    started.wait()
    token.release()
    for looker in lookers:
        looker.join()
    assert seen == ["released"] * 8
