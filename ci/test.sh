#!/usr/bin/env bash
# Everything that must pass: Rust, the Python package, the Ruby library, the
# documentation's examples. Run by `make test`, after ci/deps.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/lib.sh

# What each front end says of the cases of conformance/ as it is tested.
rm -rf target/conformance
not_tested=()

say 'Rust'
cargo test --workspace --exclude procwright-python --no-fail-fast

say 'Python package'
ensure_venv
export PROCWRIGHT_TEST_CHILD=${CARGO_TARGET_DIR:-$PWD/target}/debug/test-child
rm -rf target/wheel
pip wheel --no-deps --wheel-dir target/wheel ./python

test_python() { # VERSION PYTHON VENV
    local python=$2 venv=$3 peer
    say "Python package, on Python $1"
    ensure_venv
    pip install --force-reinstall --no-deps target/wheel/*.whl
    for peer in 'trio>=0.25' 'psutil>=6'; do
        pip install "$peer" || skip "tests with $peer on Python $1"
    done
    "$venv/bin/python" -m pytest -q python/tests
}

mapfile -t found < <(pythons)
tested=()
for one in "${found[@]}"; do
    # The first is that of $venv, where the documents run, too.
    test_python "${one%% *}" "${one#* }" "$venv${tested:+-${one%% *}}"
    tested+=("${one%% *}")
done
echo "Tested on Python ${tested[*]}; not found: $(versions_missing "${tested[@]}" | xargs)"

say 'Ruby library'
if ruby -e 'exit RUBY_VERSION >= "3.1"' 2>/dev/null && ruby_builds; then
    (cd ruby && rake --quiet && rake --quiet test_gem)
else
    not_tested+=(--missing ruby)
    skip 'tests of the Ruby library: Ruby 3.1 with its headers, minitest, rake and libclang are needed'
fi

say 'Conformance: the same cases in every front end'
"$venv/bin/python" ci/conformance.py "${not_tested[@]}"

say 'Documentation and examples'
PATH=$PWD/$venv/bin:$PATH "$venv/bin/python" ci/docs.py
PATH=$PWD/$venv/bin:$PATH ci/examples.sh
