//! `progress N MS [--err]`: a progress display, `\rK/N` from 0 to N with MS between
//! two, and a newline at the very end.

use crate::process::{STDERR, STDOUT, sleep, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "progress",
    usage: "N MS [--err]",
    about: "writes 0/N to N/N, each after a carriage return, then a newline",
    run,
};

fn run(mut args: Args) -> Outcome {
    let fd = if args.flag("--err") { STDERR } else { STDOUT };
    let count = args.next_number("N")?;
    let pause = args.next_millis()?;
    args.finish()?;
    for number in 0..=count {
        if number > 0 {
            sleep(pause);
        }
        write_all(fd, format!("\r{number}/{count}").as_bytes())?;
    }
    write_all(fd, b"\n")?;
    Ok(0)
}
