# Sourced by ci/bench.sh: the subjects of the suite `queue`. One program has all of
# them, and can be carried to another machine. A peer that cannot be had is left out.

queue_build() {
    try "$1" env CARGO_TARGET_DIR="$out/queue" BENCH_VERSION="$(git describe --always --dirty 2> /dev/null || echo unknown)" \
        cargo build --release --manifest-path $crate/peers/queue/Cargo.toml --no-default-features --features "$2"
}

if ! queue_build queue ours,iceoryx2,cloudtoid,ipc-channel,rtrb; then
    # Which of them it is.
    features=
    for feature in ours iceoryx2 cloudtoid ipc-channel rtrb; do
        if queue_build "queue-$feature" "$feature"; then
            features=$features,$feature
        else
            missing "queue: $feature" "$(why "queue-$feature")"
        fi
    done
    queue_build queue "${features#,}" || missing bench-queue "$(why queue)"
fi
rm -f "$out/bin/bench-queue"
[ ! -f "$out/queue/release/bench-queue" ] || install "$out/queue/release/bench-queue" "$out/bin/"

if [ -n "$venv" ]; then
    missing python-queue "$venv"
elif ! try faster-fifo "$python" -m pip install --quiet --disable-pip-version-check faster-fifo==1.5.2; then
    missing python-faster-fifo "$(why faster-fifo)"
    missing python-faster-fifo-many "$(why faster-fifo)"
fi
[ -z "$package" ] || for subject in python-procwright{,-many,-objects,-objects-many}; do
    missing "$subject" "$package"
done
