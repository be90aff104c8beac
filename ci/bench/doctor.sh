# Part of bench.sh: a look at a thousand processes with two pipes each, beside lsof, lsfd and ps.
# A program of its own, which takes turns with them: target/bench/doctor.md has the table.

cc -O2 -Wall -Wextra -std=gnu17 -pthread "$crate/floors/look.c" -o "$out/bin/look"
set -- --rounds "${ROUNDS:-15}"
[ -z "${QUICK:-}" ] || set -- --rounds 3
PATH=$out/bin:$PATH python3 bench/doctor.py "$@" | tee "$out/doctor.md"
