# Sourced by ci/bench.sh: the subjects of the suite `ruby`.

for source in flood two_threads discard lines ticker read spawn; do
    cc -O2 -Wall -Wextra -std=gnu17 -pthread "$crate/floors/$source.c" -o "$out/bin/$source"
done

# The library as it is released, where nobody builds another over it meanwhile.
ruby_missing=
rm -rf "$out/ruby"
if ! command -v ruby > /dev/null; then
    ruby_missing='ruby is not installed'
    for subject in capture3 capture3-true threads-read nonblock-select io popen3 process-spawn; do
        missing "ruby-$subject" "$ruby_missing"
    done
elif ! try ruby sh -c 'cd ruby && PROFILE=release rake --quiet compile'; then
    ruby_missing=$(why ruby)
else
    cp -R ruby/lib "$out/ruby"
fi
if [ -n "$ruby_missing" ]; then
    for subject in '' -capture3 -spill -bare -run -spawn; do
        missing "procwright-ruby$subject" "$ruby_missing"
    done
fi
export RUBYLIB="$out/ruby"
