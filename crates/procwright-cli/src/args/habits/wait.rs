//! What people type to `procwright wait` who know bash's wait, waitpid(1), pgrep and tail.

/// What to type in the place of an option that wait has not.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "-n" | "--next" => {
            "--any, until one of them has ended, or --first K; of bash's wait -n, which waits for \
             any of its jobs: procwright wait --any $(jobs -p)"
        }
        "--pid" | "-p" | "--pids" | "--process" => {
            "the numbers stand alone: procwright wait PID PID"
        }
        "--count" | "-c" => "--first K, until so many have ended",
        "--exited" | "-e" => "leave it out: a process that is not there counts as ended",
        "-t" | "--time" | "--max-time" => "--timeout DURATION",
        "--comm" | "--exact" | "-x" | "--process-name" => "--name NAME, the whole of it",
        "-f" | "--full" | "--pattern" => {
            "pgrep finds them by what stands in their arguments: procwright wait $(pgrep -f PATTERN)"
        }
        "-u" | "--user" => "pgrep finds them: procwright wait $(pgrep -u USER)",
        "-i" | "-s" | "--interval" | "--sleep" | "--sleep-interval" | "--poll" => {
            "leave it out: it sleeps until one ends, and asks nobody meanwhile"
        }
        "--port" | "--tcp" | "--url" | "--http" | "--socket" => {
            "it waits for the ends of processes; have what asks for it run again until it \
             succeeds: procwright run --quiet --retry 20 --backoff 100ms curl -sf \
             http://localhost:8080/"
        }
        "--line" | "--grep" | "--log" | "--ready" | "--for" | "--until" => {
            "it waits for the ends of processes; for a line of a log: procwright pipe --timeout \
             10s tail -n +1 -F FILE --to grep -q -m1 ready"
        }
        "-v" => "--verbose",
        "-q" => "--quiet",
        "--report" | "--format" | "--output" | "-o" => "--json",
        "-k" | "--kill" | "--signal" | "--stop" => {
            "it ends nothing; with a limit: procwright wait --timeout DURATION PID || kill PID"
        }
        _ => return None,
    })
}
