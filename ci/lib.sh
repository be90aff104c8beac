# Sourced by the scripts beside it.

# The Python that the package is tested with: PYTHON, or python3.
python=${PYTHON:-python3}
venv=target/venv

# A registry may be away for a moment.
export CARGO_NET_RETRY=${CARGO_NET_RETRY:-10} PIP_RETRIES=${PIP_RETRIES:-10}

say() { printf '\n== %s\n' "$*"; }

# supervised SCRIPT: has this script run under ci/supervise.py, which leaves no process
# behind and keeps out what the caller ignores.
supervised() {
    [ "${CI_SUPERVISOR:-}" = "$PPID" ] || exec "$python" ci/supervise.py "$@"
}

# skip WHAT: a part that cannot run here. In plain sight, and a failure where
# everything is required.
skip() {
    if [ "${REQUIRE_ALL:-}" = 1 ]; then
        echo "required, but cannot run: $*" >&2
        exit 1
    fi
    echo "SKIPPED: $*" >&2
}

# ensure_venv [REQUIREMENT...]: a virtual environment with pytest and these.
ensure_venv() {
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "$python is older than 3.11; set PYTHON" >&2
        exit 1
    fi
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    pip install 'pytest>=8' "$@"
}

# pip ARGUMENT...: that of $venv, quiet.
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }

# pythons: each CPython from 3.11 on that is found, as `VERSION PATH`: $python, then
# those in PATH, then pyenv's. Not the free-threaded, which take no stable ABI.
pythons() {
    local one
    for one in "$python" python3.{11..30} ~/.pyenv/versions/*/bin/python; do
        "$one" -I - 2>/dev/null <<'END' || true
import sys, sysconfig
ours = sys.implementation.name == "cpython" and sys.version_info >= (3, 11)
if ours and not sysconfig.get_config_var("Py_GIL_DISABLED"):
    print("%d.%d" % sys.version_info[:2], sys.executable)
END
    done | awk '!seen[$1]++'
}

# versions_missing VERSION...: those that we say we run on and that are not among them.
versions_missing() {
    local one
    for one in 3.11 3.12 3.13; do
        [[ " $* " == *" $one "* ]] || echo "$one"
    done
}

# ruby_builds: whether Ruby's headers, libclang and what the tests need are here.
ruby_builds() {
    ruby -rrbconfig -rminitest -e 'exit File.exist?(RbConfig::CONFIG["rubyhdrdir"] + "/ruby.h")' 2>/dev/null &&
        command -v rake >/dev/null &&
        { [ -n "${LIBCLANG_PATH:-}" ] || compgen -G '/usr/lib/llvm-*/lib/libclang[-.][0-9s]*' >/dev/null; }
}
