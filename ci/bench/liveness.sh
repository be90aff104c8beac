# Sourced by ci/bench.sh: the subjects of the suite `liveness`. A program measures
# several of them; what it cannot have it says itself.

cc -O2 -Wall -Wextra -std=gnu17 -pthread "$crate/floors/liveness.c" -o "$out/bin/liveness"

[ -z "$ours" ] || missing procwright-rust-liveness "$ours"

if try iceoryx2 env CARGO_TARGET_DIR="$out/iceoryx2" cargo build --release --manifest-path $crate/peers/iceoryx2/Cargo.toml; then
    install "$out/iceoryx2/release/bench-iceoryx2" "$out/bin/"
else
    missing iceoryx2 "$(why iceoryx2)"
fi

if [ -n "$venv" ]; then
    missing python-liveness "$venv"
elif ! try psutil "$python" -m pip install --quiet --disable-pip-version-check psutil; then
    echo "bench: no psutil: $(why psutil)" >&2
fi
