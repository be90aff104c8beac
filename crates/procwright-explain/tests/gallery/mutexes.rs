//! Mutexes in memory that processes share.

use procwright_explain::{Pattern, Verdict};

use crate::stage::{Scene, hang, has_python, scene, show};

/// What each of these programs begins with: mutexes at places of shared memory, locked through
/// the C library.
macro_rules! with_mutexes {
    ($program:literal) => {
        concat!(
            r"
import ctypes, mmap
try: os.confstr('CS_GNU_LIBC_VERSION')
except ValueError: skip('the layout of a mutex is known of glibc alone')
libc = ctypes.CDLL(None)
# Of a file, which programs that share no address open by its name.
file = tempfile.TemporaryFile(); file.truncate(65536)
PATH = f'/proc/{ME}/fd/{file.fileno()}'
memory = mmap.mmap(file.fileno(), 65536)
anonymous = mmap.mmap(-1, 4096)

def at(offset, memory=memory):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory, offset)))

def mutex(where, robust=False, kind=0):
    'Of the default type, which anybody may unlock; of kind 1, which is recursive, its holder.'
    attributes = ctypes.create_string_buffer(64)
    libc.pthread_mutexattr_init(attributes)
    libc.pthread_mutexattr_setpshared(attributes, 1)
    libc.pthread_mutexattr_settype(attributes, kind)
    if robust: libc.pthread_mutexattr_setrobust(attributes, 1)
    assert libc.pthread_mutex_init(where, attributes) == 0
    return where

def lock(where):
    return libc.pthread_mutex_lock(where)

def unlock(where):
    return libc.pthread_mutex_unlock(where)

def fork(work):
    pid = os.fork()
    if pid == 0:
        try: work()
        finally: os._exit(0)
    return pid

# Another program, which has the memory at another address, and from its second page on too.
OTHER = '''
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
file = open(sys.argv[1], 'r+b')
memory = mmap.mmap(file.fileno(), 4096, offset=4096)
file.close()
def lock(offset):
    where = ctypes.addressof(ctypes.c_char.from_buffer(memory, offset - 4096))
    return libc.pthread_mutex_lock(ctypes.c_void_p(where))
first, second = map(int, sys.argv[2:])
lock(first)
os.write(1, b'x'); os.read(0, 1)
os.close(0); os.close(1)
lock(second)
'''
def other(*offsets):
    words = [sys.executable, '-c', OTHER, PATH, *map(str, offsets)]
    return Popen(words, stdin=PIPE, stdout=PIPE)
",
            $program
        )
    };
}

#[test]
fn circles_of_mutexes_are_proven() {
    if !has_python("circles_of_mutexes_are_proven") {
        return;
    }
    let circle =
        |name, names, program| hang(name, Verdict::Proven, Pattern::Mutexes, names, program);
    show(&[
        Scene {
            behind: &["me"],
            says: "each wait for a mutex in shared memory that the other holds",
            ..circle(
                "two mutexes in the wrong order, by two programs",
                &["a", "b"],
                with_mutexes!(
                    r"
for offset in (4096, 5000): mutex(at(offset), kind=1)
one, two = other(4096, 5000), other(5000, 4096)
one.stdout.read(1); two.stdout.read(1)
for each in (one, two): each.stdin.write(b'x'); each.stdin.flush()
say(me=ME, a=one.pid, b=two.pid)
one.wait()
"
                ),
            )
        },
        circle(
            "three robust mutexes, in a ring",
            &["a", "b", "c"],
            with_mutexes!(
                r"
for offset in (4096, 5000, 6000): mutex(at(offset), robust=True)
ring = [other(4096, 5000), other(5000, 6000), other(6000, 4096)]
for each in ring: each.stdout.read(1)
for each in ring: each.stdin.write(b'x'); each.stdin.flush()
say(me=ME, **{name: each.pid for name, each in zip('abc', ring)})
ring[0].wait()
"
            ),
        ),
        Scene {
            says: "that it holds itself",
            all_seen: true,
            ..circle(
                "a mutex that is locked twice",
                &["a"],
                with_mutexes!(
                    r"
twice = mutex(at(0, anonymous))
a = fork(lambda: (lock(twice), lock(twice)))
say(me=ME, a=a)
os.waitpid(a, 0)
"
                ),
            )
        },
    ]);
}

