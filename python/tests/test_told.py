"""What a call on a child raises whose program has gone: it says why."""

import pickle
import sys
from threading import Thread
from time import sleep

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
    assert not caught.value.__suppress_context__
    one.stop()


def test_an_error_that_nobody_is_asked_about_hides_no_other():
    receiver = queue.ObjectReceiver(queue.Receiver())
    for call in (receiver.try_recv, lambda: receiver.recv(0), lambda: receiver.recv_many(1, 0)):
        with pytest.raises(queue.Closed) as caught:
            call()
        assert not caught.value.__suppress_context__


def left_with(error, open_block, leave=lambda one: None):
    """The error that leaves a block in which another thread writes, and what that was told."""
    told = []

    def feed(stdin):
        try:
            write_on(stdin)
        except Exception as error:
            told.append(error)

    def hold():
        with open_block() as one:
            feeder = Thread(target=feed, args=(one.stdin,))
            feeder.start()
            assert one.stdout.read() == b""
            feeder.join()
            leave(one)

    with pytest.raises(error) as caught:
        hold()
    (by_feeder,) = told
    return caught.value, by_feeder


def test_a_thread_that_is_told_takes_nothing_from_the_block(child):
    argv = [child, "sleep-forever"]

    def one():
        return spawn(argv, stdin=PIPE, stop=SOON, timeout=SHORT)

    def many():
        return spawn_pipeline(argv, argv, stdin=PIPE, stop=SOON, timeout=SHORT)

    for open_block in (one, many):
        left_with(TimeoutExpired, open_block)
        left_with(TimeoutExpired, open_block, lambda one: one.wait())


def test_what_a_function_has_raised_is_for_the_block(child):
    mine = ValueError("mine")

    def fails(lines):
        raise mine

    def open_block():
        return spawn_pipeline([child, "sleep-forever"], fails, ["cat"], stdin=PIPE, stop=SOON)

    for leave in (lambda one: None, lambda one: one.wait(), lambda one: one.result()):
        left, told = left_with(ValueError, open_block, leave)
        assert left is mine
        assert isinstance(told, BrokenPipeError)

    def write():
        with open_block() as one:
            write_on(one.stdin)

    with pytest.raises(ValueError, match="mine") as caught:
        write()
    assert caught.value is mine


def test_a_thread_that_communicates_changes_no_error():
    # Its sleep holds the output alone, so that the other thread waits on.
    program = (
        "import subprocess, sys\n"
        "subprocess.Popen(['sleep', '1000'], stdin=subprocess.DEVNULL)\n"
        "sys.stdin.read()\n"
        "sys.exit(3)"
    )
    argv = [sys.executable, "-c", program]
    told = []

    def consume(one):
        try:
            one.receiver().recv()
        except Exception as error:
            told.append(error)
        finally:
            one.stop()

    one = spawn(argv, stdin=PIPE, channel="from_child")
    consumer = Thread(target=consume, args=(one,))
    consumer.start()
    one.communicate()
    consumer.join()
    (error,) = told
    assert isinstance(error, queue.Closed)
    assert "exited with code 3" in str(error)


def test_a_thread_that_communicates_with_a_pipeline_changes_no_error():
    # It takes no input, and lives until it is stopped.
    one = spawn_pipeline(["sh", "-c", "exec <&-; sleep 1000"], ["cat"], stdin=PIPE, stop=SOON)
    talker = Thread(target=lambda: one.communicate(timeout=1000), daemon=True)
    talker.start()
    while one._communication is None:
        sleep(0.001)
    assert one.poll() is None
    one.stop()
    assert one.returncode is not None
    talker.join()


def test_an_error_of_asking_changes_no_error():
    def fails():
        raise RuntimeError

    one = spawn(FAILS, stdin=PIPE)
    one._past_result = one._stop_reason = fails
    with pytest.raises(BrokenPipeError) as caught, one:
        write_on(one.stdin)
    assert caught.value.__cause__ is None


def test_a_pipeline_tells_as_well(child):
    sleeps = [child, "sleep-forever"]
    with (
        pytest.raises(TimeoutExpired) as caught,
        spawn_pipeline(sleeps, sleeps, stdin=PIPE, stop=SOON, timeout=SHORT) as one,
    ):
        write_on(one.stdin)
    assert len(caught.value.result.stages) == 2
    two = spawn_pipeline(FAILS, ["cat"], stdin=PIPE)
    two.wait()
    with pytest.raises(BrokenPipeError, match="stage 1 of 2 exited with code 3"):
        write_on(two.stdin)


def test_a_stop_of_a_pipeline_that_lasts_is_waited_for():
    # It lets go of its stdin at once, and ends with the grace.
    argv = ["sh", "-c", "trap '' TERM; exec <&-; sleep 1000 & wait; wait"]
    one = spawn_pipeline(argv, ["cat"], stdin=PIPE, stop=Stop(grace=1.5), timeout=SHORT)
    with pytest.raises(TimeoutExpired) as caught:
        write_on(one.stdin)
    assert len(caught.value.result.stages) == 2
    assert isinstance(caught.value.__cause__, BrokenPipeError)


def test_a_block_of_a_pipeline_tells_of_a_stop_that_lasts():
    # It lets go of its stdin at once, and ends with the grace.
    argv = ["sh", "-c", "trap '' TERM; exec <&-; sleep 1000 & wait; wait"]
    with (
        pytest.raises(TimeoutExpired) as caught,
        spawn_pipeline(argv, ["cat"], stdin=PIPE, stop=Stop(grace=2), timeout=SHORT) as one,
    ):
        write_on(one.stdin)
    assert isinstance(caught.value.__cause__, BrokenPipeError)


def test_a_block_leaves_errors_of_others_as_they_are(child):
    other = spawn(FAILS, stdin=PIPE)
    with (
        pytest.raises(BrokenPipeError),
        spawn([child, "sleep-forever"], stop=SOON, timeout=SHORT) as one,
    ):
        write_on(other.stdin, one.stdout.read() or b"x")


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
