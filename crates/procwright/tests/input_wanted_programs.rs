//! Real programs on a terminal: which of them wait for input, and which only seem to.
//!
//! A sample is one look ([`input_wait`]) at a program, which knows nothing of those before it:
//! under `STRESS=1` there are 1,000 of each program, 100 each at ten starts of it. Programs are
//! looked at side by side, so that the machine is busy. What waits is looked at until it is seen
//! to for the first time, since nothing announces that it has begun, and has to be seen to wait
//! from then on; what does not is looked at from its first instruction on.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

use std::path::Path;
use std::process::{Command as StdCommand, Stdio};

use procwright::process::Stop;
use procwright::terminal::Size;
use procwright::{Child, Command, Stdin};
use procwright_explain::input_wait;
use test_support::{figure, say, scaled, skip, stress, watchdog};

/// Programs that no machine is asked to have for the sake of a row.
const LARGE: [&str; 4] = ["apt-get", "curl", "node", "npm"];

struct Row {
    name: &'static str,
    /// Programs without which there is nothing to be seen.
    needs: &'static [&'static str],
    /// Lines of a shell that have to succeed before the first start, in the folder of the row.
    /// They exit with 77 where the machine does not permit what is to be seen.
    prepare: &'static str,
    /// What is started, as a line of a shell, on a terminal of its own.
    line: &'static str,
    /// False if it takes long to begin, or waits in a way that is up to its release and to what
    /// is installed beside it: it is looked at under `STRESS=1` alone.
    usual: bool,
}

const fn row(name: &'static str, needs: &'static [&'static str], line: &'static str) -> Row {
    Row {
        name,
        needs,
        prepare: "",
        line,
        usual: true,
    }
}

const fn under_stress(
    name: &'static str,
    needs: &'static [&'static str],
    line: &'static str,
) -> Row {
    Row {
        usual: false,
        ..row(name, needs, line)
    }
}

