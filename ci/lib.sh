# Sourced by the scripts beside it.

# The Python that the package is tested with: PYTHON, or python3.
python=${PYTHON:-python3}
venv=target/venv

say() { printf '\n== %s\n' "$*"; }

# skip WHAT: a part that cannot run here. In plain sight, and a failure where
# everything is required.
skip() {
    if [ "${REQUIRE_ALL:-}" = 1 ]; then
        echo "required, but cannot run: $*" >&2
        exit 1
    fi
    echo "SKIPPED: $*" >&2
}

# ensure_venv: a virtual environment with the package and its test tools.
ensure_venv() {
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
        echo "$python is older than 3.10; set PYTHON" >&2
        exit 1
    fi
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'pytest>=8' "$@"
}
