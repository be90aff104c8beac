//! Circles of pipes, which are proven.

use procwright_explain::{Pattern, Verdict};

use crate::stage::{Scene, hang, has_python, show};

#[test]
fn circles_of_pipes_are_proven() {
    use Pattern::{
        BothRead, BothWrite, Circle, LeakedWriteEnd, OwnWriteEnd, UnreadOutput, WaitBeforeClose,
        WaitBeforeRead,
    };
    use Verdict::Proven;
    if !has_python("circles_of_pipes_are_proven") {
        return;
    }
    show(&[
        Scene {
            says: "stderr of it is full",
            ..hang(
                "stderr is full while stdout is read",
                Proven,
                UnreadOutput,
                &["me", "child"],
                r"
child = python('os.write(2, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
child.stdout.read()
",
            )
        },
        Scene {
            says: "stdout of it is full",
            ..hang(
                "stdout is full while stderr is read",
                Proven,
                UnreadOutput,
                &["me", "child"],
                r"
child = python('os.write(1, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
child.stderr.read()
",
            )
        },
        // The shell has put its stdout aside, as descriptor 10.
        Scene {
            says: "reads something else, of sh",
            ..hang(
                "stderr of a shell's program is full while stdout is read",
                Proven,
                UnreadOutput,
                &["me", "shell", "seq"],
                r"
child = Popen(['sh', '-c', 'seq 200000 >&2; echo done'], stdout=PIPE, stderr=PIPE)
say(me=ME, shell=child.pid, seq=child_of(child.pid))
child.stdout.read()
",
            )
        },
        Scene {
            says: "waits for the end of sh",
            ..hang(
                "a wait before the read of a shell's program",
                Proven,
                WaitBeforeRead,
                &["me", "shell", "seq"],
                r"
child = Popen(['sh', '-c', 'seq 200000; echo done'], stdout=PIPE)
say(me=ME, shell=child.pid, seq=child_of(child.pid))
child.wait()
",
            )
        },
        hang(
            "a wait before the read",
            Proven,
            WaitBeforeRead,
            &["me", "child"],
            r"
child = python('os.write(1, bytes(1 << 20))', stdout=PIPE)
say(me=ME, child=child.pid)
child.wait()
",
        ),
        hang(
            "stdin is written while stdout fills",
            Proven,
            BothWrite,
            &["me", "child"],
            r"
child = Popen(['cat'], stdin=PIPE, stdout=PIPE)
say(me=ME, child=child.pid)
child.stdin.write(bytes(1 << 20))
",
        ),
        hang(
            "a wait for who reads until the end",
            Proven,
            WaitBeforeClose,
            &["me", "child"],
            r"
child = Popen(['cat'], stdin=PIPE)
say(me=ME, child=child.pid)
child.wait()
",
        ),
        hang(
            "each waits for a word",
            Proven,
            BothRead,
            &["me", "child"],
            r"
child = Popen(['cat'], stdin=PIPE, stdout=PIPE)
say(me=ME, child=child.pid)
child.stdout.read(1)
",
        ),
        Scene {
            says: "In python3",
            ..hang(
                "its own write end",
                Proven,
                OwnWriteEnd,
                &["me"],
                r"
signal.signal(signal.SIGINT, signal.SIG_DFL)
read, write = os.pipe()
say(me=ME)
os.read(read, 1)
",
            )
        },
        Scene {
            behind: &["me"],
            all_seen: true,
            ..hang(
                "a child inherits the write end of its stdin",
                Proven,
                OwnWriteEnd,
                &["child"],
                r"
read, write = os.pipe()
child = Popen(['cat'], stdin=read, pass_fds=[write])
os.close(read); os.close(write)
say(me=ME, child=child.pid)
child.wait()
",
            )
        },
        Scene {
            says: "has inherited the write end",
            all_seen: true,
            ..hang(
                "a sibling has the write end",
                Proven,
                LeakedWriteEnd,
                &["me", "one", "two"],
                r"
one = Popen(['cat'], stdin=PIPE)
two = Popen(['cat'], stdin=PIPE, pass_fds=[one.stdin.fileno()])
one.stdin.close()
say(me=ME, one=one.pid, two=two.pid)
one.wait()
",
            )
        },
        Scene {
            all_seen: true,
            ..hang(
                "three in a ring",
                Proven,
                Circle,
                &["a", "b", "c"],
                r"
pipes = [os.pipe() for _ in range(3)]
ring = [Popen(['cat'], stdin=pipes[i][0], stdout=pipes[(i + 1) % 3][1]) for i in range(3)]
for read, write in pipes:
    os.close(read); os.close(write)
say(me=ME, a=ring[0].pid, b=ring[1].pid, c=ring[2].pid)
for one in ring: one.wait()
",
            )
        },
        Scene {
            behind: &["me"],
            ..hang(
                "a shell waits for those who hang",
                Proven,
                UnreadOutput,
                &["parent", "child"],
                r"
code = '''
import os, subprocess, sys, time
time.sleep(0.1)
child = subprocess.Popen([sys.executable, '-c', 'import os; os.write(2, bytes(1 << 20))'],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
os.write(int(sys.argv[1]), str(child.pid).encode())
child.stdout.read()
'''
read, write = os.pipe()
parent = Popen([sys.executable, '-c', code, str(write)], pass_fds=[write])
child = int(os.read(read, 100))
say(me=ME, parent=parent.pid, child=child)
parent.wait()
",
            )
        },
        hang(
            "other threads that wait for locks",
            Proven,
            WaitBeforeClose,
            &["me", "child"],
            r"
lock = threading.Lock(); lock.acquire()
for _ in range(3): threading.Thread(target=lock.acquire, daemon=True).start()
child = Popen(['cat'], stdin=PIPE)
say(me=ME, child=child.pid)
child.wait()
",
        ),
        hang(
            "a poll without a limit",
            Proven,
            UnreadOutput,
            &["me", "child"],
            r"
child = python('os.write(2, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
poll = select.poll(); poll.register(child.stdout, select.POLLIN); poll.poll()
",
        ),
        hang(
            "an epoll without a limit",
            Proven,
            UnreadOutput,
            &["me", "child"],
            r"
child = python('os.write(2, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
poll = select.epoll(); poll.register(child.stdout, select.EPOLLIN); poll.poll()
",
        ),
        hang(
            "a select without a limit",
            Proven,
            UnreadOutput,
            &["me", "child"],
            r"
child = python('os.write(2, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
select.select([child.stdout], [], [])
",
        ),
    ]);
}

/// A user who has used up its budget of pages has pipes of 8 KiB, which is not to be seen of the
/// pipes themselves.
#[test]
fn that_a_pipe_may_be_small_is_said() {
    let test = "that_a_pipe_may_be_small_is_said";
    if !has_python(test) || !test_support::root_or_skip(test) {
        return;
    }
    show(&[Scene {
        says: "fs.pipe-user-pages-soft",
        ..hang(
            "a full pipe of a user with a thousand others",
            Verdict::Proven,
            Pattern::WaitBeforeRead,
            &["me", "child"],
            r"
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
# Nobody else's number.
os.setuid(54321)
budget = int(open('/proc/sys/fs/pipe-user-pages-soft').read())
kept = [os.pipe() for _ in range(budget // 16)]
child = Popen(['seq', '200000'], stdout=PIPE, cwd='/')
say(me=ME, child=child.pid)
child.wait()
",
        )
    }]);
}
