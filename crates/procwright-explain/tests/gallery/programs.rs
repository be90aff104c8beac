//! Real programs: languages and their libraries, shells, and what people type.

use procwright_explain::{Pattern, Verdict};

use crate::stage::{Scene, hang, has_python, scene, show};

#[test]
fn parents_in_other_languages() {
    use Pattern::{BothRead, SlowReader, WaitBeforeRead};
    use Verdict::{Proven, Slow};
    if !has_python("parents_in_other_languages") {
        return;
    }
    show(&[
        // It has a thread that wakes up by the clock, so that it is taken for one that goes on.
        Scene {
            needs: &["ruby"],
            behind: &["shell"],
            says: "does not read it",
            ..hang(
                "popen3 of Ruby, which reads stdout",
                Slow,
                SlowReader,
                &["parent", "seq"],
                r"
parent = Popen(['ruby', '-ropen3', '-e', '''
sleep 0.1
Open3.popen3(\'sh\', \'-c\', \'seq 200000 >&2; echo done\') { |_, out, _, _| out.read }
'''])
say(me=ME, parent=parent.pid, shell=below(parent.pid, 'sh'), seq=below(parent.pid, 'seq'))
parent.wait()
",
            )
        },
        Scene {
            needs: &["perl"],
            ..hang(
                "open2 of Perl, whose words lie in its buffer",
                Proven,
                BothRead,
                &["parent", "child"],
                r"
parent = Popen(['perl', '-MIPC::Open2', '-e', '''
select(undef, undef, undef, 0.1);
my $pid = open2(my $out, my $in, \'cat\'); select(STDOUT);
open(my $buffered, \'>&\', $in); close $in; print $buffered \'1\n\'; <$out>;
'''])
say(me=ME, parent=parent.pid, child=child_of(parent.pid))
parent.wait()
",
            )
        },
        Scene {
            needs: &["perl"],
            says: "waits for its end",
            ..hang(
                "waitpid of Perl before the read",
                Proven,
                WaitBeforeRead,
                &["parent", "child"],
                r"
parent = Popen(['perl', '-MIPC::Open2', '-e', '''
select(undef, undef, undef, 0.1);
my $pid = open2(my $out, my $in, \'seq\', \'200000\'); waitpid $pid, 0;
'''])
say(me=ME, parent=parent.pid, child=child_of(parent.pid))
parent.wait()
",
            )
        },
        Scene {
            says: "waits for its end",
            ..hang(
                "join of Python's multiprocessing before the queue is emptied",
                Proven,
                WaitBeforeRead,
                &["me", "child"],
                r"
import multiprocessing
signal.signal(signal.SIGINT, signal.SIG_DFL)
fork = multiprocessing.get_context('fork')
queue = fork.Queue()
child = fork.Process(target=queue.put, args=[bytes(1 << 20)])
child.start()
say(me=ME, child=child.pid)
child.join()
",
            )
        },
        // Its helper threads wake up now and then: it is taken for one that goes on.
        Scene {
            needs: &["node"],
            says: "does not read it",
            ..hang(
                "a stdout that Node has paused",
                Slow,
                SlowReader,
                &["parent", "child"],
                r"
parent = Popen(['node', '-e', '''
const child = require(\'child_process\').spawn(\'seq\', [\'10000000\'], {stdio: [\'ignore\', \'pipe\', \'inherit\']});
child.stdout.pause(); setInterval(() => {}, 1000000);
'''])
say(me=ME, parent=parent.pid, child=child_of(parent.pid))
parent.wait()
",
            )
        },
        Scene {
            needs: &["go"],
            says: "does not read it",
            ..hang(
                "a parent in Go that reads stdout alone",
                Slow,
                SlowReader,
                &["parent", "child"],
                r#"
open('main.go', 'w').write('''package main
import ("io"; "os/exec")
func main() {
    command := exec.Command("sh", "-c", "seq 200000 >&2; echo done")
    out, _ := command.StdoutPipe()
    command.StderrPipe()
    command.Start()
    io.ReadAll(out)
}
''')
environment = dict(os.environ, GO111MODULE='off')
subprocess.run(['go', 'build', '-o', 'parent', 'main.go'], env=environment, check=True)
parent = Popen(['./parent'])
say(me=ME, parent=parent.pid, child=below(parent.pid, 'seq'))
parent.wait()
"#,
            )
        },
        Scene {
            needs: &["java"],
            says: "does not read it",
            ..hang(
                "waitFor of Java before the read",
                Slow,
                SlowReader,
                &["parent", "child"],
                r#"
open('Main.java', 'w').write('''class Main {
    public static void main(String[] words) throws Exception {
        new ProcessBuilder("seq", "200000").start().waitFor();
    }
}
''')
parent = Popen(['java', '-Xshare:auto', '-XX:TieredStopAtLevel=1', 'Main.java'])
say(me=ME, parent=parent.pid, child=child_of(parent.pid))
parent.wait()
"#,
            )
        },
    ]);
}

