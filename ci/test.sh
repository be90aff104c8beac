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

# All is compiled once here, so that incremental state (1.8 GB) would only cost.
export CARGO_INCREMENTAL=0

# Wheel and gem as they are released take minutes to build; STRESS=1 tests those.
export PROFILE=dev
[ "${STRESS:-}" != 1 ] || PROFILE=release

declare -A running
failed=()

# beside NAME COMMAND...: starts a part beside what follows.
beside() {
    local name=$1 TIMEFORMAT
    shift
    TIMEFORMAT="($name: %0R s; of a processor %0U s, and %0S s in the system)"
    (time "$@") >"target/log/${name// /-}" 2>&1 &
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
    local -a peers=('anyio>=4.9' 'psutil>=6' 'trio>=0.25' 'uvloop>=0.21')
    for one in "${found[@]}"; do
        python=${one#* } venv=$(venv_of "${one%% *}")
        ensure_venv
        for peer in "${peers[@]}"; do
            pip install "$peer" || skip "tests with $peer on Python ${one%% *}"
        done
        # asyncio is part of each Python. Other loops are tested on the first, and with STRESS=1
        # on each.
        [ "${STRESS:-}" = 1 ] || peers=('anyio>=4.9' 'psutil>=6')
    done
}

# Loops, callbacks, threads, forks, signals, and the cases of all front ends: what a Python between
# the first and the last may do otherwise.
of_interpreter=(python/tests/test_{aio_*,asyncio_*,callbacks,conformance,fork,many,run,spawn,streams,wait_async,wait_signals}.py)

python_tests() { # VERSION FILE...
    local version=$1
    shift
    echo "-- Python $version"
    # What the first says of conformance/ is what is shown.
    [ "$version" = "${tested[0]}" ] || export CONFORMANCE_RESULTS=$PWD/target/conformance/$version
    "$(venv_of "$version")/bin/python" -m pytest -q "$@"
}

# The tests of calls that block, once more as those of procwright.aio: in the usual form on
# the first Python.
aio_tests() {
    local version loop status=0
    local -a versions=("${tested[0]}") loops=(asyncio)
    [ "${STRESS:-}" != 1 ] || versions=("${tested[@]}") loops=(asyncio uvloop trio)
    for version in "${versions[@]}"; do
        for loop in "${loops[@]}"; do
            venv=$(venv_of "$version")
            "$venv/bin/python" -c "import anyio, $loop" 2>/dev/null || continue
            echo "-- Python $version, $loop"
            "$venv/bin/python" -m pytest -q --on-loop="$loop" python/tests || status=1
        done
    done
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
    # The gem's extension is the one that the tests use.
    beside 'Ruby gem' ruby_tasks test_gem
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

[ "$ruby" = no ] || finish 'Ruby gem'
say 'Tests that need the machine to themselves'
rust --alone || failed+=('Rust, alone')

say 'Tests'
beside 'Rust' rust
beside 'Python package on event loops' aio_tests
packages=()
package() { # VERSION WHICH FILE...
    packages+=("Python package, $1, $2")
    beside "${packages[-1]}" python_tests "$1" "${@:3}"
}
for version in "${tested[@]}"; do
    case "${STRESS:-} $version" in
    "1 "* | *" ${tested[0]}" | *" ${tested[-1]}")
        # In two halves, as most of the time is spent waiting.
        package "$version" 'a to c' python/tests/test_[a-c]*.py
        package "$version" 'd to z' python/tests/test_[!a-c]*.py
        ;;
    *) package "$version" 'what leans on the interpreter' "${of_interpreter[@]}" ;;
    esac
done
if [ "$ruby" = yes ]; then
    beside 'Ruby library' ruby_tasks suite
    finish 'Ruby library'
fi
beside 'Documentation and examples' documents
finish 'Documentation and examples' "${packages[@]}" 'Python package on event loops' 'Rust'
echo "Tested on Python ${tested[*]}; not found: $(versions_missing "${tested[@]}" | xargs)"

say 'Conformance: the same cases in every front end'
"$venv/bin/python" ci/conformance.py "${not_tested[@]}"

[ ${#failed[@]} = 0 ] || { printf '\nFAILED: %s\n' "${failed[@]}" >&2; exit 1; }
echo "All passed ($SECONDS s)."
