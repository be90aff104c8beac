"""Queues between processes: forks, multiprocessing, children, deaths, names."""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings

import pytest
from conftest import comes_back, descriptors

import procwright
from procwright import PIPE, _pickled, queue
from procwright.queue import Invitation, ObjectReceiver, ObjectSender, Receiver, Sender

#: Only against hanging.
LONG = 100

a_fork_with_threads = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def in_a_fork(do) -> int:
    """Runs `do` in a fork; 0 if it raised nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            do()
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_fork_has_no_part_in_it():
    receiver = Receiver()
    sender = receiver.sender()
    sender.send(b"in place")
    view = receiver.recv_view()
    place = sender.reserve(3)

    def do():
        for use in (
            lambda: receiver.recv(),
            lambda: receiver.recv(0),
            receiver.try_recv,
            receiver.invite,
            receiver.readiness_fd,
            lambda: sender.send(b"x"),
            lambda: sender.send_many([b"x"]),
            lambda: sender.reserve(1),
            sender.clone,
            lambda: memoryview(view),
            lambda: len(view),
            lambda: memoryview(place),
            lambda: place.commit(1),
        ):
            with pytest.raises(queue.Forked, match="forked from"):
                use()
        view.release()
        place.cancel()
        for use in (receiver.try_recv, lambda: sender.send(b"x"), lambda: sender.reserve(1)):
            with pytest.raises(queue.Forked):
                use()
        with pytest.raises(OSError, match="before a fork"):
            procwright.wait([receiver], timeout=0)
        receiver.close()
        sender.close()

    assert in_a_fork(do) == 0
    assert bytes(view) == b"in place"
    view.release()
    memoryview(place)[:] = b"yes"
    place.commit()
    assert receiver.recv() == b"yes"


@a_fork_with_threads
def test_a_fork_while_another_thread_is_inside():
    import threading

    receiver = Receiver()
    sender = receiver.sender()
    thread = threading.Thread(target=receiver.recv)
    thread.start()
    while True:
        try:
            receiver.try_recv()
        except queue.Busy:
            break
        except queue.Empty:
            pass

    def do():
        with pytest.raises(queue.Forked):
            receiver.try_recv()
        receiver.close()

    assert in_a_fork(do) == 0
    sender.send(b"go")
    thread.join()


def test_a_fork_attaches_anew():
    receiver = Receiver()
    invitation = receiver.invite()

    def do():
        with Sender.attach(invitation) as sender:
            sender.send(b"from the fork")

    assert in_a_fork(do) == 0
    invitation.close()
    assert list(receiver) == [b"from the fork"]


def work(invitation: Invitation, number: int) -> None:
    with Sender.attach(invitation) as sender:
        for count in range(100):
            sender.send(b"%d %d" % (number, count))


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
@a_fork_with_threads
def test_children_of_multiprocessing(method):
    context = multiprocessing.get_context(method)
    with Receiver() as receiver:
        workers = [
            context.Process(target=work, args=(receiver.invite(), number)) for number in range(3)
        ]
        for worker in workers:
            worker.start()
        got = [tuple(map(int, message.split())) for message in receiver]
        for worker in workers:
            worker.join()
    for number in range(3):
        assert [count for who, count in got if who == number] == list(range(100))


def answer(invitation: Invitation) -> None:
    """Sends an invitation to a queue of its own, and what comes there back."""
    with ObjectSender(Sender.attach(invitation)) as sender, Receiver() as own:
        sender.send(own.invite())
        sender.send(own.recv())


def test_a_pickled_invitation_outside_of_its_family():
    worker = """
from procwright import InvalidValue
from procwright.queue import ObjectReceiver, Receiver

with ObjectReceiver(Receiver.of_parent()) as work:
    try:
        work.recv()
    except InvalidValue as error:
        print(error, flush=True)
