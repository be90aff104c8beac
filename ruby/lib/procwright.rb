# frozen_string_literal: true

# Runs programs, talks to them and knows when they end or die: without deadlocks,
# polling or lost output. When something hangs, it says who and why.
module Procwright
end

# Bottom first: a file uses only those above it in this list. test/test_layers.rb holds them
# to that, and README.md shows the order.
require_relative "procwright/version"
require_relative "procwright/errors"
require "procwright/native"
require_relative "procwright/deadline"
require_relative "procwright/waitable"
require_relative "procwright/encodings"
require_relative "procwright/arguments"
require_relative "procwright/stop"
require_relative "procwright/limit"
require_relative "procwright/overflow"
require_relative "procwright/cancel"
require_relative "procwright/status"
require_relative "procwright/result"
require_relative "procwright/event"
require_relative "procwright/fibers"
require_relative "procwright/garbage"
require_relative "procwright/process"
require_relative "procwright/wait"
require_relative "procwright/options"
require_relative "procwright/pipe_end"
require_relative "procwright/callback_thread"
require_relative "procwright/stdin_feed"
require_relative "procwright/output_tap"
require_relative "procwright/event_caller"
require_relative "procwright/run"
require_relative "procwright/stream"
require_relative "procwright/stream/reading"
require_relative "procwright/stream/writing"
require_relative "procwright/merged"
require_relative "procwright/descriptor_passing"
require_relative "procwright/queue"
require_relative "procwright/queue/errors"
require_relative "procwright/queue/invitation"
require_relative "procwright/queue/sender"
require_relative "procwright/queue/receiver"
require_relative "procwright/liveness"
require_relative "procwright/wait_for"
require_relative "procwright/child"
require_relative "procwright/open3"
