# frozen_string_literal: true

# Peer: Ruby's Open3.capture3.
require "open3"
require_relative "check"

measure do |argv|
  out, err, status = Open3.capture3(*argv, binmode: true)
  abort "the child failed" unless status.success?
  [out, err]
end