#[test]
fn who_could_unlock_a_mutex_of_the_default_type_is_a_doubt() {
    if !has_python("who_could_unlock_a_mutex_of_the_default_type_is_a_doubt") {
        return;
    }
    let possible = |name, pattern, names, program| Scene {
        says: "could unlock it: python3",
        ..hang(name, Verdict::Possible, pattern, names, program)
    };
    let proven = |name, pattern, names, program| Scene {
        all_seen: true,
        ..hang(name, Verdict::Proven, pattern, names, program)
    };
    show(&[
        possible(
            "a gate that a child opens",
            Pattern::Mutexes,
            &["me"],
            with_mutexes!(
                r"
gate = mutex(at(0, anonymous))
lock(gate)
child = fork(lambda: (time.sleep(10000), unlock(gate)))
say(me=ME, child=child)
lock(gate)
"
            ),
        ),
        proven(
            "a gate that nobody else has",
            Pattern::Mutexes,
            &["me"],
            with_mutexes!(
                r"
gate = mutex(at(0, anonymous))
lock(gate)
say(me=ME)
lock(gate)
"
            ),
        ),
        proven(
            "a gate whose child waits for it as well",
            Pattern::Mutexes,
            &["me"],
            with_mutexes!(
                r"
gate = mutex(at(0, anonymous))
lock(gate)
child = fork(lambda: (lock(gate), unlock(gate)))
say(me=ME, child=child)
lock(gate)
"
            ),
        ),
        possible(
            "a mutex of the dead that another unlocks",
            Pattern::DeadOwner,
            &["waiter"],
            with_mutexes!(
                r"
held = mutex(at(0, anonymous))
holder = fork(lambda: lock(held))
os.waitpid(holder, 0)
other = fork(lambda: (time.sleep(10000), unlock(held)))
waiter = fork(lambda: lock(held))
say(me=ME, waiter=waiter, other=other)
os.waitpid(waiter, 0)
"
            ),
        ),
        proven(
            "a mutex of the dead that its holder alone could unlock",
            Pattern::DeadOwner,
            &["waiter"],
            with_mutexes!(
                r"
held = mutex(at(0, anonymous), kind=1)
holder = fork(lambda: lock(held))
os.waitpid(holder, 0)
other = fork(lambda: (time.sleep(10000), unlock(held)))
waiter = fork(lambda: lock(held))
say(me=ME, waiter=waiter, other=other)
os.waitpid(waiter, 0)
"
            ),
        ),
        possible(
            "two mutexes in the wrong order, one of which another unlocks",
            Pattern::Mutexes,
            &["a", "b"],
            with_mutexes!(
                r"
for offset in (4096, 5000): mutex(at(offset))
one, two = other(4096, 5000), other(5000, 4096)
one.stdout.read(1); two.stdout.read(1)
for each in (one, two): each.stdin.write(b'x'); each.stdin.flush()
say(me=ME, a=one.pid, b=two.pid)
time.sleep(10000)
unlock(at(4096))
one.wait()
"
            ),
        ),
    ]);
}

#[test]
fn a_holder_that_has_the_memory_no_more_is_no_proof() {
    if !has_python("a_holder_that_has_the_memory_no_more_is_no_proof") {
        return;
    }
    show(&[Scene {
        behind: &["me"],
        says: "is gone, or has that memory no more",
        ..hang(
            "a holder that has executed another program",
            Verdict::Possible,
            Pattern::DeadOwner,
            &["waiter"],
            with_mutexes!(
                r"
held = mutex(at(0, anonymous), kind=1)
holder = fork(lambda: (lock(held), os.execvp('sleep', ['sleep', '10000'])))
while open(f'/proc/{holder}/comm').read() != 'sleep\n': time.sleep(0.01)
waiter = fork(lambda: lock(held))
say(me=ME, waiter=waiter, holder=holder)
os.waitpid(waiter, 0)
"
            ),
        )
    }]);
}

