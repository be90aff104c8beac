#!/bin/sh
# Builds the subjects that it can get, names the others, and measures.
#
#   [ONLY=run|wait|streams|command|liveness|queue|ruby|map|pipelines|aio|doctor] [QUICK=1 | ROUNDS=n] ci/bench.sh
#   ONLY=run PART=start|spawn|limit|capture|cold … and ONLY=queue PART=first …
#
# QUICK ends a suite within a minute or two; a figure to quote takes 15 rounds, the
# default. SKIP leaves subjects out by name: SKIP='ruby-capture3 go-exec' halves it.
#
# Results: target/bench/SUITE.json, .md and .svg.
set -eu
cd "$(dirname "$0")/.."

crate=bench
target=${CARGO_TARGET_DIR:-target}
release=$target/release
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

# build_bench FLAG…: the harness and its subjects, a workspace of their own.
build_bench() {
    cargo build --release --manifest-path "$crate/Cargo.toml" --target-dir "$target" "$@"
}

why() {
    grep -m 1 -E '^(error|ERROR)|[Ee]rror: ' "$out/log/$1.log" || tail -n 1 "$out/log/$1.log"
}

# want SUITE: whether it is to be measured.
want() { [ -z "${ONLY:-}" ] || [ "$ONLY" = "$1" ]; }

# alone: whether it is one that needs neither the subjects in Rust nor Python.
alone() { [ "${ONLY:-}" = command ] || [ "${ONLY:-}" = ruby ] || [ "${ONLY:-}" = doctor ]; }

# in_python: whether it is one that needs the Python package alone.
in_python() { [ "${ONLY:-}" = aio ]; }

# Debian's packages of the peers, where they may be installed.
needed=cc:gcc
! want run || needed="$needed ruby:ruby node:nodejs go:golang-go"
! want wait || needed="$needed strace:strace"
! want command || needed="$needed script:bsdutils tini:tini"
! want ruby || needed="$needed ruby:ruby rake:rake"
! want map || needed="$needed parallel:parallel"
! want pipelines || needed="$needed ruby:ruby node:nodejs npm:npm"
! want doctor || needed="$needed strace:strace lsof:lsof lsfd:util-linux-extra"
! want streams || needed="$needed ruby:ruby go:golang-go javac:default-jdk-headless mbuffer:mbuffer pv:pv"
packages=
for pair in $needed; do
    command -v "${pair%%:*}" > /dev/null || packages="$packages ${pair#*:}"
done
if [ -n "$packages" ] && command -v apt-get > /dev/null; then
    root=
    [ "$(id -u)" = 0 ] || root='sudo -n'
    # shellcheck disable=SC2086
    try apt sh -c "$root apt-get update && $root apt-get install -y --no-install-recommends $packages" ||
        echo "bench: cannot install$packages" >&2
fi

# Rust: the harness and the subjects without us, and then ours.
if ! in_python; then
    build_bench --quiet
    for bin in procwright-bench bench-rust-std bench-wait-command bench-std-streams bench-stage bench-alone bench-command; do
        install "$release/$bin" "$out/bin/"
    done
fi
for bin in run limit spawn pipeline wait streams close slow liveness; do rm -f "$out/bin/bench-rust-$bin"; done
rm -f "$out/bin/procwright"
ours=
if alone || in_python; then
    ours="not needed for $ONLY"
elif try ours build_bench --features ours; then
    for bin in run limit spawn pipeline wait streams close slow liveness; do install "$release/bench-rust-$bin" "$out/bin/"; done
else
    ours=$(why ours)
fi
command=
if [ "${ONLY:-}" = ruby ] || in_python; then
    command="not needed for $ONLY"
elif try command cargo build --release -p procwright-cli; then
    install "$release/procwright" "$out/bin/"
else
    command=$(why command)
fi

# Python in an environment of its own, with our package as a user installs it.
export PYTHONDONTWRITEBYTECODE=
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX="$out/pycache"
python=$out/venv/bin/python
venv= package=
if alone; then
    venv="not needed for $ONLY"
    package=$venv
elif [ -x "$python" ] || try venv python3 -m venv "$out/venv"; then
    if ! try package "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall ./python ||
        ! try import "$python" -c 'import procwright'; then
        package=$(why package)
        package=${package:-$(why import)}
        package=${package:-the package cannot be installed}
    fi
else
    venv="no virtual environment: $(why venv)"
    package=$venv
fi

! want run || . ci/bench/run.sh
! want wait || . ci/bench/wait.sh
! want streams || . ci/bench/streams.sh
! want command || . ci/bench/command.sh
! want liveness || . ci/bench/liveness.sh
! want queue || . ci/bench/queue.sh
! want ruby || . ci/bench/ruby.sh

! want map || . ci/bench/map.sh
! want pipelines || . ci/bench/pipelines.sh
! want aio || . ci/bench/aio.sh
! want doctor || . ci/bench/doctor.sh
case ${ONLY:-} in map | pipelines | aio | doctor) exit 0 ;; esac

for subject in ${SKIP:-}; do missing "$subject" 'left out on request'; done

set --
[ -z "${ONLY:-}" ] || set -- --only "$ONLY"
[ -z "${PART:-}" ] || set -- "$@" --part "$PART"
[ -z "${ROUNDS:-}" ] || set -- "$@" --rounds "$ROUNDS"
[ -z "${QUICK:-}" ] || set -- "$@" --quick
exec "$out/bin/procwright-bench" "$out" "$@"
