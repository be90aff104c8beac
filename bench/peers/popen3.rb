# frozen_string_literal: true

# What the subjects with a twin share: `stdlib`, or ours with that overflow. Both have the
# same methods.
require "json"

HOW = ARGV.shift
if HOW == "stdlib"
  require "open3"
else
  require "procwright"
end

def popen3(argv, &block)
  return Open3.popen3(*argv, &block) if HOW == "stdlib"

  Procwright::Open3.popen3(*argv, overflow: HOW.to_sym, &block)
end

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
