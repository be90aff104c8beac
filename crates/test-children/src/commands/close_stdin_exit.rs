//! `close-stdin-exit [CODE]`: exits at once (0), having closed stdin unread.

use crate::process::{STDIN, close};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "close-stdin-exit",
    usage: "[CODE]",
    about: "closes stdin without reading it and exits",
    run,
};

fn run(mut args: Args) -> Outcome {
    let code = match args.optional()? {
        None => 0,
        Some(code) => Args::new(vec![code]).next_code()?,
    };
    args.finish()?;
    close(STDIN);
    Ok(code)
}
