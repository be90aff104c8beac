//! Programs that wait for what a person types.

use procwright_explain::{Pattern, Verdict};

use crate::stage::{Scene, hang, has_python, show};

#[test]
fn who_waits_for_input_is_told() {
    use Verdict::Input;
    if !has_python("who_waits_for_input_is_told") {
        return;
    }
    let input = |name, program| hang(name, Input, Pattern::Terminal, &["program"], program);
    show(&[
        input("cat of a terminal", "terminal('cat')"),
        input(
            "read of a shell",
            "terminal('sh', '-c', 'printf \"name? \"; read name')",
        ),
        input(
            "read -p of bash",
            "terminal('bash', '-c', 'read -p \"name? \" name')",
        ),
        input(
            "input() of Python",
            "terminal(sys.executable, '-c', 'input(\"name? \")')",
        ),
        input(
            "an interactive Python",
            "terminal(sys.executable, '-i', '-q')",
        ),
        input(
            "a poll of the terminal",
            r"
terminal(sys.executable, '-c', 'import select; select.select([0], [], [])')
",
        ),
        Scene {
            behind: &["asked"],
            ..hang(
                "a shell waits for who asks",
                Input,
                Pattern::Terminal,
                &["child"],
                r"
read, write = os.pipe()
leader, master = pty.fork()
if leader == 0:
    child = Popen(['cat'])
    os.write(write, str(child.pid).encode())
    child.wait()
    os._exit(0)
say(asked=leader, leader=leader, child=int(os.read(read, 100)))
signal.pause()
",
            )
        },
    ]);
}
