"""Waits two seconds for a child that does not end, and says how often it woke up.

`Popen.wait(timeout)` sleeps and looks, up to twenty times a second, until CPython
3.15. For a process that is not a child there is nothing at all but `os.kill(pid, 0)`
in a loop of one's own, which is what this does second: it can mean a stranger who
got the number, and never learns how the process ended.
"""

import os
import resource
import subprocess
import sys
import time


def sleeps():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


child = subprocess.Popen(["sleep", "60"])
before = sleeps()
try:
    child.wait(timeout=2)
except subprocess.TimeoutExpired:
    print(f"a child: woke up {sleeps() - before} times in 2 s")

# A stranger: the child of a shell.
shell = subprocess.Popen(
    ["sh", "-c", "sleep 1 & echo $!; wait $!; exit 0"],
    stdout=subprocess.PIPE,
    text=True,
)
stranger = int(shell.stdout.readline())
before = sleeps()
while True:
    try:
        os.kill(stranger, 0)
    except ProcessLookupError:
        break
    time.sleep(0.05)
print(f"a stranger: woke up {sleeps() - before} times in 1 s, and it ended somehow")

child.kill()
child.wait()
shell.communicate()
sys.exit(0)
