//! `stdio-buffered BYTES MS`: writes the pattern as C stdio does into a pipe.
//!
//! Only whole blocks of 4096 bytes come out; what is left over stays in the buffer
//! for MS, and comes out at the exit.

use test_children::{Pattern, Stream};

use crate::process::{STDOUT, sleep, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "stdio-buffered",
    usage: "BYTES MS",
    about: "writes a pattern through a 4096-byte buffer; the rest comes MS later, at exit",
    run,
};

const BUFFER: u64 = 4096;

fn run(mut args: Args) -> Outcome {
    let size = args.next_size("BYTES")?;
    let pause = args.next_millis()?;
    args.finish()?;
    let pattern = Pattern::new(Stream::Stdout, BUFFER as usize);
    let whole = size - size % BUFFER;
    for offset in (0..whole).step_by(BUFFER as usize) {
        write_all(STDOUT, pattern.slice(offset, BUFFER as usize))?;
    }
    sleep(pause);
    write_all(STDOUT, pattern.slice(whole, (size - whole) as usize))?;
    Ok(0)
}
