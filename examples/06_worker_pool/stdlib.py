"""Workers send their results through `multiprocessing.SimpleQueue`. One is killed.

It was in the middle of a result, and had the lock that all writers take. The rest of
the result never comes, and nobody else gets the lock.
"""

import array
import fcntl
import multiprocessing
import termios
import time


def work(results, result):
    results.put(result)


def unread(pipe):
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    one = context.Process(target=work, args=(results, b"x" * 1_000_000))
    one.start()
    while unread(results._reader.fileno()) < 4096:
        time.sleep(0.01)  # a pipe takes 64 KiB: it cannot get to the end
    one.kill()
    one.join()
    print("a worker was killed in the middle of a result", flush=True)
    other = context.Process(target=work, args=(results, b"done"))
    other.start()
    print("the next result:", results.get())
