# Sourced by ci/bench.sh: the subjects of the suite `run`.

# The child and the floors: without these there is nothing to measure.
for source in flood poll_loop two_threads discard spawn; do
    cc -O2 -Wall -Wextra -std=gnu17 -pthread "$crate/floors/$source.c" -o "$out/bin/$source"
done

if [ -n "$ours" ]; then
    for subject in '' -limit -spawn; do missing "procwright-rust$subject" "$ours"; done
fi

if [ -n "$command" ]; then
    missing procwright-run-true "$command"
elif [ "$("$out/bin/procwright" run echo works 2>&1)" != works ]; then
    missing procwright-run-true '`procwright run echo works` does not print "works"'
fi

if try duct env CARGO_TARGET_DIR="$out/duct" cargo build --release --manifest-path $crate/peers/duct/Cargo.toml; then
    install "$out/duct/release/bench-duct" "$out/bin/"
else
    missing duct "$(why duct)"
fi

# The other languages.
if ! command -v go > /dev/null; then
    missing go-exec 'go is not installed'
elif ! try go sh -c "cd $crate/peers/go && go build -o '$out/bin/go_exec' ."; then
    missing go-exec "$(why go)"
fi
command -v node > /dev/null || missing node-execfile 'node is not installed'
command -v ruby > /dev/null || for subject in capture3 threads; do missing ruby-$subject 'ruby is not installed'; done

if [ -n "$venv" ]; then
    for subject in python-subprocess python-threads python-subprocess-spawn python-pass python-import-subprocess; do
        missing $subject "$venv"
    done
fi
reason=$package
if [ -z "$reason" ] && ! try run-api "$python" -c 'import procwright; procwright.run'; then reason=$(why run-api); fi
if [ -n "$reason" ]; then
    for subject in procwright-python procwright-python-limit procwright-python-spawn python-import-procwright; do
        missing $subject "$reason"
    done
fi
