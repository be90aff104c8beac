//! Waits over TCP connections of this machine, and for eventfds.

use procwright_explain::{Pattern, Verdict};
use test_support::skip;

use crate::stage::{Scene, hang, has_python, scene, show};

#[test]
fn both_sides_of_a_tcp_connection_are_found() {
    use Pattern::{BothRead, BothWrite, UnreadOutput, WaitBeforeClose};
    use Verdict::{Healthy, Possible};
    if !has_python("both_sides_of_a_tcp_connection_are_found") {
        return;
    }
    show(&[
        // A socket may have a time limit, so that none of this is proven.
        Scene {
            says: "the connection to 127.0.0.1:",
            ..hang(
                "each waits for a word over TCP",
                Possible,
                BothRead,
                &["me", "child"],
                r"
server = socket.create_server(('127.0.0.1', 0))
child = os.fork()
if child == 0:
    theirs, _ = server.accept(); server.close()
    theirs.recv(1); os._exit(0)
ours = socket.create_connection(server.getsockname()); server.close()
say(me=ME, child=child)
ours.recv(1)
",
            )
        },
        hang(
            "each writes over TCP",
            Possible,
            BothWrite,
            &["me", "child"],
            r"
server = socket.create_server(('127.0.0.1', 0))
child = os.fork()
if child == 0:
    theirs, _ = server.accept(); server.close()
    theirs.sendall(bytes(1 << 26)); os._exit(0)
ours = socket.create_connection(server.getsockname()); server.close()
say(me=ME, child=child)
ours.sendall(bytes(1 << 26))
",
        ),
        hang(
            "a log over TCP is full while the answer is read",
            Possible,
            UnreadOutput,
            &["me", "child"],
            r"
server = socket.create_server(('127.0.0.1', 0))
child = os.fork()
if child == 0:
    log = socket.create_connection(server.getsockname())
    answer = socket.create_connection(server.getsockname()); server.close()
    log.sendall(bytes(1 << 26)); os._exit(0)
log, _ = server.accept()
answer, _ = server.accept()
server.close()
say(me=ME, child=child)
answer.recv(1)
",
        ),
        Scene {
            says: "(fd 3)",
            ..hang(
                "a wait for the end of who was never accepted",
                Possible,
                WaitBeforeClose,
                &["me", "child"],
                r"
server = socket.create_server(('127.0.0.1', 0))
assert server.fileno() == 3
child = os.fork()
if child == 0:
    ours = socket.create_connection(server.getsockname()); server.close()
    ours.recv(1); os._exit(0)
say(me=ME, child=child)
os.waitpid(child, 0)
",
            )
        },
        Scene {
            says: "does not read it, so that the connection is full",
            ..hang(
                "a reader over TCP that sleeps",
                Verdict::Slow,
                Pattern::SlowReader,
                &["me", "child"],
                r"
server = socket.create_server(('127.0.0.1', 0))
child = os.fork()
if child == 0:
    theirs, _ = server.accept(); server.close()
    time.sleep(10000)
ours = socket.create_connection(server.getsockname()); server.close()
say(me=ME, child=child)
ours.sendall(bytes(1 << 26))
",
            )
        },
        Scene {
            says: "held by python3 (",
            ..scene(
                "a client of a server that works",
                r"
server = socket.create_server(('127.0.0.1', 0))
child = os.fork()
if child == 0:
    theirs, _ = server.accept(); server.close()
    time.sleep(10000)
ours = socket.create_connection(server.getsockname()); server.close()
say(asked=ME, me=ME, child=child)
ours.recv(1)
",
                Healthy,
            )
        },
        Scene {
            says: "waits for a connection to 127.0.0.1:",
            ..scene(
                "a server to which nobody connects",
                r"
server = socket.create_server(('127.0.0.1', 0))
say(me=ME)
server.accept()
",
                Healthy,
            )
        },
        Scene {
            says: "connections to 127.0.0.1:",
            ..scene(
                "a server with idle clients",
                r"
server = socket.create_server(('127.0.0.1', 0))
child = os.fork()
if child == 0:
    ours = socket.create_connection(server.getsockname()); server.close()
    ours.recv(1); os._exit(0)
theirs, _ = server.accept()
say(me=ME, child=child)
select.select([server, theirs], [], [])
",
                Healthy,
            )
        },
        Scene {
            says: "waits for an answer of 127.0.0.1:",
            ..scene(
                "a connection for which there is no place",
                r"
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(0)
kept = []
while True:
    one = socket.socket(); one.setblocking(False)
    one.connect_ex(server.getsockname())
    if not select.select([], [one], [], 0.2)[1]: break
    kept.append(one)
say(me=ME)
socket.create_connection(server.getsockname())
",
                Healthy,
            )
        },
    ]);
    if !std::path::Path::new("/proc/net/if_inet6").exists() {
        return skip("an IPv4 client of an IPv6 server", "there is no IPv6");
    }
    show(&[hang(
        "an IPv4 client of an IPv6 server",
        Possible,
        BothRead,
        &["me", "child"],
        r"
server = socket.create_server(('', 0), family=socket.AF_INET6, dualstack_ipv6=True)
child = os.fork()
if child == 0:
    theirs, _ = server.accept(); server.close()
    theirs.recv(1); os._exit(0)
ours = socket.create_connection(('127.0.0.1', server.getsockname()[1])); server.close()
say(me=ME, child=child)
ours.recv(1)
",
    )]);
}

#[test]
fn who_holds_an_eventfd_is_found() {
    use Verdict::{Healthy, Possible};
    if !has_python("who_holds_an_eventfd_is_found") {
        return;
    }
    show(&[
        // The system may count it up as well.
        Scene {
            says: "eventfd ",
            ..hang(
                "each waits for an eventfd of the other",
                Possible,
                Pattern::BothRead,
                &["me", "child"],
                r"
one, two = os.eventfd(0), os.eventfd(0)
child = os.fork()
if child == 0:
    os.read(two, 8); os._exit(0)
say(me=ME, child=child)
os.read(one, 8)
",
            )
        },
        Scene {
            says: "held by sleep (",
            ..scene(
                "an eventfd that a sleeper holds",
                r"
one = os.eventfd(0)
os.set_inheritable(one, True)
child = Popen(['sleep', '10000'], close_fds=False)
say(asked=ME, me=ME, child=child.pid)
os.read(one, 8)
",
                Healthy,
            )
        },
        scene(
            "an eventfd of one's own event loop",
            r"
one = os.eventfd(0)
lock = threading.Lock(); lock.acquire()
threading.Thread(target=lock.acquire, daemon=True).start()
poll = select.epoll(); poll.register(one, select.EPOLLIN)
say(me=ME)
poll.poll()
",
            Healthy,
        ),
    ]);
}
