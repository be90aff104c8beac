//! Whether a pipe is the jobserver of `make`: `MAKEFLAGS` of a program that was started by it
//! says so, as `--jobserver-auth=READ,WRITE` or `--jobserver-auth=fifo:PATH`.

use crate::world::{Fd, Process};

/// The variables by which make, and cargo, tell of it.
const VARIABLES: [&str; 2] = ["MAKEFLAGS=", "CARGO_MAKEFLAGS="];
/// The options, of make up to 4.1 the second.
const OPTIONS: [&str; 2] = ["--jobserver-auth=", "--jobserver-fds="];

/// True if this descriptor is the jobserver of which the environment of `process` tells.
///
/// That may be out of date: a make up to 4.3 tells of its pipe also those to whom it does not
/// leave it, and who may have one of their own by these numbers. So both have to be ends of one
/// pipe, which is to be compared with those of whoever may be the make.
pub(crate) fn is_jobserver(process: &Process, fd: &Fd) -> bool {
    let pid = process.pid;
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    let environment = String::from_utf8_lossy(&environment);
    let mut told = environment.split('\0').filter_map(told);
    told.any(|place| match place.strip_prefix("fifo:") {
        Some(path) => std::fs::read_link(format!("/proc/{pid}/fd/{}", fd.number))
            .is_ok_and(|link| link.as_os_str() == path),
        None => are_ends(process, place, fd),
    })
}

/// True if `READ,WRITE` are the numbers of both ends of the pipe that `fd` is one of.
fn are_ends(process: &Process, numbers: &str, fd: &Fd) -> bool {
    let end = |number: &str| {
        let end = number.parse().ok().and_then(|number| process.fd(number));
        end.filter(|end| end.of == fd.of)
    };
    let ends = numbers.split_once(',');
    let ends = ends.and_then(|(read, write)| end(read).zip(end(write)));
    ends.is_some_and(|(read, write)| read.read && write.write)
}

/// What a variable tells of where the jobserver is.
fn told(variable: &str) -> Option<&str> {
    let flags = VARIABLES
        .iter()
        .find_map(|name| variable.strip_prefix(name))?;
    // The last one counts: a make within a make may have one of its own.
    let mut words = flags.split_whitespace().rev();
    words.find_map(|word| OPTIONS.iter().find_map(|option| word.strip_prefix(option)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_make_tells_is_read() {
        for (variable, place) in [
            ("MAKEFLAGS= -j3 --jobserver-auth=3,4", Some("3,4")),
            ("MAKEFLAGS=w -j --jobserver-fds=5,6 -- A=1", Some("5,6")),
            (
                "MAKEFLAGS= -j2 --jobserver-auth=fifo:/tmp/GMfifo7",
                Some("fifo:/tmp/GMfifo7"),
            ),
            (
                "CARGO_MAKEFLAGS=-j --jobserver-fds=3,4 --jobserver-auth=8,9",
                Some("8,9"),
            ),
            ("MAKEFLAGS=k", None),
            ("OTHER=--jobserver-auth=3,4", None),
        ] {
            assert_eq!(told(variable), place, "{variable}");
        }
    }
}
