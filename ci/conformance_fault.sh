#!/usr/bin/env bash
# Switches on deliberate faults in the core, one after the other, and shows that the cases
# of conformance/ find each in every front end. Builds all of them, apart from the usual.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/lib.sh
supervised ci/conformance_fault.sh

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/fault
export RUSTFLAGS='--cfg procwright_fault'
export PROCWRIGHT_TEST_CHILD=$CARGO_TARGET_DIR/debug/test-child
stage=$CARGO_TARGET_DIR/stage
rust=(--package procwright --package procwright-cli --test conformance)

say 'Every front end with faults in it'
cargo build --quiet --package test-children --package procwright-python
cargo test --quiet --no-run "${rust[@]}"
cargo build --quiet --locked --manifest-path ruby/ext/procwright/Cargo.toml --target-dir "$CARGO_TARGET_DIR/ruby"
ensure_venv
rm -rf "$stage"
mkdir -p "$stage/python"
cp -r python/procwright "$stage/python"
cp "$CARGO_TARGET_DIR/debug/lib_core.so" "$stage/python/procwright/_core.abi3.so"
cp -r ruby/lib "$stage/ruby"
cp "$CARGO_TARGET_DIR/ruby/debug/libnative.so" "$stage/ruby/procwright/native.so"

run() { # FAULT: what each says is in $CONFORMANCE_RESULTS.log
    export PROCWRIGHT_FAULT=$1 CONFORMANCE_RESULTS=$stage/$1
    {
        cargo test --quiet --no-fail-fast "${rust[@]}"
        PYTHONPATH=$stage/python "$venv/bin/python" -m pytest -q python/tests/test_conformance.py
        ruby -I "$stage/ruby" -I ruby/test ruby/test/test_conformance.rb
    } >"$CONFORMANCE_RESULTS.log" 2>&1 || true
}

say 'Without a fault'
run none
"$venv/bin/python" ci/conformance.py "$stage/none" | tail -n 5
wrong=0
for fault in $("$venv/bin/python" -c 'import json; print(*json.load(open("conformance/faults.json"))["faults"])'); do
    run "$fault"
    "$venv/bin/python" ci/conformance.py --fault "$fault" "$stage/$fault" || wrong=1
done
exit "$wrong"
