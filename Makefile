# The commands that people and CI share. `make help` lists them.

.PHONY: help build man test check faults bench clean

help:
	@echo 'make build           the command, as target/release/procwright'
	@echo 'make man             manual pages and completions, in target/man and target/completions'
	@echo 'make test            everything that must pass: Rust, Python, Ruby, docs, examples'
	@echo 'make check           format, lints, types, other platforms'
	@echo 'make faults          builds every front end with faults in the core, and shows that its tests find them'
	@echo 'make bench           side-by-side measurements; ONLY=run|wait|streams|command|liveness|queue|ruby|map|pipelines|aio|doctor PART=name QUICK=1 ROUNDS=n SKIP="names"'
	@echo 'REQUIRE_ALL=1        a test that would be skipped fails instead'
	@echo 'STRESS=1             the long forms of the stress tests; wheel and gem as they are released'

build:
	cargo build --release

# Made by the command itself; docs/reference/command.md says where they go.
man: build
	mkdir -p target/man/man1 target/completions
	target/release/procwright man > target/man/man1/procwright.1
	set -e; for page in run map pipe wait buffer queue queue-send queue-recv queue-stat doctor man completions; do \
		target/release/procwright man $$page > target/man/man1/procwright-$$page.1; \
	done
	target/release/procwright completions bash > target/completions/procwright
	target/release/procwright completions zsh > target/completions/_procwright
	target/release/procwright completions fish > target/completions/procwright.fish

test:
	ci/deps.sh
	ci/test.sh

check:
	ci/check.sh

faults:
	ci/conformance_fault.sh

bench:
	ONLY='$(ONLY)' PART='$(PART)' QUICK='$(QUICK)' ROUNDS='$(ROUNDS)' SKIP='$(SKIP)' ci/bench.sh

clean:
	cargo clean
