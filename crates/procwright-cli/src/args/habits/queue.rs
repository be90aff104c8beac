//! What people type to `procwright queue` who know queues of their language or of a broker.

/// What to type in the place of an option that a subcommand of queue has not.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "-n" | "--max" | "--max-messages" | "--number" | "-c" => "recv --count N",
        "--block" | "--wait" => {
            "recv waits in any case, send --wait DURATION for a receiver; --timeout limits both"
        }
        "--no-wait" | "--nowait" | "--non-blocking" => {
            "recv --timeout 0 prints what is there; send --overflow fail does not wait for room"
        }
        "-t" | "--time" => "--timeout DURATION",
        "-0" | "--null" => "--format records, whatever is in a message",
        "-f" | "--file" | "--input" => "send reads stdin: procwright queue send NAME < FILE",
        "-f-" | "--follow" => "leave it out: recv goes on until it is ended",
        "--size" | "--maxsize" | "--capacity" => "recv --limit SIZE makes the queue so large",
        "-q" | "--queue" | "--name" => "the name stands alone: procwright queue send NAME",
        "-j" | "--parallel" | "--workers" => {
            "one receives, and hands on to many: \
             procwright queue recv --until-closed NAME | procwright map -j 2 CMD"
        }
        _ => return None,
    })
}

/// What to type in the place of a subcommand that queue has not.
pub(in crate::args) fn subcommand_instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "list" | "ls" | "show" | "info" | "status" | "size" | "len" | "length" | "qsize"
        | "peek" => "procwright queue stat [NAME]",
        "get" | "pop" | "read" | "receive" | "consume" | "sub" | "subscribe" | "listen"
        | "take" => "procwright queue recv NAME",
        "put" | "push" | "write" | "publish" | "pub" | "produce" | "add" | "emit" => {
            "procwright queue send NAME MESSAGE"
        }
        "create" | "make" | "new" | "declare" | "open" => {
            "procwright queue recv NAME, which makes it"
        }
        "delete" | "remove" | "rm" | "purge" | "clear" | "destroy" | "close" => {
            "a queue is gone once no process has it; procwright queue recv --timeout 0 NAME \
             prints what waits in it"
        }
        _ => return None,
    })
}
