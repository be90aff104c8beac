# Sourced by ci/bench.sh: the subjects of the suite `streams`.

for source in flood lines ticker epipe read; do
    cc -O2 -Wall -Wextra -std=gnu17 -pthread "$crate/floors/$source.c" -o "$out/bin/$source"
done

if [ -n "$ours" ]; then
    for subject in '' -spill -bare -block; do missing "procwright-rust$subject" "$ours"; done
fi

if [ -n "$command" ]; then
    for policy in spill block; do missing "procwright-buffer-$policy" "$command"; done
fi

if try duct env CARGO_TARGET_DIR="$out/duct" cargo build --release --manifest-path $crate/peers/duct/Cargo.toml; then
    install "$out/duct/release/streams" "$out/bin/bench-duct-streams"
else
    missing duct-reader "$(why duct)"
fi
if try tokio env CARGO_TARGET_DIR="$out/tokio" cargo build --release --manifest-path $crate/peers/tokio/Cargo.toml; then
    install "$out/tokio/release/streams" "$out/bin/bench-tokio-streams"
else
    missing tokio-read "$(why tokio)"
fi

command -v pv > /dev/null || for how in splice buffer; do missing "pv-$how" 'pv is not installed'; done
command -v mbuffer > /dev/null || missing mbuffer 'mbuffer is not installed'

# The other languages.
command -v ruby > /dev/null || missing ruby-io 'ruby is not installed'
if ! command -v go > /dev/null; then
    missing go-file 'go is not installed'
elif ! try go-close sh -c "cd $crate/peers/go_close && go build -o '$out/bin/close_go' ."; then
    missing go-file "$(why go-close)"
fi
if ! command -v javac > /dev/null; then
    missing java-pipe 'javac is not installed'
elif ! try java javac -d "$out/bin/java" $crate/peers/java/Close.java; then
    missing java-pipe "$(why java)"
fi

if [ -n "$venv" ]; then
    for subject in subprocess subprocess-read1 subprocess-readinto subprocess-lines subprocess-text \
        asyncio asyncio-read asyncio-lines; do
        missing $subject "$venv"
    done
fi
for subject in plumbum sh; do
    if [ -n "$venv" ]; then
        missing $subject-lines "$venv"
    elif ! try $subject "$python" -m pip install --quiet --disable-pip-version-check $subject; then
        missing $subject-lines "$(why $subject)"
    fi
done
reason=$package
if [ -z "$reason" ] && ! try spawn-api "$python" -c 'import procwright; procwright.spawn'; then
    reason=$(why spawn-api)
fi
if [ -n "$reason" ]; then
    missing procwright-python "$reason"
    for mode in spill bare; do
        missing procwright-python-$mode "$reason"
        for call in read1 readinto lines text; do missing procwright-python-$call-$mode "$reason"; done
    done
fi
