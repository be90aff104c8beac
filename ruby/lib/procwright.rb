# frozen_string_literal: true

# Runs programs, talks to them and knows when they end or die: without deadlocks,
# polling or lost output. When something hangs, it says who and why.
module Procwright
end

require_relative "procwright/version"
require_relative "procwright/errors"
require "procwright/native"
require_relative "procwright/text"
require_relative "procwright/options"
require_relative "procwright/values"
require_relative "procwright/status"
require_relative "procwright/result"
require_relative "procwright/fibers"
require_relative "procwright/feed"
require_relative "procwright/taps"
require_relative "procwright/run"
require_relative "procwright/stream"
require_relative "procwright/merged"
require_relative "procwright/process"
require_relative "procwright/wait"
require_relative "procwright/child"
require_relative "procwright/queue"
require_relative "procwright/liveness"
require_relative "procwright/open3"
