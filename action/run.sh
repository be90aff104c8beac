#!/usr/bin/env bash
# Runs the commands of a step below `procwright run`, and puts what that says of a hang into the
# summary of the job.
set -euo pipefail

if ! command -v procwright >/dev/null; then
    echo "::error title=procwright is not in PATH::install it in a step before this one" >&2
    exit 127
fi

folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/procwright-XXXXXX")
script=$folder/run.sh explanation=$folder/hang.txt
printf '%s\n' "$PROCWRIGHT_ACTION_RUN" >"$script"
options=(--timeout "$PROCWRIGHT_ACTION_TIMEOUT" --explain-to "$explanation")
[ -z "$PROCWRIGHT_ACTION_IDLE_TIMEOUT" ] || options+=(--idle-timeout "$PROCWRIGHT_ACTION_IDLE_TIMEOUT")

# In the background, so that this shell hears at once of a job that is cancelled: bash hears of a
# signal only when the command in its foreground has ended, and GitHub kills both before. With
# `set -m` the command does not ignore SIGINT there.
set -m
procwright run "${options[@]}" -- bash --noprofile --norc -eo pipefail "$script" </dev/null &
set +m
command=$!
trap 'kill -TERM "$command" || true; was_signalled=1' INT TERM
# A signal ends a wait, and the command ends later.
was_signalled=1
while [ -n "$was_signalled" ]; do
    was_signalled= code=0
    wait "$command" || code=$?
done

if [ -s "$explanation" ]; then
    # Longer than whatever stands in it.
    fence='```'
    while grep -qF -- "$fence" "$explanation"; do fence+='`'; done
    {
        echo "### It did not end by itself: exit code $code"
        echo
        echo "$fence"text
        # GitHub takes no summary of more than 1 MiB.
        head -c 900000 "$explanation"
        echo
        echo "$fence"
    } >>"$GITHUB_STEP_SUMMARY"
    echo "explanation=$explanation" >>"$GITHUB_OUTPUT"
fi
exit "$code"
