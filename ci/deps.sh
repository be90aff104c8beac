#!/usr/bin/env bash
# Installs the Debian packages that the tests use, where that is allowed; else
# names them. The tests that need them skip themselves in plain sight.
set -euo pipefail

missing=()
need() { # COMMAND PACKAGE
    command -v "$1" >/dev/null || missing+=("$2")
}
need cc gcc
need strace strace
need ruby ruby
need rake rake
# The Ruby library: headers, the library that reads them, and the tests' own.
ruby -rrbconfig -e 'exit File.exist?(RbConfig::CONFIG["rubyhdrdir"] + "/ruby.h")' 2>/dev/null || missing+=(ruby-dev)
ruby -e 'require "minitest"' 2>/dev/null || missing+=(ruby-minitest)
[ -n "${LIBCLANG_PATH:-}" ] || compgen -G '/usr/lib/llvm-*/lib/libclang[-.][0-9s]*' >/dev/null || missing+=(libclang-dev)
# What the table of programs at a terminal drives, and with what.
need tmux tmux
need dialog dialog
# A server for ssh that no service comes with.
[ -x /usr/sbin/dropbear ] || missing+=(dropbear-bin)
need fish fish
need gdb gdb
need git git
need less less
need make make
need man man-db
need nano nano
need sqlite3 sqlite3
need ssh openssh-client
need sudo sudo
need top procps
need vim vim
need zsh zsh
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)

[ ${#missing[@]} -gt 0 ] || exit 0
as_root=()
if [ "$(id -u)" != 0 ]; then
    as_root=(sudo -n)
    if ! sudo -n true 2>/dev/null; then
        as_root=(false)
    fi
fi
if command -v apt-get >/dev/null && [ "${as_root[*]-}" != false ]; then
    # A mirror may be away for a moment, and a fresh machine may install by itself.
    patient=(-o Acquire::Retries=5 -o DPkg::Lock::Timeout=300)
    "${as_root[@]}" apt-get "${patient[@]}" update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get "${patient[@]}" install -y -qq "${missing[@]}" >/dev/null
else
    echo "not installed, and not allowed to install: ${missing[*]}" >&2
    [ "${REQUIRE_ALL:-}" != 1 ] || exit 1
fi
