# Sourced by ci/bench.sh: the subjects of the suite `command`.

for source in flood lines; do
    cc -O2 -Wall -Wextra -std=gnu17 -pthread "$crate/floors/$source.c" -o "$out/bin/$source"
done

for tool in timeout script tini; do
    command -v $tool > /dev/null || missing $tool "$tool is not installed"
done
command -v script > /dev/null || missing script-file 'script is not installed'

if [ -n "$command" ]; then
    for what in '' -timeout -relay -log -pty -pty-log; do missing "procwright-run$what" "$command"; done
else
    own=$out/bin/procwright
    copy=$out/log/copy.txt
    rm -f "$copy"
    if ! try run-log "$own" run --log "$copy" -- echo works || [ "$(cat "$copy" 2> /dev/null)" != works ]; then
        for what in log pty-log; do missing procwright-run-$what '`procwright run --log` keeps nothing'; done
    fi
    if ! try run-pty "$own" run --pty -- test -t 1; then
        for what in pty pty-log; do missing procwright-run-$what '`procwright run --pty` gives no terminal'; done
    fi
fi
