# make bench [ONLY=run] [QUICK=1 | ROUNDS=n]
.PHONY: bench
bench:
	ONLY='$(ONLY)' QUICK='$(QUICK)' ROUNDS='$(ROUNDS)' ci/bench.sh
