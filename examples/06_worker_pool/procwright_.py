"""The same with procwright: what was not sent whole was never there."""

import multiprocessing
import time

from procwright.queue import Receiver, ReceiverDead, Sender


def killed(invitation, said):
    sender = Sender.attach(invitation)
    with sender.reserve(1_000_000) as result:
        result[:500_000] = b"x" * 500_000
        said.set()
        time.sleep(3600)


def work(invitation):
    Sender.attach(invitation).send(b"done")


def take_and_die(said):
    receiver = Receiver()
    said.send(receiver.invite())
    time.sleep(3600)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    receiver = Receiver()
    said = context.Event()
    one = context.Process(target=killed, args=(receiver.invite(), said))
    one.start()
    said.wait()
    one.kill()
    one.join()
    print("a worker was killed in the middle of a result")
    other = context.Process(target=work, args=(receiver.invite(),))
    other.start()
    print("the next result:", bytes(receiver.recv()))
    other.join()

    # And the other way round: who sends is told that nobody receives.
    ours, theirs = context.Pipe()
    master = context.Process(target=take_and_die, args=(theirs,))
    master.start()
    sender = Sender.attach(ours.recv())
    sender.send(b"a result")
    master.kill()
    master.join()
    try:
        sender.send(b"another")
    except ReceiverDead as error:
        print("the receiver was killed:", error)
