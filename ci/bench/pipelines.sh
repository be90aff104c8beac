# Part of bench.sh: pipelines beside bash, chains of Popen, Open3.pipeline and execa. A program of
# its own, which takes turns with them: target/bench/pipelines.md has the tables.

cc -O2 -Wall -Wextra -std=gnu17 $crate/floors/pipeline.c -o "$out/bin/pipeline"
# Its version is that of the table in docs/recipes/pipelines.md.
execa=$out/node/node_modules/execa/index.js
[ -e "$execa" ] || try execa npm install --silent --prefix "$out/node" execa@9.6.1 ||
    echo "bench: cannot install execa" >&2

# Without the package Python's own are measured all the same.
interpreter=python3
[ -n "$venv" ] || interpreter=$python
set -- --bin "$out/bin" --python "$interpreter" --execa "$execa" --rounds "${ROUNDS:-5}"
[ -z "${QUICK:-}" ] || set -- "$@" --mib 256 --starts 50 --rounds 1
python3 bench/pipelines.py "$@" | tee "$out/pipelines.md"
