//! `print-bytes HEX [--err]`: the bytes that the hexadecimal digits name.

use crate::args::Failure;
use crate::process::{STDERR, STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "print-bytes",
    usage: "HEX [--err]",
    about: "writes the bytes that the hexadecimal digits name",
    run,
};

fn run(mut args: Args) -> Outcome {
    let fd = if args.flag("--err") { STDERR } else { STDOUT };
    let digits = args.next("HEX")?;
    args.finish()?;
    let bytes = decode(digits.to_str().unwrap_or("?"))
        .ok_or_else(|| Failure::usage("HEX is an even number of hexadecimal digits"))?;
    write_all(fd, &bytes)?;
    Ok(0)
}

fn decode(digits: &str) -> Option<Vec<u8>> {
    let values: Option<Vec<u8>> = digits
        .chars()
        .map(|digit| digit.to_digit(16).map(|value| value as u8))
        .collect();
    let values = values.filter(|values| values.len() % 2 == 0)?;
    Some(
        values
            .chunks(2)
            .map(|pair| pair[0] * 16 + pair[1])
            .collect(),
    )
}
