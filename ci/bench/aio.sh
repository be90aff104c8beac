# Part of bench.sh: programs on event loops, beside those of asyncio, anyio and trio. A program of its
# own, which takes turns with them: target/bench/aio.md has the tables.

if [ -n "$package" ] || ! try anyio "$python" -m pip install --quiet --disable-pip-version-check 'anyio>=4.9' trio uvloop; then
    echo "bench: not measured: ${package:-$(why anyio)}" >&2
else
    set --
    [ -z "${ROUNDS:-}" ] || set -- --rounds "$ROUNDS"
    [ -z "${QUICK:-}" ] || set -- "$@" --quick
    "$python" bench/aio.py "$@" | tee "$out/aio.md"
fi
