# Sourced by ci/bench.sh: the subjects of the suite `wait`.

# Helpers without a C library to tear down, where it can be linked in: what a
# process takes to end is in every latency.
for source in exiter holder; do
    cc -O2 -Wall -Wextra -std=gnu17 -static "$crate/floors/$source.c" -o "$out/bin/$source" 2> /dev/null ||
        cc -O2 -Wall -Wextra -std=gnu17 "$crate/floors/$source.c" -o "$out/bin/$source"
done
for source in wait_one wait_many; do
    cc -O2 -Wall -Wextra -std=gnu17 -pthread "$crate/floors/$source.c" -o "$out/bin/$source"
done

if [ -n "$ours" ]; then
    for subject in process set; do missing "procwright-rust-$subject" "$ours"; done
fi

if [ -n "$command" ]; then
    missing procwright-wait "$command"
elif ! try wait-command "$out/bin/procwright" wait --help; then
    missing procwright-wait 'there is no `procwright wait`'
fi

if try tokio env CARGO_TARGET_DIR="$out/tokio" cargo build --release --manifest-path $crate/peers/tokio/Cargo.toml; then
    install "$out/tokio/release/bench-tokio" "$out/bin/"
else
    missing tokio-wait "$(why tokio)"
fi

command -v tail > /dev/null || missing tail-pid 'tail is not installed'
command -v waitpid > /dev/null || missing waitpid-command 'waitpid is not installed (util-linux 2.39)'

if [ -n "$venv" ]; then
    for subject in subprocess-wait subprocess-wait-timeout asyncio-wait psutil-wait psutil-wait-procs; do
        missing $subject "$venv"
    done
elif ! try psutil "$python" -m pip install --quiet --disable-pip-version-check psutil; then
    for subject in psutil-wait psutil-wait-procs; do missing $subject "$(why psutil)"; done
fi

for pair in process:Process wait:wait async:wait_async; do
    name=${pair#*:} reason=$package
    if [ -z "$reason" ] && ! try wait-api "$python" -c "import procwright; procwright.$name"; then
        reason=$(why wait-api)
    fi
    [ -z "$reason" ] || missing "procwright-python-${pair%%:*}" "$reason"
done
