"""Closes a stream that a thread is reading. Never gets past the close."""

import subprocess
import threading
import time

# cat says nothing until it is told something.
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
reader = threading.Thread(target=child.stdout.readline)
reader.start()
time.sleep(0.5)
# The buffer has a lock, and the reader has that until a line comes.
child.stdout.close()
print("closed")
