#!/usr/bin/env bash
# The tests of the Python package on CPythons that the machine's own packages lack: by default
# the 3.14 and 3.15 of Debian's unstable, in a chroot. Not part of `make test`: needs root,
# mmdebstrap and the network, and takes some minutes the first time.
#
#   ci/newer_pythons.sh [VERSION...] [-- ARGUMENT OF PYTEST...]
#
# target/newer-pythons is the chroot, which stays; remove it to have a newer one.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/lib.sh
supervised ci/newer_pythons.sh "$@"

versions=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    versions+=("$1")
    shift
done
[ $# = 0 ] || shift
[ ${#versions[@]} -gt 0 ] || versions=(3.14 3.15)

here=$PWD
root=$here/target/newer-pythons
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

if [ ! -e "$root/complete" ]; then
    say 'A chroot of Debian unstable'
    packages=ca-certificates,procps,strace
    for version in "${versions[@]}"; do
        packages=$packages,python$version,python$version-venv,libpython$version-testsuite
    done
    rm -rf "$root"
    # A mirror may be a copy of some weeks ago.
    mmdebstrap --quiet --variant=minbase --include="$packages" \
        --aptopt='Acquire::Check-Valid-Until "false"' sid "$root" "$mirror"
    touch "$root/complete"
fi
# The network as it is outside, with whatever certificates that takes.
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp "${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt}" "$root/etc/ssl/certs/outside.crt"

say 'Build'
ensure_venv
# The wheel is for the stable ABI: the one of the machine's Python is that of every later one.
pip wheel --no-deps --wheel-dir target/newer-wheel --config-settings profile=dev ./python
cargo build --quiet --package test-children

# inside VERSION ARGUMENT...: the tests, in the chroot.
inside() {
    # shellcheck disable=SC2016
    unshare --mount env -u PIP_FIND_LINKS \
        ROOT="$root" HERE="$here" PIP_CERT=/etc/ssl/certs/outside.crt SSL_CERT_FILE=/etc/ssl/certs/outside.crt PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        PROCWRIGHT_TEST_CHILD="${CARGO_TARGET_DIR:-$here/target}/debug/test-child" \
        sh -euc '
            mount --make-rprivate /
            mkdir -p "$ROOT$HERE"
            mount --bind "$HERE" "$ROOT$HERE"
            mount --rbind /dev "$ROOT/dev"
            mount --rbind /sys "$ROOT/sys"
            mount -t proc proc "$ROOT/proc"
            exec chroot "$ROOT" /bin/sh -euc '\''
                cd "$HERE"
                version=$1 venv=/venv-$1
                shift
                [ -x "$venv/bin/python" ] || "python$version" -m venv "$venv"
                pip="$venv/bin/python -m pip --quiet --disable-pip-version-check"
                $pip install "pytest>=8" "anyio>=4.9" "trio>=0.25" "uvloop>=0.21" "psutil>=6"
                $pip install --force-reinstall --no-deps target/newer-wheel/*.whl
                "$venv/bin/python" -VV
                export CONFORMANCE_RESULTS="/conformance-$version"
                exec "$venv/bin/python" -m pytest -p no:cacheprovider "$@"
            '\'' sh "$@"' sh "$@"
}

[ $# -gt 0 ] || set -- python/tests
failed=()
for version in "${versions[@]}"; do
    say "Python $version"
    inside "$version" "$@" || failed+=("$version")
done
[ ${#failed[@]} = 0 ] || { echo "FAILED: ${failed[*]}" >&2; exit 1; }
