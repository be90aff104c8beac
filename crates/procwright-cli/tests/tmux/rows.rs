//! The table.

use rustix::process::Signal;

use crate::row::Step::{
    Answer, Asleep, Cursor, Gone, Has, Keys, KillProgram, Line, Look, Prompt, Resize, Shows, Text,
};
use crate::row::{Row, compare};

/// Each row is a test of its name.
macro_rules! rows {
    ($($(#[doc = $doc:literal])+ $name:ident { $($field:ident: $value:expr),* $(,)? })*) => { $(
        $(#[doc = $doc])+
        #[test]
        fn $name() {
            compare(stringify!($name), &Row { $($field: $value,)* ..Row::PLAIN });
        }
    )* };
}

/// Says that it is there, and again when it goes on.
const JOB: (&str, &str) = (
    "job.py",
    "\
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGCONT, lambda *_: os.write(1, b'again\\n'))
os.write(1, b'on\\n')
while True:
    signal.pause()
",
);

/// Says that it is there, and sleeps.
const ON: (&str, &str) = ("on.sh", "echo on; exec sleep 1000\n");

/// Three screens of lines.
const LINES: &str = "seq -f 'line %03g' 72 >lines";

const BY_CODE: &str = "a program that a signal has ended makes 128 and its number, which is no \
                       signal to the shell";
const TOLD: &str = "who waits for the terminal in the background is told of";
const NO_STOP: &str = "Ctrl-Z is typed into its own terminal, and there nobody could let the program go on, \
                       so the system stops nobody";
const OWN_INPUT: &str = "its stdin is the caller's pipe, and nobody types on its terminal";

rows! {
    /// Text is typed, the file is written.
    vim {
        needs: &["vim"],
        steps: &[
            Line("$W vim --clean a.txt"), Shows("\"a.txt\" [New]"),
            Keys("i"), Shows("-- INSERT --"), Text("hello"), Cursor("hello"), Has("1,6 "), Look,
            Keys("Escape"), Gone("-- INSERT --"), Line(":wq"), Prompt,
            Line("cat a.txt"), Prompt,
        ],
    }

    /// Vim is stopped in the middle, and the shell works meanwhile.
    vim_stopped {
        needs: &["vim"],
        steps: &[
            Line("$W vim --clean a.txt"), Shows("\"a.txt\" [New]"),
            Keys("i"), Shows("-- INSERT --"), Text("hello"), Cursor("hello"),
            Keys("Escape"), Gone("-- INSERT --"), Keys("C-z"), Prompt,
            Line("echo $?; jobs; stty -a | grep -o '.icanon'"), Prompt, Look,
            Line("fg"), Shows("~"), Has("hello"), Keys("o"), Shows("-- INSERT --"),
            Text("again"), Cursor("again"), Has("2,6 "), Look,
            Keys("Escape"), Gone("-- INSERT --"), Line(":wq"), Prompt,
            Line("cat a.txt"), Prompt,
        ],
        not_on_a_pty: Some(NO_STOP),
    }

    /// Pages, a search, the end.
    less {
        needs: &["less"],
        steps: &[
            Line(LINES), Prompt, Line("$W less lines"), Cursor("lines"),
            Text(" "), Shows("line 024"), Cursor(":"), Text("/070"), Keys("Enter"), Shows("line 070"),
            Cursor("(END)"), Look, Text("q"), Prompt,
        ],
    }

    /// Stopped twice, with a page in between.
    less_stopped {
        needs: &["less"],
        steps: &[
            Line(LINES), Prompt, Line("$W less lines"), Cursor("lines"),
            Keys("C-z"), Prompt, Line("echo $?"), Prompt, Line("fg"), Shows("line 001"), Cursor(":"),
            Text(" "), Shows("line 024"), Cursor(":"), Keys("C-z"), Prompt,
            Line("fg"), Shows("line 024"), Cursor(":"), Look, Text("q"), Prompt,
        ],
        not_on_a_pty: Some(NO_STOP),
    }

    /// Text from a pipe, keys from the terminal.
    less_behind_a_pipe {
        needs: &["less"],
        steps: &[
            Line("seq -f 'line %03g' 72 | $W less"), Shows("line 001"), Cursor(":"),
            Text(" "), Shows("line 024"), Cursor(":"), Text("q"), Prompt,
        ],
        not_on_a_pty: Some(OWN_INPUT),
    }

    /// A line is edited, Ctrl-C is answered, Ctrl-D ends it.
    python {
        needs: &["python3"],
        steps: &[
            Line("$W python3 -q"), Cursor(">>>"), Text("6*78"), Keys("BSpace Enter"), Shows("42"),
            Cursor(">>>"), Text("never"), Cursor(">>> never"), Keys("C-c"), Has("KeyboardInterrupt"),
            Cursor(">>>"), Keys("C-d"), Prompt,
        ],
    }

    /// A shell with jobs of its own.
    bash {
        needs: &["python3"],
        files: &[JOB],
        steps: &[
            Line("$W env PS1='inner> ' bash --norc -i"), Cursor("inner>"),
            Line("python3 job.py"), Shows("on"), Asleep, Keys("C-z"), Has("Stopped"), Cursor("inner>"),
            Answer("inner>", "jobs"), Answer("inner>", "fg"), Shows("again"),
            Keys("C-c"), Cursor("inner>"), Line("echo $?"), Shows("130"), Cursor("inner>"),
            Line("exit 7"), Prompt,
        ],
    }

    /// A zsh with a job, like the bash above.
    zsh {
        needs: &["python3", "zsh"],
        files: &[JOB],
        steps: &[
            Line("$W env PS1='inner> ' zsh -f"), Cursor("inner>"),
            Line("python3 job.py"), Shows("on"), Asleep, Keys("C-z"), Has("suspended"), Cursor("inner>"),
            Line("fg"), Shows("again"), Keys("C-c"), Cursor("inner>"),
            Line("echo $?"), Shows("130"), Cursor("inner>"), Line("exit 7"), Prompt,
        ],
    }

    /// A shell that stops itself, from a group of its own.
    bash_suspended {
        steps: &[
            Line("$W env PS1='inner> ' bash --norc -i"), Cursor("inner>"),
            Line("suspend"), Prompt, Line("echo $?; jobs"), Prompt, Line("fg"), Shows("$W"), Cursor("inner>"),
            Line("exit 7"), Prompt,
        ],
        not_on_a_pty: Some("what it wrote right before its stop may be shown when it goes on"),
    }

    /// A prompt without a line's end.
    sh_read {
        steps: &[
            Line("$W sh -c 'printf \"name? \"; read x; echo \"it is $x\"; exit 5'"), Cursor("name?"),
            Line("Ada"), Shows("it is Ada"), Prompt,
        ],
    }

    /// A password is not echoed.
    password {
        needs: &["python3"],
        steps: &[
            Line("$W python3 -c 'import getpass; print(len(getpass.getpass()))'"),
            Cursor("Password:"), Line("secret"), Shows("6"), Prompt,
        ],
    }

    /// Two of them, read from `/dev/tty`; the second is broken off.
    ssh_keygen {
        needs: &["ssh-keygen"],
        steps: &[
            Line("$W ssh-keygen -q -t ed25519 -f key"), Has("(empty for no passphrase):"),
            Line("secret"), Cursor("Enter same passphrase again:"), Keys("C-c"), Prompt,
        ],
    }

    /// No server listens.
    ssh {
        needs: &["ssh"],
        steps: &[Line("$W ssh -F none -p 1 127.0.0.1"), Prompt],
    }

    /// sudo runs a program as another user, or says that it may not.
    sudo {
        needs: &["sudo"],
        files: &[ON],
        steps: &[
            Line("$W sudo -n sh on.sh || echo on"), Shows("on"), Keys("C-c"), Prompt,
        ],
        // `^C` stands in front of the prompt, where there is one already.
        blur: &["^C"],
    }

    /// The editor is a grandchild.
    git_commit {
        needs: &["git", "vim"],
        steps: &[
            Line("export GIT_EDITOR='vim --clean' GIT_CONFIG_COUNT=2 \\"),
            Answer("more>", "GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=ada \\"),
            Answer("more>", "GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=ada@example.org"), Prompt,
            Line("git init -q -b main . && echo x >x && git add x"), Prompt,
            Line("$W git commit"), Has("Please enter the commit message"),
            Keys("i"), Shows("-- INSERT --"), Text("First"), Cursor("First"),
            Keys("Escape"), Gone("-- INSERT --"), Line(":wq"), Prompt,
            Line("git log --format=%s | cat"), Prompt,
        ],
        // The commit's number holds the time.
        blur: &["(root-commit)"],
    }

    /// A screen that is drawn by the clock.
    top {
        needs: &["top", "tput"],
        steps: &[
            Line("tput smcup; $W top; s=$?; tput rmcup; (exit $s)"), Has("load average"),
            Text("q"), Prompt,
        ],
    }

    /// A pager that another program starts.
    man {
        needs: &["less", "man"],
        files: &[("page.1", ".TH PAGE 1\n.SH NAME\npage \\- does a thing\n")],
        steps: &[
            Line("MANPAGER=less $W man ./page.1"), Has("does a thing"), Text("q"), Prompt,
        ],
    }

    /// Text is typed, the file is written.
    nano {
        needs: &["nano"],
        steps: &[
            Line("$W nano -I a.txt"), Has("GNU nano"), Text("hello"), Cursor("hello"),
            Keys("C-o"), Has("File Name to Write: a.txt"), Keys("Enter"), Has("[ Wrote 1 line ]"),
            Has("^X Exit"),
            Look, Keys("C-x"), Prompt, Line("cat a.txt"), Prompt,
        ],
    }

    /// Ctrl-C is for the program that it holds.
    gdb {
        needs: &["gdb"],
        files: &[("ask.sh", "echo on; read x\n")],
        steps: &[
            Line("$W gdb -q -nx -iex 'set debuginfod enabled off' --args sh ask.sh"),
            Answer("(gdb)", "set confirm off"),
            // The interrupt comes in the read: in a write gdb would show where.
            Answer("(gdb)", "run"), Shows("on"), Asleep, Keys("C-c"), Has("SIGINT"), Cursor("(gdb)"),
            Line("print 6*7"), Shows("$1 = 42"), Cursor("(gdb)"), Line("quit"), Prompt,
        ],
        // The addresses are the machine's.
        blur: &["0x", " in ", "warning"],
    }

    /// No.
    dialog {
        needs: &["dialog"],
        steps: &[
            Line("$W dialog --yesno 'Go on?' 7 30"), Has("< No  >"), Keys("Tab Enter"), Prompt,
        ],
    }

    /// A line of SQL.
    sqlite {
        needs: &["sqlite3"],
        steps: &[
            Line("$W sqlite3"), Cursor("sqlite>"), Line("select 6*7;"), Shows("42"),
            Cursor("sqlite>"), Keys("C-d"), Prompt,
        ],
    }

    /// A terminal in the terminal.
    script {
        needs: &["script"],
        files: &[ON],
        steps: &[Line("$W script -q -c 'sh on.sh' /dev/null"), Shows("on"), Keys("C-c"), Prompt],
        // The line has the time.
        blur: &["Script "],
    }

    /// Modes that a program changes on purpose stay.
    stty {
        steps: &[Line("$W stty -echo"), Prompt],
        not_on_a_pty: Some("it is its own terminal that it changes"),
    }

    /// Colours and columns, as on a terminal.
    ls {
        steps: &[
            Line("mkdir one; touch two; ln -s two three; chmod +x two"), Prompt,
            Line("$W ls --color=auto"), Prompt,
        ],
    }

    /// Lines go in and come out, Ctrl-D ends it.
    cat {
        steps: &[
            Line("$W cat | tr a-z A-Z; echo ${PIPESTATUS[@]}"), Shows("--"), Line("hello"), Keys("C-d"), Prompt,
        ],
        not_on_a_pty: Some("what it writes for the terminal is not what it writes into a pipe"),
    }

    /// Ctrl-C ends it, and the shell knows.
    interrupt {
        files: &[ON],
        steps: &[Line("$W sh on.sh"), Shows("on"), Keys("C-c"), Prompt],
    }

    /// One Ctrl-C ends the loop around it.
    interrupt_a_loop {
        files: &[ON],
        steps: &[
            Line("while :; do $W sh on.sh; done"), Shows("on"), Keys("C-c"), Prompt,
        ],
    }

    /// A program that goes on after Ctrl-C goes on under us, and the loop as well.
    interrupt_refused {
        files: &[("trap.sh", "trap 'echo no' INT; echo on $1; until read x; do :; done; echo end $1\n")],
        steps: &[
            Line("for i in 1 2; do $W sh trap.sh $i; done"), Shows("on 1"), Asleep, Keys("C-c"),
            Has("no"), Keys("Enter"), Shows("end 1"), Shows("on 2"), Keys("Enter"), Shows("end 2"), Prompt,
        ],
    }

    /// Ctrl-\ ends it.
    quit {
        files: &[("on.sh", "ulimit -c 0; echo on; exec sleep 1000\n")],
        steps: &[
            Line("stty -echoctl"), Prompt, Line("$W sh on.sh"), Shows("on"), Keys("C-\\"), Prompt,
        ],
        may: &[("Quit", BY_CODE)],
    }

    /// Stopped, looked at, sent to the background, ended there.
    background {
        files: &[ON],
        steps: &[
            Line("$W sh on.sh"), Shows("on"), Keys("C-z"), Prompt, Line("echo $?; jobs"), Prompt,
            Line("bg"), Prompt, Line("jobs"), Prompt, Line("kill %1; wait %1; echo $?"), Prompt,
        ],
        not_on_a_pty: Some(NO_STOP),
    }

    /// A job in the background that wants to read is stopped, and goes on in front.
    background_reads {
        steps: &[
            Line("$W cat >copy & while ! jobs | grep -q Stopped; do :; done"), Prompt,
            Line("fg"), Shows("$W cat > copy"), Line("hello"), Keys("C-d"), Prompt,
            Line("cat copy"), Prompt,
        ],
        not_on_a_pty: Some("what is typed before it has made the terminal raw is echoed twice"),
        may: &[
            ("procwright: cat wants to read from the terminal", TOLD),
            ("  hint: fg ", TOLD),
        ],
    }

    /// The program stops itself by SIGSTOP.
    stops_itself {
        steps: &[
            Line("$W sh -c 'kill -STOP $$; echo back'"), Prompt, Line("echo $?; jobs"), Prompt,
            Line("fg"), Shows("back"), Prompt,
        ],
    }

    /// The reader of the pipeline goes first.
    pipeline {
        steps: &[Line("$W yes | head -3; echo ${PIPESTATUS[@]}"), Prompt],
        not_on_a_pty: Some("it writes to its terminal, which does not break as a pipe does"),
    }

    /// The new size is told and can be asked for.
    resized {
        needs: &["python3", "tput"],
        files: &[(
            "size.py",
            "\
import os, signal
last = [80]
def changed(*_):
    columns = os.get_terminal_size().columns
    if columns != last[0]:
        last[0] = columns
        os.write(1, b'%d\\n' % columns)
signal.signal(signal.SIGWINCH, changed)
os.write(1, b'on\\n')
input()
os.execlp('tput', 'tput', 'cols')
",
        )],
        steps: &[
            Line("$W python3 size.py"), Shows("on"), Asleep, Resize(100, 30), Shows("100"),
            Keys("Enter"), Prompt,
        ],
    }

    /// Killed with the terminal raw: the shell puts it right.
    killed_raw {
        steps: &[Line("$W sh -c 'stty raw -echo; kill -9 $$'"), Prompt],
        may: &[("Killed", BY_CODE)],
    }

    /// Another signal that programs answer. It writes a byte at a time: a line that shows
    /// has not ended yet.
    dd {
        steps: &[
            Line("$W sh -c 'echo on; exec dd bs=1 conv=ucase'"), Shows("on"), Line("abc"), Shows("ABC"), Cursor(""),
            KillProgram(Signal::USR1), Has(" copied,"), Keys("C-d"), Shows("4+0 records in"), Prompt,
        ],
        blur: &[" copied,"],
    }

    /// SIGUSR1 goes to the job, as a shell sends it.
    dd_job {
        steps: &[
            Line("$W sh -c 'echo on; exec dd bs=1 conv=ucase'"), Shows("on"), Line("abc"), Shows("ABC"), Cursor(""), Keys("C-z"), Prompt, Line("kill -USR1 %1; fg"), Has(" copied,"), Keys("C-d"), Prompt,
        ],
        blur: &[" copied,"],
        not_on_a_pty: Some(NO_STOP),
    }
}
