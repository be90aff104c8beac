//! What could not be seen, and what may come from elsewhere, proves nothing.

use procwright_explain::{Pattern, Verdict};

use crate::stage::{Scene, hang, has_python, scene, show};

#[test]
fn what_was_not_seen_is_no_proof() {
    use Verdict::{Healthy, Possible};
    if !has_python("what_was_not_seen_is_no_proof") {
        return;
    }
    show(&[
        Scene {
            says: "",
            ..hang(
                "a handler that may be called",
                Possible,
                Pattern::WaitBeforeClose,
                &["me", "child"],
                r"
signal.signal(signal.SIGALRM, lambda *_: None)
child = Popen(['cat'], stdin=PIPE)
say(me=ME, child=child.pid)
child.wait()
",
            )
        },
        hang(
            "a pipe to oneself that a handler of SIGINT may feed",
            Possible,
            Pattern::OwnWriteEnd,
            &["me"],
            r"
read, write = os.pipe()
signal.signal(signal.SIGINT, lambda *_: os.write(write, b'x'))
say(me=ME)
os.read(read, 1)
",
        ),
        scene(
            "an epoll whose member has another number by now",
            r"
signal.signal(signal.SIGINT, signal.SIG_DFL)
idle = Popen(['sleep', '10000'], stdout=PIPE)
number = idle.stdout.fileno()
poll = select.epoll(); poll.register(number, select.EPOLLIN)
keep = os.dup(number)
read, write = os.pipe()
os.dup2(read, number); os.close(read)
say(me=ME, idle=idle.pid)
poll.poll()
",
            Healthy,
        ),
        hang(
            "a pipe to oneself that a handler may feed",
            Possible,
            Pattern::OwnWriteEnd,
            &["me"],
            r"
read, write = os.pipe()
signal.signal(signal.SIGTERM, lambda *_: os.write(write, b'x'))
say(me=ME)
os.read(read, 1)
",
        ),
        hang(
            "sockets may have time limits",
            Possible,
            Pattern::BothRead,
            &["me", "child"],
            r"
ours, theirs = socket.socketpair()
child = Popen(['cat'], stdin=theirs, stdout=theirs)
theirs.close()
say(me=ME, child=child.pid)
ours.recv(1)
",
        ),
        hang(
            "a FIFO may be opened by anybody",
            Possible,
            Pattern::BothRead,
            &["me", "child"],
            r"
path = os.path.abspath('fifo')
os.mkfifo(path)
keep = os.open(path, os.O_RDWR)
child = python(f'f = os.open({path!r}, os.O_RDONLY); os.write(1, b\'x\'); os.read(f, 1)', stdout=PIPE)
child.stdout.read(1)
write = os.open(path, os.O_WRONLY); os.close(keep)
say(me=ME, child=child.pid)
child.stdout.read(1)
",
        ),
        scene(
            "a thread that sleeps may yet read",
            r"
threading.Thread(target=time.sleep, args=[10000], daemon=True).start()
child = Popen(['cat'], stdin=PIPE)
say(me=ME, child=child.pid)
child.wait()
",
            Healthy,
        ),
        hang(
            "a poll with a limit",
            Verdict::Slow,
            Pattern::SlowReader,
            &["me", "child"],
            r"
child = python('os.write(2, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
select.select([child.stdout], [], [], 10000)
",
        ),
        scene(
            "somebody else has the write end, and sleeps",
            r"
child = Popen(['cat'], stdin=PIPE)
other = Popen(['sleep', '10000'], pass_fds=[child.stdin.fileno()])
say(me=ME, child=child.pid, other=other.pid)
child.wait()
",
            Healthy,
        ),
    ]);
}