#[test]
fn shells_and_make() {
    use Pattern::{BothRead, Jobserver, OwnWriteEnd, SlowReader, Terminal};
    use Verdict::{Healthy, Input, Possible, Proven, Slow};
    if !has_python("shells_and_make") {
        return;
    }
    show(&[
        Scene {
            needs: &["make"],
            says: "waits for a token of make's jobserver",
            ..hang(
                "a token of make's jobserver that nobody gives back",
                Possible,
                Jobserver,
                &["taker"],
                r#"
open('take.py', 'w').write('''
import os, re, select, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
place = re.search(r'--jobserver-auth=(fifo:(\S+)|(\d+),\d+)', os.environ['MAKEFLAGS'])
tokens = int(place[3]) if place[3] else os.open(place[2], os.O_RDWR)
# One more than there are, none of which comes back.
while True:
    select.select([tokens], [], [])
    try: os.read(tokens, 1)
    except BlockingIOError: pass
''')
open('Makefile', 'w').write(f'all:\n\t+{sys.executable} take.py\n')
make = Popen(['make', '-s', '-j3'])
say(me=ME, make=make.pid, taker=below(make.pid, 'python3'))
make.wait()
"#,
            )
        },
        // A make up to 4.3 tells everybody of it, also those to whom it does not leave it.
        hang(
            "a pipe by the numbers of a jobserver that was left to nobody",
            Proven,
            OwnWriteEnd,
            &["child"],
            r"
child = python('''
signal.signal(signal.SIGINT, signal.SIG_DFL)
time.sleep(0.1)
read, write = os.pipe()
assert (read, write) == (3, 4)
os.read(read, 1)
''', env=dict(os.environ, MAKEFLAGS=' -j2 --jobserver-auth=3,4'))
say(me=ME, child=child.pid)
child.wait()
",
        ),
        Scene {
            needs: &["make"],
            behind: &["asked"],
            ..hang(
                "a recipe of make that asks",
                Input,
                Terminal,
                &["program"],
                r"
open('Makefile', 'w').write('all:\n\t@cat\n')
terminal('make', '-j2', asks='cat')
",
            )
        },
        Scene {
            needs: &["bash"],
            says: "does not read it",
            ..hang(
                "tee to a process substitution that does not read",
                Slow,
                SlowReader,
                &["tee", "sleeper"],
                r"
shell = Popen(['bash', '-c', 'yes | tee >(sleep 10000) > /dev/null'])
say(me=ME, shell=shell.pid, tee=below(shell.pid, 'tee'), sleeper=below(shell.pid, 'sleep'))
shell.wait()
",
            )
        },
        Scene {
            needs: &["bash"],
            says: "held by sleep (",
            ..scene(
                "cat of a process substitution that has nothing to say",
                r"
shell = Popen(['bash', '-c', 'cat <(exec sleep 10000); true'])
say(me=ME, shell=shell.pid)
shell.wait()
",
                Healthy,
            )
        },
        Scene {
            needs: &["bash"],
            all_seen: true,
            ..hang(
                "a coprocess that waits for words as its shell does",
                Verdict::Proven,
                BothRead,
                &["shell", "child"],
                r"
shell = Popen(['bash', '-c', 'coproc cat; read -u ${COPROC[0]}'])
say(me=ME, shell=shell.pid, child=child_of(shell.pid))
shell.wait()
",
            )
        },
        Scene {
            behind: &["yes"],
            says: "does not read it",
            ..hang(
                "a pipeline of a shell whose last stage has something else to do",
                Slow,
                SlowReader,
                &["cat", "last"],
                r"
shell = Popen(['sh', '-c', 'yes | cat | (exec sleep 10000)'])
while len(stages := children(shell.pid)) < 3: pass
say(me=ME, shell=shell.pid, yes=stages[0], cat=stages[1], last=stages[2])
shell.wait()
",
            )
        },
        Scene {
            says: "held by sleep (",
            ..scene(
                "an orphan that holds the output of a step of CI",
                r"
step = Popen(['sh', '-c', 'sleep 10000 & echo $!'], stdout=PIPE)
left = int(step.stdout.readline())
step.wait()
say(me=ME, step=ME, left=left)
step.stdout.read()
",
                Healthy,
            )
        },
        Scene {
            behind: &["far"],
            ..hang(
                "a relay over a socketpair, as ssh has it, between two who wait",
                Possible,
                BothRead,
                &["me", "relay"],
                r"
ours, theirs = socket.socketpair()
relay = os.fork()
if relay == 0:
    ours.close()
    far = Popen(['cat'], stdin=PIPE, stdout=PIPE)
    while True:
        for ready in select.select([theirs, far.stdout], [], [])[0]:
            ready.recv(1)
theirs.close()
say(me=ME, relay=relay, far=below(relay, 'cat'))
ours.recv(1)
",
            )
        },
    ]);
}

