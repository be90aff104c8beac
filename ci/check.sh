#!/usr/bin/env bash
# Format, lints, layers, types, and the core on platforms that we cannot run.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/lib.sh

say 'Format and lints: Rust'
cargo fmt --all --check
cargo clippy --workspace --all-targets --quiet -- -D warnings
# The command and the library have one name, and so one folder: two jobs at once remove each
# other's files.
RUSTDOCFLAGS='-D warnings' cargo doc -p procwright-cli --no-deps --quiet
RUSTDOCFLAGS='-D warnings' cargo doc --workspace --exclude procwright-cli --no-deps --quiet

say 'Format, lints and tests: the benches'
# In a workspace of their own, of which `make test` compiles nothing.
cargo fmt --check --manifest-path bench/Cargo.toml
bench=(--quiet --locked --all-features --manifest-path bench/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}")
cargo clippy "${bench[@]}" --all-targets -- -D warnings
RUSTDOCFLAGS='-D warnings' cargo doc "${bench[@]}" --no-deps
cargo test "${bench[@]}" --lib

say 'Layers: no import upward, no circle'
"$python" ci/layers.py

say 'Every interleaving of the close protocol (loom)'
RUSTFLAGS='--cfg procwright_loom' CARGO_TARGET_DIR=target/loom \
    cargo test --quiet --package procwright-os --package procwright-liveness --package procwright-queue --lib loom_

if cargo +nightly miri --version >/dev/null 2>&1; then
    say 'The list of words that the kernel walks, under Miri'
    CARGO_TARGET_DIR=target/miri \
        cargo +nightly miri test --quiet --package procwright-os --lib robust::list
fi

if cargo +nightly fuzz --version >/dev/null 2>&1; then
    say 'The fuzzers'
    cargo fmt --check --manifest-path crates/procwright-queue/fuzz/Cargo.toml
    (cd crates/procwright-queue && cargo +nightly fuzz build)
fi

say 'The core for macOS and the BSDs'
for target in {x86_64,aarch64}-apple-darwin x86_64-unknown-{freebsd,netbsd}; do
    rustup target add "$target" >/dev/null 2>&1 || true
    if rustc --print target-libdir --target "$target" | xargs test -d; then
        RUSTFLAGS='-D warnings' cargo check --quiet --package procwright --target "$target" \
            --target-dir target/other
    else
        skip "cargo check for $target: its standard library cannot be had"
    fi
done

say 'Format, lints and types: Python'
# Apart from that of the tests, and not optimised: only its types are looked at.
venv=target/venv-check
ensure_venv --config-settings profile=dev './python[aio]' 'ruff==0.17.*' 'mypy==2.*' 'basedpyright==1.40.*'
"$venv/bin/ruff" check python ci examples
"$venv/bin/ruff" format --check python ci examples
"$venv/bin/mypy" --strict python/procwright
"$venv/bin/stubtest" procwright --mypy-config-file python/pyproject.toml --allowlist python/stubtest.txt
"$python" ci/overloads.py --check
# What type checkers say of programs that use it: of true ones, of wrong ones, of the documents'.
"$venv/bin/python" ci/check_types.py

if ruby_builds; then
    say 'Format, lints and signatures: Ruby'
    (
        # In a workspace of its own; the lints are those of the others.
        cd ruby/ext/procwright
        cargo fmt --check
        cargo clippy --quiet --locked --target-dir "${CARGO_TARGET_DIR:-../../../target}/ruby" -- -D warnings
    )
    find ruby -name '*.rb' -not -path 'ruby/pkg/*' -print0 | xargs -0 -n 1 ruby -wc >/dev/null
    if command -v yard >/dev/null; then
        (cd ruby && yard doc --no-stats --no-output --no-cache --no-save --no-private --fail-on-warning lib)
    fi
    if ruby -e 'Gem.bin_path("rbs", "rbs")' 2>/dev/null; then
        ruby -e 'load Gem.bin_path("rbs", "rbs")' -- -r timeout -I ruby/sig validate --silent
    else
        skip 'signatures: there is no rbs'
    fi
else
    skip 'lints of the Ruby library: it cannot be built here'
fi
