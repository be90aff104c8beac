//! What people type to `procwright pipe` who know a shell's pipelines, and `procwright run`.

use super::run;

/// What to type in the place of an option that pipe has not.
pub(super) fn instead(name: &str) -> Option<String> {
    let own = match name {
        "--pipefail" | "-o" | "--check" | "-e" => "--success strict",
        "--shell" | "-c" | "--command" => {
            "name a shell in a stage: procwright pipe sh -c 'LINE' --to CMD"
        }
        "--stdout" | "--output" | "--out" => {
            "the shell says where it goes: procwright pipe … > FILE"
        }
        "--stderr" | "--err" | "--merge" | "--merged" | "--merge-stderr" | "--stderr-to-stdout"
        | "--combine" | "--both" | "--all" => {
            "a shell sends the stderr of a stage into its pipe: procwright pipe sh -c 'CMD 2>&1' \
             --to CMD"
        }
        "--input" => "--stdin FILE is what the first stage reads",
        "--tag" | "--pty" => {
            return Some(format!(
                "run has it, for the whole: procwright run {name} procwright pipe CMD --to CMD"
            ));
        }
        "--explain-after" => {
            "run has it, for the whole: procwright run --explain-after 30s procwright pipe CMD --to \
             CMD"
        }
        "--input-wanted" => {
            "run has it, for the whole: procwright run --input-wanted fail procwright pipe CMD \
             --to CMD"
        }
        "--explain-to" => {
            "run has it, for the whole: procwright run --timeout 10m --explain-to FILE procwright \
             pipe CMD --to CMD"
        }
        "--log" | "--log-times" | "--tee" | "--timestamps" | "--keep-full" => {
            "run has it, for the whole: procwright run --log FILE procwright pipe CMD --to CMD"
        }
        "--retry" | "--retries" | "--attempts" | "--backoff" => {
            "run has it, for the whole: procwright run --retry 2 procwright pipe CMD --to CMD"
        }
        "--dry-run" | "--spec" => {
            "a stage is run as it stands; PROCWRIGHT_TRACE=1 shows each start and end"
        }
        "--ok-code" | "--ok-codes" | "--allow" | "--ignore-exit" => {
            "--ok N=CODE, as in --ok 2=1 for a second stage that may exit with 1"
        }
        "--max-output" | "--output-limit" => "--limit SIZE",
        "--report-file" => "--report-to FILE, in JSON; or --report text, on stderr",
        "--json" => "--report json",
        "-j" | "--parallel" | "--jobs" => "all stages run at a time; procwright map runs many",
        _ => {
            let shared = run::of_any_program(name)?;
            return Some(shared.replace("procwright run", "procwright pipe"));
        }
    };
    Some(own.to_owned())
}
