"""What a call on a child raises whose program has gone: it says why."""

import pickle
import sys

import pytest

from procwright import (
    PIPE,
    CalledProcessError,
    Cancel,
    Cancelled,
    IdleTimeout,
    Limit,
    OutputLimitExceeded,
    Stop,
    TimeoutExpired,
    queue,
    spawn,
    spawn_pipeline,
)

SOON = Stop(grace=0.02)
SHORT = 0.05
#: More than a pipe takes.
MUCH = bytes(1 << 20)


def write_on(stdin, data=b"x"):
    while True:
        stdin.write(data)


def send_on(sender):
    while True:
        sender.send(b"x")


#: Each with the options of the child, and what is called on it once it has gone.
CALLS = {
    "recv": ({"channel": "from_child"}, lambda one: one.receiver().recv()),
    "recv with a time": ({"channel": "from_child"}, lambda one: one.receiver().recv(100)),
    "recv_many": ({"channel": "from_child"}, lambda one: one.receiver().recv_many(2)),
    "recv_view": ({"channel": "from_child"}, lambda one: one.receiver().recv_view()),
    "an object": (
        {"channel": "from_child"},
        lambda one: queue.ObjectReceiver(one.receiver()).recv(),
    ),
    "sender": ({"channel": "to_child"}, lambda one: one.sender()),
    "write": ({"stdin": PIPE}, lambda one: write_on(one.stdin)),
    "write much": ({"stdin": PIPE}, lambda one: write_on(one.stdin, MUCH)),
    "write text": ({"stdin": PIPE, "text": True}, lambda one: write_on(one.stdin, "x")),
    "writelines": ({"stdin": PIPE}, lambda one: one.stdin.writelines([MUCH] * 100)),
}


@pytest.mark.parametrize("name", CALLS)
def test_of_one_that_its_timeout_has_stopped_a_call_raises_that(child, name):
    options, call = CALLS[name]
    one = spawn([child, "sleep-forever"], stop=SOON, timeout=SHORT, **options)
    with pytest.raises(TimeoutExpired) as caught:
        call(one)
    error = caught.value
    assert (error.result.reason, error.timeout) == ("timeout", SHORT)
    assert isinstance(error.__cause__, (queue.QueueError, BrokenPipeError))
    # And it leaves a block as it is.
    with (
        pytest.raises(TimeoutExpired),
        spawn([child, "sleep-forever"], stop=SOON, timeout=SHORT, **options) as held,
    ):
        call(held)


def test_a_stop_that_lasts_is_waited_for(child):
    # It lets go of its stdin at once, and ends with the grace.
    argv = ["sh", "-c", "trap '' TERM; exec <&-; sleep 1000 & wait; wait"]
    one = spawn(argv, stdin=PIPE, stop=Stop(grace=1.5), timeout=SHORT)
    with pytest.raises(TimeoutExpired):
        write_on(one.stdin)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"idle_timeout": SHORT}, IdleTimeout),
        ({"limit": Limit(10, "fail")}, OutputLimitExceeded),
        ({"cancel": "now"}, Cancelled),
    ],
)
def test_so_do_other_limits(options, error):
    cancel = Cancel()
    if "cancel" in options:
        options = {"cancel": cancel}
    argv = ["sh", "-c", "echo more than ten bytes; sleep 1000"]
    one = spawn(argv, channel="from_child", stop=SOON, **options)
    if "cancel" in options:
        cancel.cancel()
    with pytest.raises(error):
        one.receiver().recv()


def test_who_wants_no_error_of_the_timeout_gets_that_of_the_queue(child):
    one = spawn(
        [child, "sleep-forever"],
        channel="from_child",
        stop=SOON,
        timeout=SHORT,
        on_timeout="return",
    )
    with pytest.raises(queue.Closed, match=r"timed out after 0\.05 s"):
        one.receiver().recv()


def test_an_iteration_ends_and_the_block_tells(child):
    found = []

    def iterate():
        with spawn([child, "sleep-forever"], channel="from_child", stop=SOON, timeout=SHORT) as one:
            found.append(list(one.receiver()))
            found.append(list(queue.ObjectReceiver(one.receiver())))

    with pytest.raises(TimeoutExpired):
        iterate()
    assert found == [[], []]


FAILS = ["sh", "-c", "echo 'the reason' >&2; exit 3"]


@pytest.mark.parametrize("name", CALLS)
def test_of_one_that_has_died_the_error_says_how(name):
    options, call = CALLS[name]
    with pytest.raises((queue.QueueError, BrokenPipeError), match="exited with code 3") as caught:
        call(spawn(FAILS, **options))
    cause = caught.value.__cause__
    assert isinstance(cause, CalledProcessError)
    assert cause.returncode == 3
    assert "the reason" in str(cause)
    assert "exited with code 3" in str(pickle.loads(pickle.dumps(caught.value)))


def test_of_one_that_has_ended_well_nothing_is_said():
    with pytest.raises(queue.Closed) as caught:
        spawn(["true"], channel="from_child").receiver().recv()
    assert "true" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_of_one_that_lives_on_nothing_is_said():
    one = spawn(["sh", "-c", "exec <&-; echo closed; sleep 1000"], stdin=PIPE, stop=SOON)
    assert one.stdout.readline() == b"closed\n"
    with pytest.raises(BrokenPipeError) as caught:
        one.stdin.write(b"x")
    assert (caught.value.__cause__, "killed" in str(caught.value)) == (None, False)
    one.stop()


