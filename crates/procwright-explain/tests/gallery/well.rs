//! Programs that are well.

use procwright_explain::Verdict;

use crate::stage::{has_python, scene, show};

#[test]
fn what_does_not_hang_is_left_alone() {
    use Verdict::{Busy, Healthy};
    if !has_python("what_does_not_hang_is_left_alone") {
        return;
    }
    let well = |name, program| scene(name, program, Healthy);
    show(&[
        well("a sleep", "say(me=ME); time.sleep(10000)"),
        scene("a loop", "say(me=ME)\nwhile True: pass", Busy),
        well("a wait for a signal", "say(me=ME); signal.pause()"),
        well(
            "a server",
            r"
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()
say(me=ME); server.accept()
",
        ),
        well(
            "an idle service",
            r"
stop = threading.Event(); signal.signal(signal.SIGTERM, lambda *_: stop.set())
say(me=ME); stop.wait()
",
        ),
        well(
            "a follower of a file",
            r"
child = Popen(['tail', '-f', '/dev/null'])
say(me=ME, child=child.pid); child.wait()
",
        ),
        well(
            "an idle pipe from a writer that sleeps",
            r"
writer = Popen(['sleep', '10000'], stdout=PIPE)
reader = Popen(['cat'], stdin=writer.stdout)
writer.stdout.close()
say(me=ME, writer=writer.pid, reader=reader.pid); reader.wait()
",
        ),
        well(
            "a child that sleeps",
            r"
child = Popen(['sleep', '10000'])
say(me=ME, child=child.pid); child.wait()
",
        ),
        well(
            "a poll of the terminal with a timer",
            r"
terminal(sys.executable, '-c', 'import select; select.select([0], [], [], 10000)')
",
        ),
        well(
            "a terminal beside a network",
            r"
terminal(sys.executable, '-c', '''
import select, socket
server = socket.socket(); server.bind((\'127.0.0.1\', 0)); server.listen()
select.select([0, server], [], [])
''')
",
        ),
        well(
            "a thread at the terminal beside one that waits for a time",
            r"
terminal(sys.executable, '-c', '''
import os, threading, time
threading.Thread(target=os.read, args=[0, 1], daemon=True).start()
time.sleep(10000)
''')
",
        ),
        scene(
            "a thread at the terminal beside one that works",
            r"
terminal(sys.executable, '-c', '''
import os, threading
threading.Thread(target=os.read, args=[0, 1], daemon=True).start()
while True: pass
''')
",
            Busy,
        ),
        well(
            "a program with a terminal that sleeps",
            "terminal('sleep', '10000')",
        ),
        well(
            "a program in the background of a terminal",
            r"
read, write = os.pipe()
leader, master = pty.fork()
if leader == 0:
    child = Popen(['sleep', '10000'], process_group=0)
    os.write(write, str(child.pid).encode())
    child.wait()
    os._exit(0)
say(asked=leader, leader=leader, child=int(os.read(read, 100)))
signal.pause()
",
        ),
    ]);
}