#[test]
fn programs_that_ask() {
    use Verdict::Input;
    if !has_python("programs_that_ask") {
        return;
    }
    let input = |name, needs, program| Scene {
        needs,
        ..hang(name, Input, Pattern::Terminal, &["program"], program)
    };
    let behind = |scene| Scene {
        behind: &["asked"],
        ..scene
    };
    show(&[
        behind(input(
            "git log, by its pager",
            &["git", "less"],
            r"
subprocess.run(['git', 'init', '-q', '.'], check=True)
subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-q', '--allow-empty', '-m', 'one'], check=True)
os.environ.update(GIT_PAGER='less', LESS='-+F')
terminal('git', 'log', asks='less')
",
        )),
        input("less", &["less"], "terminal('less', '/etc/passwd')"),
        // It has a thread that waits for signals: timers of the C library.
        behind(input(
            "git commit, by its editor",
            &["git", "vi"],
            r"
subprocess.run(['git', 'init', '-q', '.'], check=True)
os.environ.update(GIT_EDITOR='vi', GIT_AUTHOR_NAME='a', GIT_AUTHOR_EMAIL='a@b', GIT_COMMITTER_NAME='a', GIT_COMMITTER_EMAIL='a@b')
terminal('git', 'commit', '--allow-empty', asks='vi')
",
        )),
        input(
            "an interactive sqlite3",
            &["sqlite3"],
            "terminal('sqlite3', 'file')",
        ),
        input(
            "sudo, for a password",
            &["sudo", "setpriv"],
            r"
nobody = ['setpriv', '--reuid=65534', '--clear-groups', 'sudo', '-k']
# Without a terminal it says that it needs one, or why it asks for nothing at all.
said = subprocess.run([*nobody, '-n', 'true'], env=dict(os.environ, LC_ALL='C'), stdin=DEVNULL, stderr=PIPE, text=True).stderr
'password' in said or 'authentication' in said or skip(said)
terminal(*nobody, 'true')
",
        ),
        // Nothing is removed, whatever is answered: dpkg is not called, but shown.
        input(
            "apt, whether to continue",
            &["apt-get", "less"],
            r"
plan = subprocess.run(['apt-get', '-s', '-o', 'Debug::NoLocking=true', 'remove', 'less'], stdin=DEVNULL, stdout=PIPE, text=True).stdout
'Remv less ' in plan or skip('it would not remove less')
terminal('apt-get', '-o', 'APT::Get::Assume-Yes=false', '-o', 'Debug::pkgDPkgPM=true', '-o', 'Debug::NoLocking=true', 'remove', 'less')
",
        ),
        input(
            "a program in a window of tmux",
            &["tmux"],
            r"
socket_path = os.path.abspath('tmux')
subprocess.run(['tmux', '-S', socket_path, '-f', '/dev/null', 'new-session', '-d', 'exec cat'], check=True)
pane, server = (int(word) for word in subprocess.run(
    ['tmux', '-S', socket_path, 'display-message', '-p', '#{pane_pid} #{pid}'],
    check=True, stdout=PIPE).stdout.split())
say(asked=pane, program=pane, server=server)
signal.pause()
",
        ),
    ]);
}

#[test]
fn programs_that_wait_for_others() {
    use Verdict::Healthy;
    if !has_python("programs_that_wait_for_others") {
        return;
    }
    show(&[Scene {
        needs: &["ssh"],
        says: "held by sleep (",
        ..scene(
            "ssh to a server that does not answer",
            r"
ssh = Popen(['ssh', '-F', 'none', '-o', 'BatchMode=yes', '-o', 'ProxyCommand=sleep 10000', 'nowhere'])
say(asked=ssh.pid, ssh=ssh.pid)
ssh.wait()
",
            Healthy,
        )
    }]);
}
