"""The same waits, asleep until something happens; and how the stranger ended."""

import resource
import subprocess

import procwright


def sleeps():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


child = subprocess.Popen(["sleep", "60"])
before = sleeps()
done, pending = procwright.wait([child], timeout=2)
assert not done and pending == [child]
print(f"a child: woke up {sleeps() - before} times in 2 s")

shell = subprocess.Popen(
    ["sh", "-c", "sleep 1 & echo $!; wait $!; exit 0"],
    stdout=subprocess.PIPE,
    text=True,
)
stranger = procwright.Process(int(shell.stdout.readline()))
before = sleeps()
exit = stranger.wait()
print(
    f"a stranger: woke up {sleeps() - before} times in 1 s, and it exited with code {exit.code}"
)

child.kill()
child.wait()  # the status of a child of yours stays yours
shell.communicate()
