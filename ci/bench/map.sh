# Part of bench.sh: many short commands, eight at a time, beside xargs, GNU parallel and a pool of
# threads. A program of its own, which takes turns with them: target/bench/map.md has the table.

# Without the package Python's own are measured all the same.
interpreter=python3
[ -n "$venv" ] || interpreter=$python
set -- --rounds "${ROUNDS:-5}"
[ -z "${QUICK:-}" ] || set -- --commands 1000 --rounds 1
PATH=$out/bin:$PATH "$interpreter" bench/map.py "$@" | tee "$out/map.md"