"""
    argv = [sys.executable, "-c", worker]
    with Receiver() as answers, procwright.spawn(argv, channel="to_child", text=True) as child:
        ObjectSender(child.sender()).send(answers.invite())
        told = child.stdout.read()
        assert "spawn(..., pass_fds=invitation.fds) and invitation.ticket" in told
        assert child.wait() == 0


def test_an_invitation_through_a_queue():
    context = multiprocessing.get_context("spawn")
    with ObjectReceiver(Receiver()) as receiver:
        worker = context.Process(target=answer, args=(receiver.receiver.invite(),))
        worker.start()
        with Sender.attach(receiver.recv()) as sender:
            sender.send(b"there and back")
        assert list(receiver) == [b"there and back"]
        worker.join()


def test_inherited(script):
    receiver = Receiver()
    with receiver.invite() as invitation:
        child = script(
            "import sys; from procwright.queue import *\n"
            "fds = [int(fd) for fd in sys.argv[2:]]\n"
            "sender = Sender.attach(Invitation(fds, sys.argv[1]))\n"
            "sender.send(b'inherited')\n",
            invitation.ticket,
            *map(str, invitation.fds),
            pass_fds=invitation.fds,
        )
    assert list(receiver) == [b"inherited"]
    child.wait()


RECEIVING = """
import sys, socket
from procwright.queue import *
sock = socket.socket(fileno=int(sys.argv[1]))
receiver = Receiver(first=4096, limit=4096)
receiver.invite().send(sock)
view = None
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Peer:
    """A program that receives."""

    def __init__(self) -> None:
        import socket

        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RECEIVING, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=PIPE,
                stdout=PIPE,
                text=True,
            )
            self.invitation = Invitation.receive(ours)

    def do(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def peer():
    peer = Peer()
    yield peer
    peer.kill()


def again(invitation: Invitation) -> Invitation:
    return Invitation(invitation.fds, invitation.ticket)


def test_the_receiver_dies(peer):
    spare = again(peer.invitation)
    sender = Sender.attach(peer.invitation)
    sender.send(b"x")
    peer.kill()
    with pytest.raises(OSError, match="has died") as caught:
        sender.send(b"x")
    assert isinstance(caught.value, queue.ReceiverDead)
    assert caught.value.errno == errno.EOWNERDEAD
    with pytest.raises(queue.ReceiverDead):
        Sender.attach(spare)


def test_the_receiver_dies_while_one_waits_for_room(peer):
    import threading

    with Sender.attach(peer.invitation) as sender:
        sender.send(bytes(4024))
        threading.Thread(target=peer.process.kill).start()
        with pytest.raises(queue.ReceiverDead):
            sender.send(b"x" * 100)


def test_the_receiver_closes(peer):
    sender = Sender.attach(peer.invitation)
    peer.do("receiver.close()")
    with pytest.raises(queue.Closed):
        sender.send(b"x")


def test_taking_over(peer):
    kept = again(peer.invitation)
    sender = Sender.attach(peer.invitation)
    sender.send_many([b"received", b"in its hands", b"waiting"])
    peer.do("assert receiver.recv() == b'received'")
    peer.do("view = receiver.recv_view()")
    with pytest.raises(queue.ReceiverAlive) as caught:
        Receiver.take_over(kept)
    assert caught.value.pid == peer.process.pid
    peer.kill()
    with pytest.raises(queue.ReceiverDead):
        sender.send(b"to nobody")
    with Receiver.take_over(kept) as receiver:
        kept.close()
        sender.send(b"to the next")
        got = [receiver.recv(LONG) for _ in range(3)]
        assert got == [b"in its hands", b"waiting", b"to the next"]
        sender.close()
        assert list(receiver) == []


def test_names(tmp_path, monkeypatch, script):
    monkeypatch.setenv("PROCWRIGHT_QUEUE_DIR", str(tmp_path / "queues"))
    with pytest.raises(FileNotFoundError) as caught:
        Sender.open("work")
    assert isinstance(caught.value, queue.NoQueue)
    # Where it looked, and what would do.
    assert str(tmp_path / "queues") in str(caught.value)
    assert "PROCWRIGHT_QUEUE_DIR" in str(caught.value)
    with pytest.raises(procwright.InvalidValue, match="no name for a queue"):
        Receiver.open("../work")
    with Receiver.open("work", lanes=8) as receiver:
        with pytest.raises(queue.NameTaken) as caught:
            Receiver.open("work")
        assert (caught.value.name, caught.value.pid) == ("work", os.getpid())
        child = script("from procwright.queue import *\nSender.open('work').send(b'hello')")
        assert receiver.recv(LONG) == b"hello"
        assert child.wait() == 0
        with Sender.open("work", overflow="fail") as sender:
            assert sender.overflow == "fail"
            sender.send(b"by name")
        assert receiver.recv() == b"by name"
        with pytest.raises(TimeoutError):
            receiver.recv(0.02)
    with pytest.raises(queue.NoQueue):
        Sender.open("work")


def test_from_outside(tmp_path, monkeypatch, script):
    monkeypatch.setenv("PROCWRIGHT_QUEUE_DIR", str(tmp_path / "queues"))
    assert queue.names() == []
    with pytest.raises(queue.NoQueue):
        queue.stat("work")
    with pytest.raises(procwright.InvalidValue, match="no name for a queue"):
        queue.stat("../work")
    with Receiver.open("work", lanes=3, first=4096, limit=1 << 16) as receiver:
        assert queue.names() == ["work"]
        seen = queue.stat("work")
        assert (seen.lanes, seen.first, seen.taken) == (3, 4096, [])
        assert seen.first <= seen.limit <= 1 << 16
        assert (seen.receiver.state, seen.receiver.pid) == ("alive", os.getpid())
        assert seen == queue.stat("work")
        with Sender.open("work") as sender:
            sender.send(bytes(1000))
            (lane,) = queue.stat("work").taken
            assert (lane.number, lane.state, lane.pid) == (0, "taken", os.getpid())
            assert 1000 <= lane.waiting < lane.block == 4096
            assert lane.is_blocked is False
        (lane,) = queue.stat("work").taken
        assert lane.state == "left"
        assert queue.stat("work").claims != seen.claims
        assert "LaneStat(number=0, state='left'" in repr(queue.stat("work"))
        assert receiver.recv() == bytes(1000)
        # Nobody was held up, and nothing is left of the looks.
        before = descriptors()
        queue.stat("work")
        comes_back(before)
    child = script(
        "from procwright.queue import *\n"
        "import os\n"
        "receiver = Receiver.open('work')\n"
        "print(flush=True)\n"
        "input()\n",
        stdin=subprocess.PIPE,
    )
    child.stdout.readline()
    with Sender.open("work") as sender:
        sender.send(b"x")
        child.kill()
        child.wait()
        seen = queue.stat("work")
        assert (seen.receiver.state, seen.receiver.pid) == ("dead", child.pid)
        assert seen.receiver.asleep is None
    with pytest.raises(FileNotFoundError):
        queue.stat("work")


FROM_CHILD = """
from procwright.queue import *
sender = Sender.of_parent(overflow="block")
for number in range(3):
    sender.send(b"%d" % number)
try:
    Sender.of_parent()
except NoParent:
    sender.send(b"once")
"""

TO_CHILD = """
from procwright.queue import *
print(*Receiver.of_parent(lanes=2))
"""


def run_python(code, **options):
    return procwright.spawn([sys.executable, "-c", code], stderr=procwright.INHERIT, **options)


def test_a_channel_from_a_child():
    with run_python(FROM_CHILD, channel="from_child") as child:
        assert child.receiver() is child.receiver()
        assert list(child.receiver()) == [b"0", b"1", b"2", b"once"]
        with pytest.raises(queue.NoChannel, match="the child sends"):
            child.sender()
    assert child.returncode == 0


def test_a_channel_to_a_child():
    with run_python(TO_CHILD, channel="to_child", text=True) as child:
        sender = child.sender(LONG)
        assert sender is child.sender()
        sender.send(b"one")
        sender.send(b"two")
        with pytest.raises(queue.NoChannel):
            child.receiver()
    assert child.stdout.read() == "b'one' b'two'\n"
    assert sender.closed
    # Nobody has asked for the sender: the child comes to the end all the same.
    with run_python(TO_CHILD, channel="to_child", text=True) as child:
        pass
    assert child.stdout.read() == "\n"


def test_no_channel():
    with run_python("", stdout=procwright.DEVNULL) as child:
        for ask in (child.receiver, child.sender):
            with pytest.raises(queue.NoChannel):
                ask()
    for ask in (Sender.of_parent, Receiver.of_parent):
        with pytest.raises(queue.NoParent, match="channel"):
            ask()
    child = run_python("", channel="to_child", stdout=procwright.DEVNULL)
    with child, pytest.raises(queue.NoChannel, match="before it has made"):
        child.sender()
    with pytest.raises(procwright.InvalidValue, match='"from_child" or "to_child"'):
        run_python("", channel="both")


def test_ctrl_c_while_a_child_makes_no_receiver(child, when_asleep):
    def interrupted():
        with procwright.spawn([child, "sleep-forever"], channel="to_child") as slow:
            with pytest.raises(TimeoutError):
                slow.sender(0.001)
            when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                slow.sender()
            slow.kill()
        slow.stdout.close()
        slow.stderr.close()

    # What the package keeps for the next time is there after the first.
    interrupted()
    gc.collect()
    before = descriptors()
    interrupted()
    comes_back(before)


def test_a_child_is_killed_that_sends():
    with run_python(FROM_CHILD + "import time; time.sleep(1000)", channel="from_child") as child:
        got = [child.receiver().recv() for _ in range(4)]
        child.kill()
        assert list(child.receiver()) == []
    assert got[-1] == b"once"


def test_pickled_by_hand():
    # Without a process that is being started it goes by a thread of multiprocessing's.
    with Receiver() as receiver:
        data = pickle.dumps(receiver.invite())
        with Sender.attach(pickle.loads(data)) as sender:
            sender.send(b"pickled")
        assert receiver.recv() == b"pickled"


def test_pickles_that_nobody_loads(monkeypatch):
    """They hold one pair of descriptors, for a time, and then the receiver hears of the end."""
    monkeypatch.setattr(_pickled, "UNLOADED_FOR", 1000.0)
    with Receiver() as receiver:
        # What multiprocessing, and a call that waits, need once is there by then.
        kept = pickle.loads(pickle.dumps(receiver.invite()))
        with pytest.raises(queue.TimedOut):
            receiver.recv(0.02)
        kept.close()
        before = len(os.listdir("/proc/self/fd"))
        invitation = receiver.invite()
        first, *others = [pickle.dumps(invitation) for _ in range(20)]
        invitation.close()
        # Two, the receiver's end of the link, and no more for each.
        # What others have open meanwhile goes.
        while len(os.listdir("/proc/self/fd")) > before + 4:
            time.sleep(0.001)
        with pytest.raises(queue.TimedOut):
            receiver.recv(0.01)
        sender = Sender.attach(pickle.loads(first))
        sender.send(b"x")
        assert receiver.recv() == b"x"
        sender.close()
        with pytest.raises(queue.TimedOut):
            receiver.recv(0.01)
        monkeypatch.setattr(_pickled, "UNLOADED_FOR", 0.01)
        last = pickle.loads(others[0])
        late = pickle.dumps(last)
        last.close()
        with pytest.raises(EOFError):
            receiver.recv(LONG)
        for data in (late, *others[1:]):
            with pytest.raises(procwright.InvalidValue, match="in time"):
                pickle.loads(data)
        # The thread that answers lets go of its connection a moment later.
        while len(os.listdir("/proc/self/fd")) > before:
            time.sleep(0.001)


@a_fork_with_threads
def test_a_fork_keeps_no_place_of_a_pickle():
    with Receiver() as receiver:
        data = pickle.dumps(receiver.invite())
        pid = os.fork()
        if pid == 0:
            signal.pause()
        try:
            pickle.loads(data).close()
            with pytest.raises(EOFError):
                receiver.recv(LONG)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
