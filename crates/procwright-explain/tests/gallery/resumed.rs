//! Programs that were stopped in their sleep and go on: some calls do so as another one, which
//! does not say what they wait for.

use procwright_explain::{Pattern, Verdict};

use crate::stage::{Scene, hang, has_python, scene, show};

#[test]
fn who_was_stopped_and_goes_on_waits_as_before() {
    use Verdict::{Healthy, Input, Possible, Proven};
    if !has_python("who_was_stopped_and_goes_on_waits_as_before") {
        return;
    }
    let sleeps = |name, program| Scene {
        says: "sleeps until its time is up",
        ..scene(name, program, Healthy)
    };
    show(&[
        hang(
            "a poller that was stopped, and whose parent waits for it",
            Proven,
            Pattern::WaitBeforeClose,
            &["me", "child"],
            r"
child = python('import select; poll = select.poll(); poll.register(0, select.POLLIN); poll.poll()', stdin=PIPE)
resume(child.pid, 'poll')
say(me=ME, child=child.pid)
child.wait()
",
        ),
        Scene {
            says: "waits for stdin, pipe",
            ..scene(
                "a poller with a limit that was stopped",
                r"
child = python('import select; poll = select.poll(); poll.register(0, select.POLLIN); poll.poll(10**7)', stdin=PIPE)
resume(child.pid, 'poll')
say(me=ME, child=child.pid)
child.wait()
",
                Healthy,
            )
        },
        hang(
            "a poll of the terminal that was stopped",
            Input,
            Pattern::Terminal,
            &["program"],
            r"
terminal(sys.executable, '-c', 'import select; poll = select.poll(); poll.register(0, select.POLLIN); poll.poll()', resumed='poll')
",
        ),
        sleeps(
            "a wait for a thread with a limit that was stopped",
            r"
child = python('import threading; threading.Event().wait(10000)')
resume(child.pid, 'futex')
say(me=ME, child=child.pid)
child.wait()
",
        ),
        sleeps(
            "a sleep that was stopped",
            r"
child = Popen(['sleep', '10000'])
resume(child.pid, 'nanosleep')
say(me=ME, child=child.pid)
child.wait()
",
        ),
        Scene {
            says: "was interrupted",
            ..scene(
                "a call that was stopped, and that a filter does not let go on",
                r"
if os.uname().machine != 'x86_64': skip('the numbers of calls are those of x86-64')
child = python('''
import ctypes, select, struct
# restart_syscall (219) waits for an answer that nobody gives; all others pass.
code = b''.join(struct.pack('HBBI', *line) for line in [
    (0x20, 0, 0, 0), (0x15, 0, 1, 219), (0x06, 0, 0, 0x7fc00000), (0x06, 0, 0, 0x7fff0000)])
code = ctypes.create_string_buffer(code, len(code))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', 4, ctypes.addressof(code)), 16)
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
if libc.syscall(317, 1, 8, program) < 0: sys.exit(os.strerror(ctypes.get_errno()))
os.write(1, b'x')
poll = select.poll(); poll.register(0, select.POLLIN); poll.poll()
''', stdin=PIPE, stdout=PIPE)
if not child.stdout.read(1): skip('a filter of system calls that asks is not permitted')
resume(child.pid, 'poll')
say(me=ME, child=child.pid)
child.wait()
",
                Possible,
            )
        },
    ]);
}
