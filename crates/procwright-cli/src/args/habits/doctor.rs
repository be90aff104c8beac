//! What people type to `procwright doctor` who know pgrep, ps, watch and lsof.

/// What to type in the place of an option that doctor has not.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "--name" | "-n" | "--comm" | "--process-name" | "-x" | "-f" => {
            "procwright doctor $(pgrep NAME); pgrep -l NAME shows which those are"
        }
        "--repeat" | "--follow" | "--continuous" | "--top" | "--live" => {
            "procwright doctor --watch PID looks again and again"
        }
        "--delay" | "-d" | "-s" | "--refresh" | "--seconds" => {
            "--watch --interval 5s; --between 5s makes the one look longer"
        }
        "--pid" | "-p" | "--process" => "the number stands alone: procwright doctor PID",
        "--all" | "-a" => "leave it out: without a PID it is all processes of this user",
        "--timeout" | "--time" | "--wait" => {
            "--between DURATION; procwright run --explain-after DURATION looks later"
        }
        "--user" | "-u" => "procwright doctor $(pgrep -u USER)",
        "--format" | "--output" | "-o" => "--json, or --dot; procwright doctor PID > FILE",
        _ => return None,
    })
}
