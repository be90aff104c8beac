#!/usr/bin/env bash
# Everything that must pass: Rust, the Python package, the documentation's
# examples. Run by `make test`, after ci/deps.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/lib.sh

say 'Rust'
cargo test --workspace --exclude procwright-python

say 'Python package'
ensure_venv ./python
export PROCWRIGHT_TEST_CHILD=$PWD/target/debug/test-child
"$venv/bin/python" -m pytest -q python/tests

say 'Documentation and examples'
PATH=$PWD/$venv/bin:$PATH "$venv/bin/python" ci/docs.py
PATH=$PWD/$venv/bin:$PATH ci/examples.sh