#[test]
fn a_mutex_and_a_wait_for_a_child_make_a_circle() {
    if !has_python("a_mutex_and_a_wait_for_a_child_make_a_circle") {
        return;
    }
    show(&[Scene {
        says: "waits for a mutex in shared memory that",
        ..hang(
            "a parent that holds a mutex waits for its child",
            Verdict::Proven,
            Pattern::Circle,
            &["me", "child"],
            with_mutexes!(
                r"
held = mutex(at(0, anonymous), kind=1)
lock(held)
child = fork(lambda: lock(held))
say(me=ME, child=child)
os.waitpid(child, 0)
"
            ),
        )
    }]);
}

#[test]
fn a_mutex_of_the_dead_is_proven() {
    if !has_python("a_mutex_of_the_dead_is_proven") {
        return;
    }
    let dead = |name, program| Scene {
        behind: &["me"],
        all_seen: true,
        says: "which held it, has ended",
        ..hang(
            name,
            Verdict::Proven,
            Pattern::DeadOwner,
            &["waiter"],
            program,
        )
    };
    show(&[
        dead(
            "a mutex whose holder was killed",
            with_mutexes!(
                r"
held = mutex(at(0, anonymous))
holder = fork(lambda: (lock(held), os.kill(os.getpid(), signal.SIGKILL)))
os.waitpid(holder, 0)
waiter = fork(lambda: lock(held))
say(me=ME, waiter=waiter)
os.waitpid(waiter, 0)
"
            ),
        ),
        dead(
            "a mutex whose holder is a zombie",
            with_mutexes!(
                r"
held = mutex(at(4096), kind=1)
holder = fork(lambda: lock(held))
os.waitid(os.P_PID, holder, os.WEXITED | os.WNOWAIT)
waiter = fork(lambda: lock(held))
say(me=ME, waiter=waiter)
os.waitpid(waiter, 0)
"
            ),
        ),
    ]);
}

#[test]
fn mutexes_that_are_given_back_are_left_alone() {
    if !has_python("mutexes_that_are_given_back_are_left_alone") {
        return;
    }
    let well = |name, says, program| Scene {
        says,
        ..scene(name, program, Verdict::Healthy)
    };
    show(&[
        well(
            "a mutex whose holder sleeps",
            "waits for a mutex in shared memory, held by python3",
            with_mutexes!(
                r"
held = mutex(at(0, anonymous))
lock(held)
waiter = fork(lambda: lock(held))
say(me=ME, waiter=waiter)
time.sleep(10000)
"
            ),
        ),
        well(
            "a robust mutex of the dead",
            "sleeps until its time is up",
            with_mutexes!(
                r"
held = mutex(at(0, anonymous), robust=True)
holder = fork(lambda: (lock(held), os.kill(os.getpid(), signal.SIGKILL)))
os.waitpid(holder, 0)
waiter = fork(lambda: (lock(held), time.sleep(10000)))
say(me=ME, waiter=waiter)
os.waitpid(waiter, 0)
"
            ),
        ),
        well(
            "a mutex that another thread of the program holds",
            "waits for a mutex in shared memory",
            with_mutexes!(
                r"
held = mutex(at(0, anonymous))
def work():
    has_it = threading.Event()
    def hold(): lock(held); has_it.set(); threading.Event().wait()
    threading.Thread(target=hold).start()
    has_it.wait()
    lock(held)
a = fork(work)
say(me=ME, a=a)
os.waitpid(a, 0)
"
            ),
        ),
        well(
            "a word that is no mutex",
            "waits for a lock or another thread",
            with_mutexes!(
                r"
# As a mutex that is not shared by processes would have it: 2, 0, this process, 1, 0.
words = (ctypes.c_int * 5).from_buffer(anonymous)
words[:] = [2, 0, ME, 1, 0]
FUTEX = {'x86_64': 202, 'aarch64': 98}.get(os.uname().machine) or skip('the number of futex')
a = fork(lambda: libc.syscall(FUTEX, ctypes.byref(words), 0, 2, None, None, 0))
say(me=ME, a=a)
os.waitpid(a, 0)
"
            ),
        ),
    ]);
}
