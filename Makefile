# The commands that people and CI share. `make help` lists them.

.PHONY: help build test check bench clean

help:
	@echo 'make build           the command, as target/release/procwright'
	@echo 'make test            everything that must pass: Rust, Python, docs, examples'
	@echo 'make check           format, lints, types, other platforms'
	@echo 'make bench           side-by-side measurements; ONLY=run|wait|streams|command QUICK=1 ROUNDS=n SKIP="names"'
	@echo 'REQUIRE_ALL=1        a test that would be skipped fails instead'
	@echo 'STRESS=1             the long forms of the stress tests'

build:
	cargo build --release

test:
	ci/deps.sh
	ci/test.sh

check:
	ci/check.sh

bench:
	ONLY='$(ONLY)' QUICK='$(QUICK)' ROUNDS='$(ROUNDS)' SKIP='$(SKIP)' ci/bench.sh

clean:
	cargo clean
