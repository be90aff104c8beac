//! Circles of locks of files.

use procwright_explain::{Pattern, Verdict};

use crate::stage::{Scene, hang, has_python, show};

#[test]
fn circles_of_locks_are_proven() {
    if !has_python("circles_of_locks_are_proven") {
        return;
    }
    show(&[Scene {
        all_seen: true,
        ..hang(
            "two files in the wrong order",
            Verdict::Proven,
            Pattern::FileLocks,
            &["a", "b"],
            r"
a, b = tempfile.TemporaryFile(), tempfile.TemporaryFile()
files = [f'/proc/{ME}/fd/{file.fileno()}' for file in (a, b)]
code = '''
first, second = open(sys.argv[1], 'r+'), open(sys.argv[2], 'r+')
fcntl.flock(first, fcntl.LOCK_EX)
os.write(1, b'x'); os.read(0, 1)
os.close(0); os.close(1)
fcntl.flock(second, fcntl.LOCK_EX)
'''
def locker(*files):
    return Popen([sys.executable, '-c', 'import fcntl, os, sys' + code, *files], stdin=PIPE, stdout=PIPE)
one, two = locker(*files), locker(*reversed(files))
one.stdout.read(1); two.stdout.read(1)
for each in (one, two): each.stdin.write(b'x'); each.stdin.flush()
say(me=ME, a=one.pid, b=two.pid)
one.wait()
",
        )
    }]);
    show(&[Scene {
        all_seen: true,
        says: "waits for a lock of a file that it holds itself",
        ..hang(
            "a lock that was inherited",
            Verdict::Proven,
            Pattern::FileLocks,
            &["taker"],
            r"
held = tempfile.TemporaryFile()
fcntl.flock(held, fcntl.LOCK_EX)
path = f'/proc/{ME}/fd/{held.fileno()}'
taker = Popen(['flock', path, 'true'], pass_fds=[held.fileno()])
say(me=ME, taker=taker.pid)
taker.wait()
",
        )
    }]);
}
