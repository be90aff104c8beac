"""What doctor, lsfd, lsof, py-spy and strace say of programs that hang, as a table.

    bench/doctor_beside_others.py [PROCWRIGHT]    prints docs/reference/doctor-beside-others.md

A scene is a Python program that prints the process to ask about and the one that it waits
for. Each tool is asked about the first alone, as root, and a cell has what decides:

- doctor: its verdict and the name of the hang;
- lsfd, lsof: whether they name the other process;
- py-spy: the function at the top of the stack of the main thread;
- strace: the system call that the main thread is in.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PRELUDE = """
import fcntl, os, pty, select, signal, socket, sys, time
from subprocess import DEVNULL, PIPE, Popen
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.SIG_DFL)
ME = os.getpid()
time.sleep(0.1)
def say(asked, other): print(asked, other, flush=True)
"""

SCENES = {
    "stderr fills while stdout is read": """
child = Popen(['sh', '-c', 'seq 200000 >&2; echo done'], stdout=PIPE, stderr=PIPE)
say(ME, child.pid); child.stdout.read()
""",
    "a wait for the child before the read": """
child = Popen(['seq', '200000'], stdout=PIPE)
say(ME, child.pid); child.wait()
""",
    "stdin is written while stdout fills": """
child = Popen(['cat'], stdin=PIPE, stdout=PIPE)
say(ME, child.pid); child.stdin.write(bytes(1 << 20))
""",
    "a sibling has inherited the write end": """
one = Popen(['cat'], stdin=PIPE)
two = Popen(['cat'], stdin=PIPE, pass_fds=[one.stdin.fileno()])
one.stdin.close()
say(ME, two.pid); one.wait()
""",
    "both wait for a word over TCP": """
server = socket.create_server(('127.0.0.1', 0))
child = os.fork()
if child == 0:
    theirs, _ = server.accept(); server.close(); theirs.recv(1)
ours = socket.create_connection(server.getsockname()); server.close()
say(ME, child); ours.recv(1)
""",
    "both wait for an eventfd": """
one, two = os.eventfd(0), os.eventfd(0)
child = os.fork()
if child == 0: os.read(two, 8)
say(ME, child); os.read(one, 8)
""",
    "a reader that sleeps": """
child = Popen(['sleep', '10000'], stdin=PIPE)
say(ME, child.pid); child.stdin.write(bytes(1 << 20))
""",
    "a child is stopped": """
child = Popen(['sleep', '10000']); os.kill(child.pid, signal.SIGSTOP)
say(ME, child.pid); child.wait()
""",
    "what a child left behind holds its output": """
child = Popen(['sh', '-c', 'sleep 10000 & echo $!'], stdout=PIPE)
say(ME, int(child.stdout.readline())); child.stdout.read()
""",
    "a FIFO that nobody opens": """
os.mkfifo('fifo'); say(ME, 0); open('fifo', 'w')
""",
    "a read of the terminal": """
child, master = pty.fork()
if child == 0: input()
say(child, 0); signal.pause()
""",
    "a child that works (no hang)": """
child = Popen(['sleep', '10000'], stdout=PIPE)
say(ME, child.pid); child.stdout.read()
""",
}


def output(*words: str) -> str:
    ran = subprocess.run(words, capture_output=True, text=True, errors="replace")
    return ran.stdout + ran.stderr


def names(text: str, other: str) -> str:
    # lsfd has ENDPOINTS from 2.39 on.
    if other == "0" or "unknown column" in text:
        return "–"
    return "names it" if re.search(rf"\b{other}\b", text) else "not named"


def doctor(command: str, asked: str) -> str:
    told = json.loads(output(command, "doctor", "--json", asked))
    found = told["findings"]
    return f"{told['verdict']}, `{found[0]['pattern']}`" if found else told["verdict"]


def top_of_stack(asked: str) -> str:
    frames = re.findall(r"^\s+(\S+) \(", output("py-spy", "dump", "--pid", asked), re.M)
    return f"`{frames[0]}`" if frames else "–"


def system_call(asked: str, other: str) -> str:
    # strace shows the call that it finds when it attaches, and goes on until it is ended.
    text = output("timeout", "-s", "INT", "1", "strace", "-p", asked)
    call = re.search(r"^(\w+\([^,) ]*)", text, re.M)
    return f"`{call[1].replace(other, 'PID')}…`" if call else "–"


def row(command: str, name: str, program: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        running = subprocess.Popen(
            ["python3", "-c", PRELUDE + program],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            process_group=0,
            text=True,
        )
        asked, other = running.stdout.readline().split()
        time.sleep(1)
        try:
            cells = [
                name,
                doctor(command, asked),
                names(output("lsfd", "-Q", f"PID == {asked}", "-o", "PID,FD,ENDPOINTS"), other),
                names(output("lsof", "+E", "-p", asked), other),
                top_of_stack(asked),
                system_call(asked, other),
            ]
        finally:
            for pid in {asked, other} - {"0"}:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    return "| " + " | ".join(cells) + " |"


def version(*words: str) -> str:
    found = re.search(r"\d+(\.\d+)+", output(*words))
    return found[0] if found else "?"


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else "procwright"
    tools = {"lsfd": ["--version"], "lsof": ["-v"], "py-spy": ["--version"], "strace": ["-V"]}
    for tool in [command, *tools]:
        if shutil.which(tool) is None:
            sys.exit(f"there is no {tool}")
    versions = [f"{tool} {version(tool, *words)}" for tool, words in tools.items()]
    print("# doctor beside others\n")
    print(
        "What each says when it is asked about the process that does not go on, and about it "
        f"alone, as root: {', '.join(versions)}, Linux {os.uname().release.split('-')[0]}. "
        "`bench/doctor_beside_others.py` makes this page.\n"
    )
    print(
        "lsfd (`-o ENDPOINTS`) and lsof (`+E`) say who else has a conduit open: *names it* means "
        "that the process for which the first waits is among those, *not named* that it is not, "
        "– that there is no such process, or no such column (lsfd before 2.39). "
        "Neither says who waits, and what they name is the same where nothing hangs. py-spy has "
        "the function at the top of the stack, strace the call: of a circle each member has to be "
        "asked in turn. A doctor that says *possible* of a circle of pipes could not see somebody: "
        "here a process with an io_uring, or process 1.\n"
    )
    print("| | doctor | lsfd | lsof +E | py-spy dump | strace |")
    print("|---|---|---|---|---|---|")
    for name, program in SCENES.items():
        print(row(command, name, program), flush=True)
    print(
        "\npy-spy and strace stop the process for a moment, which doctor, lsfd and lsof do not. "
        "[dla](https://github.com/rouming/dla), which was not run here, looks for circles of "
        "pthread mutexes within programs by their stacks; there doctor sees that a thread waits, "
        "and not for whom."
    )


main()