def test_a_pipeline_tells_as_well(child):
    sleeps = [child, "sleep-forever"]
    one = spawn_pipeline(sleeps, sleeps, stdin=PIPE, stop=SOON, timeout=SHORT)
    with pytest.raises(TimeoutExpired) as caught:
        write_on(one.stdin)
    assert len(caught.value.result.stages) == 2
    two = spawn_pipeline(FAILS, ["cat"], stdin=PIPE)
    with pytest.raises(BrokenPipeError, match="stage 1 of 2 exited with code 3"):
        write_on(two.stdin)


def test_senders_of_a_child_that_goes_away_say_why():
    program = (
        "from procwright.queue import Receiver\n"
        "import os, sys\n"
        "receiver = Receiver.of_parent()\n"
        "receiver.recv()\n"
        "print('the reason', file=sys.stderr, flush=True)\n"
        "os._exit(1)"
    )
    for call in (send_on, lambda sender: send_on(sender.clone()), lambda sender: objects(sender)):
        one = spawn([sys.executable, "-c", program], channel="to_child")
        with pytest.raises(queue.QueueError, match="exited with code 1") as caught:
            call(one.sender())
        assert "the reason" in str(caught.value.__cause__)


def objects(sender):
    send_on(queue.ObjectSender(sender))


#: Lets go of its end of the queue and lives on, also when it is told to stop.
LIVES_ON = """
from procwright.queue import Receiver, Sender
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: print("stopping", flush=True))
if sys.argv[1] == "from_child":
    Sender.of_parent().close()
else:
    receiver = Receiver.of_parent()
    receiver.recv()
    receiver.close()
print("closed", flush=True)
while True:
    signal.pause()
"""


class Spy:
    """The core of a child, which notes for how long it is waited for."""

    def __init__(self, core):
        self.core = core
        self.waits = []

    def __getattr__(self, name):
        return getattr(self.core, name)

    def wait(self, timeout):
        self.waits.append(timeout)
        return self.core.wait(timeout)


@pytest.fixture
def lives_on():
    """Gives a child that has closed its end, our end, and the waits for the child."""
    started = []

    def start(channel, **options):
        one = spawn([sys.executable, "-c", LIVES_ON, channel], channel=channel, **options)
        started.append(one)
        end = one.receiver() if channel == "from_child" else one.sender()
        if channel == "to_child":
            end.send(b"x")
        assert one.stdout.readline() == b"closed\n"
        one._core = Spy(one._core)
        return one, end, one._core.waits

    yield start
    for one in started:
        if one.status is None:
            one.process.kill()


#: Calls that do not wait, each with the channel.
AT_ONCE = {
    "try_recv": ("from_child", lambda end: end.try_recv()),
    "try_recv_view": ("from_child", lambda end: end.try_recv_view()),
    "try_recv of an object": ("from_child", lambda end: queue.ObjectReceiver(end).try_recv()),
    "try_send": ("to_child", lambda end: end.try_send(b"x")),
    "send for no time": ("to_child", lambda end: end.send(b"x", 0)),
    "try_send of an object": ("to_child", lambda end: queue.ObjectSender(end).try_send(b"x")),
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_call_that_does_not_wait_does_not_wait_for_the_reason_either(lives_on, name):
    channel, call = AT_ONCE[name]
    _, end, waits = lives_on(channel)
    for _ in range(3):
        with pytest.raises(queue.Closed):
            call(end)
    assert waits == []


@pytest.mark.parametrize("overflow", ["fail", "drop_newest"])
def test_nor_does_a_sender_that_does_not_wait_for_room(overflow):
    one = spawn([sys.executable, "-c", LIVES_ON, "to_child"], channel="to_child")
    try:
        sender = one.sender()
        other = sender.clone(overflow)
        sender.send(b"x")
        assert one.stdout.readline() == b"closed\n"
        one._core = Spy(one._core)
        with pytest.raises(queue.Closed):
            other.send(b"x")
        with pytest.raises(queue.Closed):
            other.send_many([b"x"])
        assert one._core.waits == []
    finally:
        one.process.kill()


@pytest.mark.parametrize("channel", ["from_child", "to_child"])
def test_the_time_of_the_call_holds_for_the_reason_too(lives_on, channel):
    _, end, waits = lives_on(channel)
    with pytest.raises(queue.Closed):
        end.recv(SHORT) if channel == "from_child" else end.send(b"x", SHORT)
    (wait,) = waits
    assert 0 <= wait <= SHORT


def test_one_wait_for_the_reason_does_for_all_calls(lives_on):
    _, receiver, waits = lives_on("from_child")
    for call in (receiver.recv, receiver.recv, receiver.recv_view, receiver.try_recv):
        with pytest.raises(queue.Closed):
            call()
    assert waits == [1.0]


def test_a_stop_that_lasts_is_not_waited_for_by_who_does_not_wait(lives_on):
    cancel = Cancel()
    # A wait for this grace would never come back.
    one, receiver, waits = lives_on("from_child", cancel=cancel, stop=Stop(grace=1e6))
    cancel.cancel()
    assert one.stdout.readline() == b"stopping\n"
    assert one._core.is_stopping()
    for call in (receiver.try_recv, receiver.try_recv_view, lambda: receiver.recv(SHORT)):
        with pytest.raises(queue.Closed) as caught:
            call()
        assert caught.value.__cause__ is None
    (wait,) = waits
    assert 0 <= wait <= SHORT
    # Once it is over the reason is known.
    one.process.kill()
    with pytest.raises(Cancelled):
        one.wait()
    with pytest.raises(Cancelled):
        receiver.try_recv()
