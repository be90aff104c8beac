#!/bin/sh
# Builds the subjects that it can get, names the others, and measures.
#
#   [ONLY=run] [QUICK=1 | ROUNDS=n] ci/bench.sh
#
# QUICK ends a suite within a minute or two; a figure to quote takes 15 rounds, the
# default. SKIP leaves subjects out by name: SKIP='ruby-capture3 go-exec' halves it.
#
# Results: target/bench/SUITE.json, .md and .svg.
set -eu
cd "$(dirname "$0")/.."

crate=crates/procwright-bench
out=$PWD/target/bench
mkdir -p "$out/bin" "$out/log"
: > "$out/missing.tsv"

# missing SUBJECT REASON: the tables will say so.
missing() {
    printf '%s\t%s\n' "$1" "$2" >> "$out/missing.tsv"
    echo "bench: missing $1: $2" >&2
}

# try NAME COMMAND…: quiet unless it fails; the log stays.
try() {
    log=$out/log/$1.log
    shift
    "$@" > "$log" 2>&1
}

why() {
    grep -m 1 -E '^(error|ERROR)|[Ee]rror: ' "$out/log/$1.log" || tail -n 1 "$out/log/$1.log"
}

# Debian's packages of the peers, where they may be installed.
packages=
for pair in ruby:ruby node:nodejs go:golang-go cc:gcc; do
    command -v "${pair%%:*}" > /dev/null || packages="$packages ${pair#*:}"
done
if [ -n "$packages" ] && command -v apt-get > /dev/null; then
    root=
    [ "$(id -u)" = 0 ] || root='sudo -n'
    # shellcheck disable=SC2086
    try apt sh -c "$root apt-get update && $root apt-get install -y --no-install-recommends $packages" ||
        echo "bench: cannot install$packages" >&2
fi

# The child and the floors: without these there is nothing to measure.
for source in flood poll_loop two_threads discard spawn; do
    cc -O2 -Wall -Wextra -std=gnu17 -pthread "$crate/floors/$source.c" -o "$out/bin/$source"
done

# Rust: the harness and the standard library's row, ours, duct.
cargo build --quiet --release -p procwright-bench
for bin in procwright-bench bench-rust-std; do install target/release/$bin "$out/bin/"; done

rm -f "$out"/bin/bench-rust-run "$out"/bin/bench-rust-limit "$out"/bin/bench-rust-spawn "$out/bin/procwright"
if try ours cargo build --release -p procwright-bench --features ours; then
    for bin in run limit spawn; do install target/release/bench-rust-$bin "$out/bin/"; done
else
    for subject in '' -limit -spawn; do missing "procwright-rust$subject" "$(why ours)"; done
fi

if ! try command cargo build --release -p procwright-cli; then
    missing procwright-run-true "$(why command)"
elif [ "$(target/release/procwright run echo works 2>&1)" != works ]; then
    missing procwright-run-true '`procwright run echo works` does not print "works"'
else
    install target/release/procwright "$out/bin/"
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

# Python in an environment of its own, with our package as a user installs it.
export PYTHONDONTWRITEBYTECODE=
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX="$out/pycache"
python=$out/venv/bin/python
if [ -x "$python" ] || try venv python3 -m venv "$out/venv"; then
    if ! try package "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall ./python ||
        ! try import "$python" -c 'import procwright; procwright.run'; then
        reason=$(why package)
        [ -n "$reason" ] || reason=$(why import)
        for subject in procwright-python procwright-python-limit procwright-python-spawn python-import-procwright; do
            missing $subject "${reason:-the package cannot be installed}"
        done
    fi
else
    for subject in python-subprocess python-threads python-subprocess-spawn python-pass python-import-subprocess \
        procwright-python procwright-python-limit procwright-python-spawn python-import-procwright; do
        missing $subject "no virtual environment: $(why venv)"
    done
fi

for subject in ${SKIP:-}; do missing "$subject" 'left out on request'; done

set --
[ -z "${ONLY:-}" ] || set -- --only "$ONLY"
[ -z "${ROUNDS:-}" ] || set -- "$@" --rounds "$ROUNDS"
[ -z "${QUICK:-}" ] || set -- "$@" --quick
exec "$out/bin/procwright-bench" "$out" "$@"