/// Programs that wait for what a person types.
const WAITING: &[Row] = &[
    row("cat", &[], "exec cat"),
    row("read -p", &["bash"], "exec bash -c 'read -p \"Go on? \" answer'"),
    row("input()", &["python3"], "exec python3 -c 'input(\"Go on? \")'"),
    row(
        "getpass",
        &["python3"],
        "python3 -c 'import getpass; getpass.getpass()'; true",
    ),
    row("head | tail", &[], "head -n 1 | tail -n 1; true"),
    row(
        "a prompt with timers that end",
        &["python3"],
        "exec python3 -c 'import select\nfor limit in .05, .3, .1, None: select.select([0],[],[],limit)'",
    ),
    // It asks for the password of somebody who has no right to it, or none at all.
    Row {
        prepare: "[ $(id -u) = 0 ] || exit 77
setpriv --reuid=65534 --clear-groups sudo -k -n true 2>&1 | grep -q 'password\\|authentication' || exit 77",
        ..row(
            "sudo -S",
            &["sudo", "setpriv"],
            "exec setpriv --reuid=65534 --clear-groups sudo -k -S true",
        )
    },
    // It asks whether the server is the right one, on loopback, and nobody logs in.
    Row {
        prepare: "dropbearkey -t ed25519 -f key
cat > server.py <<'END'
import os, socket, subprocess
server = socket.create_server((\"127.0.0.1\", 0))
print(server.getsockname()[1], flush=True)
os.close(1)
peer = server.accept()[0]
subprocess.Popen([\"dropbear\", \"-i\", \"-r\", \"key\"], stdin=peer, stdout=peer)
peer.close()
server.accept()
END",
        ..row(
            "ssh",
            &["ssh", "dropbear", "dropbearkey", "python3"],
            "mkfifo port.$$; python3 server.py > port.$$ & read port < port.$$; \
             exec ssh -F none -o UserKnownHostsFile=known -o StrictHostKeyChecking=ask \
             -p $port nobody@127.0.0.1",
        )
    },
    // All of its state is in this folder, its packages are two lines, and dpkg is not called.
    Row {
        prepare: "mkdir -p state/lists/partial cache/archives/partial etc/apt.conf.d
echo \"deb [trusted=yes] file:$PWD/repository ./\" > etc/sources.list
: > status
mkdir repository
for name in one two; do
    depends=; [ $name = two ] || depends='Depends: two
'
    printf 'Package: %s\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\n%sFilename: ./%s.deb\\nSize: 1\\nSHA256: %064d\\nDescription: none\\n\\n' $name \"$depends\" $name 0
done > repository/Packages
cat > apt.conf <<END
Dir::State \"$PWD/state\"; Dir::State::status \"$PWD/status\"; Dir::Cache \"$PWD/cache\"; Dir::Etc \"$PWD/etc\";
Dir::Log \"$PWD\"; APT::Sandbox::User \"root\"; APT::Get::Assume-Yes \"false\"; Debug::NoLocking \"true\"; Debug::pkgDPkgPM \"true\";
Acquire::Languages \"none\";
END
APT_CONFIG=$PWD/apt.conf apt-get update",
        ..under_stress(
            "apt install",
            &["apt-get"],
            "APT_CONFIG=$PWD/apt.conf exec apt-get install one",
        )
    },
    Row {
        prepare: "git init -q . && git config user.name a && git config user.email a@b",
        ..under_stress(
            "git commit",
            &["git", "vi"],
            "GIT_EDITOR=vi exec git commit --allow-empty",
        )
    },
    under_stress("bash -i", &["bash"], "exec bash --norc -i"),
    under_stress("python -i", &["python3"], "exec python3 -q -i"),
    under_stress("node", &["node"], "exec node"),
    // Its garbage collector has timers: it waits without a limit only when these are over.
    under_stress("npm init", &["npm"], "HOME=$PWD npm_config_update_notifier=false exec npm init"),
    under_stress("less", &["less"], "exec less /etc/passwd"),
    under_stress("vi", &["vi"], "exec vi /nonexistent/file"),
    under_stress("gdb at its prompt", &["gdb"], "exec gdb -q -nx --args sleep 600"),
    under_stress(
        "git, for a name",
        &["git"],
        "exec git -c credential.helper= credential fill",
    ),
];

/// Programs that do not, though they read, poll, have a terminal or stop for a while.
const OTHERS: &[Row] = &[
    row("sleep", &[], "exec sleep 600"),
    row("a shell's wait", &[], "sleep 600 & wait"),
    row("cat of an idle pipe", &[], "sleep 600 | cat"),
    row("a loop that works", &[], "while :; do :; done"),
    row(
        "a loop of short sleeps",
        &[],
        "while :; do sleep 0.001; done",
    ),
    row(
        "cat of a pipe with a word now and then",
        &[],
        "while :; do echo x; sleep 0.002; done | cat > /dev/null",
    ),
    row("timeout", &["timeout"], "timeout 600 sleep 600"),
    row(
        "a poll loop with a timer",
        &["python3"],
        "exec python3 -c 'import select,sys\nwhile 1: select.select([sys.stdin],[],[],0.01)'",
    ),
    row(
        "an event loop with a timer and a reader of stdin",
        &["python3"],
        "exec python3 -c '
import asyncio, sys
async def main():
    asyncio.get_running_loop().add_reader(0, sys.stdin.readline)
    while True:
        await asyncio.sleep(0.3)
print(\"q to leave: \", end=\"\", flush=True)
asyncio.run(main())'",
    ),
    row(
        "a progress bar that can be stopped by a key",
        &["python3"],
        "exec python3 -c '
import itertools, select, tty
tty.setcbreak(0)
for step in itertools.count():
    print(\"\\r\", step, \"% \", end=\"\", flush=True)
    select.select([0], [], [], 0.2)'",
    ),
    row("watch", &["watch"], "exec watch -n 0.3 true"),
    row("top", &["top"], "exec top -d 0.3"),
    row(
        "a read of a socket",
        &["python3"],
        "exec python3 -c 'import socket\na, b = socket.socketpair()\na.recv(1)'",
    ),
    row(
        "git, again and again",
        &["git"],
        "while :; do git --version > /dev/null; done",
    ),
    // Half of what it says that there is to come.
    row(
        "a download that stalls, by urllib",
        &["python3"],
        "exec python3 -c '
import socket, threading, urllib.request
server = socket.create_server((\"127.0.0.1\", 0))
def serve():
    peer = server.accept()[0]
    peer.recv(65536)
    peer.sendall(b\"HTTP/1.0 200 OK\\r\\nContent-Length: 20\\r\\n\\r\\n0123456789\")
    threading.Event().wait()
threading.Thread(target=serve, daemon=True).start()
urllib.request.urlopen(\"http://127.0.0.1:%d/\" % server.getsockname()[1]).read()'",
    ),
    Row {
        prepare: "cat > server.py <<'END'
import os, socket, threading
server = socket.create_server((\"127.0.0.1\", 0))
print(server.getsockname()[1], flush=True)
os.close(1)
while True:
    peer = server.accept()[0]
    peer.recv(65536)
    peer.sendall(b\"HTTP/1.0 200 OK\\r\\nContent-Length: 20\\r\\n\\r\\n0123456789\")
END",
        ..row(
            "a download that stalls, by curl",
            &["curl", "python3"],
            "mkfifo port.$$; python3 server.py > port.$$ & read port < port.$$; \
             exec curl -s http://127.0.0.1:$port/",
        )
    },
    Row {
        prepare: "for n in $(seq 400); do echo \"int f$n(int a) { return a * $n % 7; }\"; done > big.c",
        ..row(
            "a compile",
            &["cc"],
            "while :; do cc -O2 -c big.c -o big.$$.o; cat big.c | cc -pipe -x c -S -o /dev/null -; done",
        )
    },
    under_stress("less that follows", &["less"], "exec less +F /etc/passwd"),
    under_stress(
        "Node that looks at something, and takes keys",
        &["node"],
        "exec node -e '
process.stdin.setRawMode(true);
process.stdin.on(\"data\", () => process.exit());
process.stdout.write(\"waiting, q to leave: \");
setInterval(() => require(\"fs\").statSync(\"/\"), 300)'",
    ),
    under_stress(
        "gdb that runs sleep",
        &["gdb"],
        "exec gdb -q -nx -batch -ex run --args sleep 600",
    ),
];

/// Starts of each program, and looks at each start.
fn starts() -> u64 {
    scaled(1, 10)
}

/// True if there is such a program, also where only root would look for it.
fn is_there(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin"]);
    let mut found = folders.map(|folder| Path::new(folder).join(program));
    found.any(|program| program.exists())
}

/// With what only root would look for.
fn path() -> String {
    std::env::var("PATH").unwrap_or_default() + ":/usr/sbin"
}

/// Prepares a row in its folder; why it cannot be looked at, if so.
fn prepare(row: &Row, folder: &Path) -> Result<(), String> {
    let prepared = StdCommand::new("sh")
        .args(["-ec", row.prepare])
        .env("PATH", path())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    match prepared.status.code() {
        Some(0) => Ok(()),
        Some(77) => Err(String::from("not permitted here")),
        _ => panic!("{}: {prepared:?}", row.name),
    }
}

fn start(row: &Row, folder: &Path) -> Child {
    let command = Command::shell(row.line)
        .pty(Size::default())
        .stdin(Stdin::Pipe);
    let command = command.env("PATH", path()).env("TERM", "xterm").cwd(folder);
    command.stop(Stop::kill()).spawn().expect("it starts")
}

/// Calls `look_at` with each row that can be seen here, side by side, and its folder.
fn side_by_side(rows: &[Row], look_at: impl Fn(&Row, &Path) + Sync) {
    let look_at = &look_at;
    std::thread::scope(|scope| {
        for row in rows.iter().filter(|row| row.usual || stress()) {
            scope.spawn(move || {
                if let Some(missing) = row.needs.iter().find(|one| !is_there(one)) {
                    let missing = format!("there is no {missing}");
                    return match row.needs.iter().any(|one| LARGE.contains(one)) {
                        true => say(&format!("SKIPPED {}: {missing}", row.name)),
                        false => skip(row.name, &missing),
                    };
                }
                let folder = tempfile::tempdir().expect("a folder");
                match prepare(row, folder.path()) {
                    Ok(()) => look_at(row, folder.path()),
                    Err(why) => say(&format!("SKIPPED {}: {why}", row.name)),
                }
            });
        }
    });
}

#[test]
fn none_of_those_that_wait_is_missed() {
    side_by_side(WAITING, |row, folder| {
        let looks = scaled(5, 100);
        let mut missed = 0;
        for _ in 0..starts() {
            let _watchdog = watchdog(row.name);
            let child = start(row, folder);
            let look = || input_wait(child.pid(), None).expect("it is there");
            // Nothing announces that it has begun.
            while look().is_none() {}
            for _ in 0..looks {
                match look() {
                    Some(seen) => assert!(seen.waiting.terminal, "{}: {seen:?}", row.name),
                    None => missed += 1,
                }
            }
            child.stop();
        }
        told(row, looks, missed, "missed");
    });
}

#[test]
fn none_of_the_others_is_said_to_wait() {
    side_by_side(OTHERS, |row, folder| {
        let looks = scaled(20, 100);
        let mut wrong = 0;
        for _ in 0..starts() {
            let _watchdog = watchdog(row.name);
            let child = start(row, folder);
            for _ in 0..looks {
                if let Some(seen) = input_wait(child.pid(), None).expect("it is there") {
                    say(&format!("{}: {seen:?}", row.name));
                    wrong += 1;
                }
            }
            // What it has started in groups of their own does not hear of the terminal's end.
            child.stop();
        }
        told(row, looks, wrong, "said to wait");
    });
}

/// Tells how many of the looks were wrong, which has to be none.
fn told(row: &Row, looks: u64, wrong: u64, how: &str) {
    if stress() {
        let (starts, all) = (starts(), starts() * looks);
        figure(&format!(
            "{}: {all} looks at {starts} starts, {wrong} {how}",
            row.name
        ));
    }
    assert_eq!(wrong, 0, "{}: {how}", row.name);
}
