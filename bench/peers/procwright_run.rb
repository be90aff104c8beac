# frozen_string_literal: true

# Ours from Ruby: `Procwright.run`, or the `capture3` that is it.
require "procwright"
require_relative "check"

how = ARGV.shift
measure do |argv|
  if how == "run"
    result = Procwright.run!(*argv, binmode: true)
    [result.stdout, result.stderr]
  else
    out, err, status = Procwright::Open3.capture3(*argv, binmode: true)
    abort "the child failed" unless status.success?
    [out, err]
  end
end
