"""The same with procwright: the close returns, and the reader learns of it."""

import threading

import procwright

child = procwright.spawn(["cat"], stdin=procwright.PIPE)
told = []


def read():
    try:
        child.stdout.readline()
    except procwright.StreamClosed as closed:
        told.append(closed)


reader = threading.Thread(target=read)
reader.start()
child.stdout.close()
print("closed")
reader.join()
print(f"the reader was told: {told[0]}")

# Nobody reads what it writes any more, and it learns that as well.
child.stdin.write(b"hello?\n")
child.stdin.close()
print(
    f"cat: {procwright.run(['kill', '-l', str(-child.wait())], text=True).stdout.strip()}"
)
