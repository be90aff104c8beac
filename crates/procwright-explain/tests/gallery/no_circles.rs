//! Hangs that are no circles: stops, FIFOs, slow readers, what holds an output open.

use procwright_explain::{Pattern, Verdict};

use crate::stage::{Scene, hang, has_python, show};

#[test]
fn hangs_that_are_no_circles() {
    use Verdict::{Possible, Slow, Stopped};
    if !has_python("hangs_that_are_no_circles") {
        return;
    }
    show(&[
        Scene {
            says: "nobody opens its other end",
            ..hang(
                "a FIFO that nobody reads",
                Possible,
                Pattern::FifoPartner,
                &["child"],
                r"
path = os.path.abspath('fifo')
os.mkfifo(path)
child = python(f'open({path!r}, \'w\')')
say(asked=child.pid, me=ME, child=child.pid)
child.wait()
",
            )
        },
        Scene {
            behind: &["me"],
            says: "/fifo",
            ..hang(
                "a FIFO that nobody writes",
                Possible,
                Pattern::FifoPartner,
                &["child"],
                r"
path = os.path.abspath('fifo')
os.mkfifo(path)
child = Popen(['cat', path])
say(me=ME, child=child.pid)
child.wait()
",
            )
        },
        Scene {
            says: "holds open",
            ..hang(
                "what a program has left behind holds its output",
                Possible,
                Pattern::HeldOpen,
                &["me"],
                r"
child = Popen(['sh', '-c', 'sleep 10000 & echo $!'], stdout=PIPE)
left = int(child.stdout.readline())
say(me=ME, child=child.pid, left=left)
child.stdout.read()
",
            )
        },
        Scene {
            behind: &["me"],
            says: "is stopped by SIGSTOP",
            ..hang(
                "a child is stopped",
                Stopped,
                Pattern::Stopped,
                &["child"],
                r"
child = Popen(['sleep', '10000'])
os.kill(child.pid, signal.SIGSTOP)
say(me=ME, child=child.pid)
child.wait()
",
            )
        },
        Scene {
            behind: &["me"],
            says: "is frozen, by the freezer of the cgroup /",
            ..hang(
                "a child is frozen, as by docker pause",
                Stopped,
                Pattern::Frozen,
                &["child"],
                r"
child = Popen(['sleep', '10000'])
freeze(child.pid)
say(me=ME, child=child.pid)
child.wait()
",
            )
        },
        Scene {
            says: "is frozen, by the freezer of the cgroup /",
            ..hang(
                "a child whose first thread has ended is frozen",
                Stopped,
                Pattern::Frozen,
                &["child"],
                r"
ends = r'''
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(10000,)).start()
os.close(1)
ctypes.CDLL(None).pthread_exit(None)
'''
child = Popen([sys.executable, '-c', ends], stdout=PIPE)
child.stdout.read()
while open(f'/proc/{child.pid}/task/{child.pid}/stat').read().rsplit(')', 1)[1].split()[0] != 'Z':
    time.sleep(0.01)
freeze(child.pid)
say(me=ME, child=child.pid)
child.wait()
",
            )
        },
        Scene {
            behind: &["writer", "me"],
            says: "cgroup.freeze",
            ..hang(
                "a stage is frozen while it reads",
                Stopped,
                Pattern::Frozen,
                &["reader"],
                r"
writer = Popen(['sh', '-c', 'read line; exec yes'], stdin=PIPE, stdout=PIPE)
reader = Popen(['cat'], stdin=writer.stdout, stdout=DEVNULL)
writer.stdout.close()
freeze(reader.pid)
writer.stdin.write(b'\n'); writer.stdin.close()
say(me=ME, reader=reader.pid, writer=writer.pid)
writer.wait()
",
            )
        },
        Scene {
            behind: &["writer", "me"],
            ..hang(
                "a stage is stopped",
                Stopped,
                Pattern::Stopped,
                &["reader"],
                r"
writer = Popen(['yes'], stdout=PIPE)
reader = Popen(['cat'], stdin=writer.stdout, stdout=DEVNULL)
writer.stdout.close()
os.kill(reader.pid, signal.SIGSTOP)
say(me=ME, reader=reader.pid, writer=writer.pid)
writer.wait()
",
            )
        },
        Scene {
            behind: &["me"],
            says: "does not read",
            ..hang(
                "a reader that sleeps",
                Slow,
                Pattern::SlowReader,
                &["writer", "reader"],
                r"
writer = Popen(['yes'], stdout=PIPE)
reader = Popen(['sleep', '10000'], stdin=writer.stdout)
writer.stdout.close()
say(me=ME, reader=reader.pid, writer=writer.pid)
writer.wait()
",
            )
        },
        Scene {
            behind: &["first"],
            ..hang(
                "the last stage holds up all",
                Slow,
                Pattern::SlowReader,
                &["second", "reader"],
                r"
first = Popen(['yes'], stdout=PIPE)
second = Popen(['cat'], stdin=first.stdout, stdout=PIPE)
reader = Popen(['sleep', '10000'], stdin=second.stdout)
first.stdout.close(); second.stdout.close()
say(me=ME, reader=reader.pid, second=second.pid, first=first.pid)
first.wait()
",
            )
        },
        Scene {
            behind: &["asked"],
            says: "in the background",
            ..hang(
                "a read of the terminal in the background",
                Stopped,
                Pattern::Background,
                &["child"],
                r"
read, write = os.pipe()
leader, master = pty.fork()
if leader == 0:
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.read(0, 1)
    os.write(write, str(child).encode())
    os.waitpid(child, 0)
    os._exit(0)
say(asked=leader, leader=leader, child=int(os.read(read, 100)))
signal.pause()
",
            )
        },
    ]);
}
