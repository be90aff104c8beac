# make bench [ONLY=run] [QUICK=1]
.PHONY: bench
bench:
	ONLY='$(ONLY)' QUICK='$(QUICK)' ci/bench.sh
