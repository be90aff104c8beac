#!/usr/bin/env bash
# Everything that must pass: Rust, the Python package, the Ruby library, the
# documentation's examples. Run by `make test`, after ci/deps.sh.
#
# First all is built, and then what is independent is tested beside each other: tests
# mostly wait. What a part prints is shown when it has ended; until then, and later, it
# is in target/log/.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/lib.sh
supervised ci/test.sh

# Without job control, bash has what it starts with `&` ignore SIGINT and SIGQUIT.
set -m

# What each front end says of the cases of conformance/ as it is tested.
rm -rf target/conformance target/log
mkdir -p target/conformance target/log
not_tested=()

# Wheel and gem as they are released take minutes to build; STRESS=1 tests those.
export PROFILE=dev
[ "${STRESS:-}" != 1 ] || PROFILE=release

declare -A running
failed=()

# beside NAME COMMAND...: starts a part beside what follows.
beside() {
    local name=$1
    shift
    (
        SECONDS=0
        "$@"
        echo "($name: $SECONDS s)"
    ) >"target/log/${name// /-}" 2>&1 &
    running[$name]=$!
}

# finish NAME...: waits for these parts, and shows what they printed.
finish() {
    local name status
    for name; do
        status=0
        wait "${running[$name]}" || status=$?
        say "$name"
        cat "target/log/${name// /-}"
        [ "$status" = 0 ] || failed+=("$name")
    done
}

rust() { # ARGUMENT...
    "$python" ci/cargo_test.py "$@" --workspace --exclude procwright-python
}

# The Pythons, as lines `VERSION PATH`. The documents run on the first.
mapfile -t found < <(pythons)
tested=("${found[@]%% *}")
venv_of() { # VERSION
    if [ "$1" = "${tested[0]}" ]; then echo target/venv; else echo "target/venv-$1"; fi
}

python_environments() {
    local one peer
    for one in "${found[@]}"; do
        python=${one#* } venv=$(venv_of "${one%% *}")
        ensure_venv
        for peer in 'anyio>=4.9' 'trio>=0.25' 'uvloop>=0.21' 'psutil>=6'; do
            pip install "$peer" || skip "tests with $peer on Python ${one%% *}"
        done
    done
}

python_tests() { # VERSION
    echo "-- Python $1"
    # What the first says of conformance/ is what is shown.
    [ "$1" = "${tested[0]}" ] || export CONFORMANCE_RESULTS=$PWD/target/conformance/$1
    "$(venv_of "$1")/bin/python" -m pytest -q python/tests
}

# The tests of calls that block, once more as those of procwright.aio.
aio_tests() { # VERSION...
    local version loop status=0
    local -a loops=(asyncio)
    [ "${STRESS:-}" != 1 ] || loops=(asyncio uvloop trio)
    for version; do
        for loop in "${loops[@]}"; do
            venv=$(venv_of "$version")
            "$venv/bin/python" -c "import anyio, $loop" 2>/dev/null || continue
            echo "-- Python $version, $loop"
            "$venv/bin/python" -m pytest -q --on-loop="$loop" python/tests || status=1
        done
    done
    return "$status"
}

first_python() {
    local status=0
    python_tests "${tested[0]}" || status=1
    # The others have theirs in the long form.
    local -a on_loops=("${tested[0]}")
    [ "${STRESS:-}" != 1 ] || on_loops=("${tested[@]}")
    aio_tests "${on_loops[@]}" || status=1
    return "$status"
}

ruby_tasks() { # TASK...
    (cd ruby && rake --quiet "$@")
}

documents() {
    export PATH=$PWD/$venv/bin:$PATH
    "$venv/bin/python" ci/docs.py
    ci/examples.sh
}

say 'Build'
ensure_venv
beside 'Supervisor' "$python" ci/supervise_test.py
beside 'Python environments' python_environments
ruby=yes
if ruby -e 'exit RUBY_VERSION >= "3.1"' 2>/dev/null && ruby_builds; then
    beside 'Ruby extension' ruby_tasks compile
else
    ruby=no
    not_tested+=(--missing ruby)
    skip 'tests of the Ruby library: Ruby 3.1 with its headers, minitest, rake and libclang are needed'
fi
rm -rf target/wheel
# The wheel comes first, because it puts another `procwright` in the place of the one
# that the Rust tests run.
pip wheel --no-deps --wheel-dir target/wheel --config-settings "profile=$PROFILE" ./python
rust --no-run
export PROCWRIGHT_TEST_CHILD=${CARGO_TARGET_DIR:-$PWD/target}/debug/test-child
finish 'Supervisor' 'Python environments'
if ! "$venv/bin/python" -c 'import anyio' 2>/dev/null; then
    not_tested+=(--missing aio)
fi
for version in "${tested[@]}"; do
    venv=$(venv_of "$version") pip install --force-reinstall --no-deps target/wheel/*.whl
done
echo "(Build: $SECONDS s)"

[ "$ruby" = no ] || finish 'Ruby extension'
say 'Tests that need the machine to themselves'
rust --alone || failed+=('Rust, alone')

say 'Tests'
beside 'Rust' rust
beside 'Python package' first_python
others=()
for version in "${tested[@]:1}"; do
    others+=("Python package, $version")
    beside "${others[-1]}" python_tests "$version"
done
if [ "$ruby" = yes ]; then
    beside 'Ruby library' ruby_tasks test test_gem
    finish 'Ruby library'
fi
beside 'Documentation and examples' documents
finish 'Documentation and examples' 'Python package' "${others[@]}" 'Rust'
echo "Tested on Python ${tested[*]}; not found: $(versions_missing "${tested[@]}" | xargs)"

say 'Conformance: the same cases in every front end'
"$venv/bin/python" ci/conformance.py "${not_tested[@]}"

[ ${#failed[@]} = 0 ] || { printf '\nFAILED: %s\n' "${failed[@]}" >&2; exit 1; }
echo "All passed ($SECONDS s)."
