#!/bin/sh
# Runs examples/ as tests: what is said to hang must hang, and be proved to, and
# what is said to work must work. Needs a python3 that has the package first in
# PATH. The examples in Ruby are left out without Ruby, and those that need the
# library where it is not built (`rake compile` in ruby/), unless REQUIRE_ALL=1.
set -eu
cd "$(dirname "$0")/../examples"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $1" >&2
    cat "$work/out" >&2
    exit 1
}

# hangs HOW PROGRAM ARG...: it must hang, with somebody at HOW.
hangs() {
    how=$1
    shift
    echo "--- $* must hang"
    status=0
    python3 watch.py "$@" >"$work/out" 2>&1 || status=$?
    [ "$status" = 1 ] || fail "expected a deadlock, got exit code $status"
    grep -q "$how" "$work/out" || fail "nobody is $how"
    cat "$work/out"
}

# works EXPECTED PROGRAM ARG...: it must end with code 0 and print EXPECTED.
works() {
    expected=$1
    shift
    echo "--- $* must work"
    python3 watch.py "$@" >"$work/out" 2>&1 || fail "it did not work"
    grep -qF "$expected" "$work/out" || fail "expected: $expected"
    cat "$work/out"
}

# skip WHAT: in plain sight, and a failure where everything is required.
skip() {
    : >"$work/out"
    [ "${REQUIRE_ALL:-0}" != 1 ] || fail "$1"
    echo "--- SKIPPED: $1"
}

# ruby_before: whether Ruby is here; ruby_after: whether the library is, too.
ruby_before() { command -v ruby >/dev/null; }
ruby_after() { ruby_before && ruby -rprocwright -e '' 2>/dev/null; }
export RUBYLIB="$PWD/../ruby/lib${RUBYLIB:+:$RUBYLIB}"
ruby_before || skip "the examples in Ruby: there is no ruby"
ruby_after || skip "the examples with the Ruby library: it is not built"

full="blocked writing to a full pipe"
hangs "$full" python3 01_two_pipes/stdlib.py
! ruby_before || hangs "$full" ruby 01_two_pipes/before.rb
! ruby_after || works 'stdout 13 bytes, stderr 1008890 bytes' ruby 01_two_pipes/procwright_.rb
works 'stdout 13 bytes, stderr 1008890 bytes' python3 01_two_pipes/procwright_.py

works 'stdout 13 bytes, stderr 1008890 bytes' python3 01_two_pipes/streaming.py

# Newer interpreters wait as they should, and the example says so of itself.
works 'a stranger: woke up' python3 02_waiting/stdlib.py
# A process that is in its way may wake it now and then; who polls does it twenty times and more.
works 'and it exited with code 0' python3 02_waiting/procwright_.py
grep -Eqx 'a child: woke up [0-9] times in 2 s' "$work/out" || fail "it did not sleep"
grep -Eq '^a stranger: woke up [0-9] times' "$work/out" || fail "it did not sleep"

works 'the worker has died: alive=True' python3 03_is_the_peer_alive/stdlib.py
grep -Eqx 'a stranger has its number: (alive=True|only root .*)' "$work/out" ||
    fail "a stranger was told from the worker"
works 'the worker has died: died, alive=False' python3 03_is_the_peer_alive/procwright_.py
grep -qx 'its process: died, alive=False' "$work/out" || fail "its process seems to live"

hangs "$full" python3 04_slow_reader/stdlib.py "$work/progress"
# The second report does not fit into what the first has left of the pipe.
grep -qx '1 of 10 steps done' "$work/progress" || fail "the worker stopped elsewhere"
works 'it wrote 400091 bytes' python3 04_slow_reader/procwright_.py "$work/progress"
grep -qx '10 of 10 steps done' "$work/progress" || fail "the worker did not finish"
works '24 lines; the child took' python3 04_slow_reader/slow_stdlib.py "$work/seconds"
# 22 pauses of its reader lie before its last line finds room.
awk '{ exit !($1 >= 5.0) }' "$work/seconds" || fail "its reader did not hold it up"
works '24 lines; the child took' python3 04_slow_reader/slow_procwright.py "$work/seconds"
if ruby_before; then
    hangs "$full" ruby 04_slow_reader/before.rb "$work/progress"
    grep -qx '1 of 10 steps done' "$work/progress" || fail "the worker stopped elsewhere"
    works '24 lines; the child took' ruby 04_slow_reader/slow_before.rb "$work/seconds"
    awk '{ exit !($1 >= 5.0) }' "$work/seconds" || fail "its reader did not hold it up"
fi
if ruby_after; then
    works 'it wrote 400091 bytes' ruby 04_slow_reader/procwright_.rb "$work/progress"
    grep -qx '10 of 10 steps done' "$work/progress" || fail "the worker did not finish"
    works '24 lines; the child took' ruby 04_slow_reader/slow_procwright.rb "$work/seconds"
fi

hangs "waiting for a lock" python3 05_closing/stdlib.py
! ruby_before || works 'with 1000 others blocked' ruby 05_closing/before.rb
works 'cat: PIPE' python3 05_closing/procwright_.py
if ruby_after; then
    works 'cat: PIPE' ruby 05_closing/procwright_.rb
    grep -q 'with 1000 others blocked' "$work/out" || fail "the close did not return"
fi

hangs "blocked reading from an empty pipe" python3 06_worker_pool/stdlib.py
works "the next result: b'done'" python3 06_worker_pool/procwright_.py
grep -q '^the receiver was killed: ' "$work/out" || fail "a sender was not told"
echo "all examples behave as they say"
