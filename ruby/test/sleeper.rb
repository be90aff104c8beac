# frozen_string_literal: true

require_relative "helper"

# For tests of calls that would wait for ever: a child that says nothing and does not end.
# Whatever a test has started and left is ended with it.
module Sleeper
  class Boom < StandardError; end

  attr_reader :child

  def setup
    super
    @child = Procwright.spawn(marked, Helper::CHILD, "sleep-forever", stdin: :pipe)
  end

  def teardown
    @child.stop(Procwright::Stop.new(grace: 0))
    Procwright.run("pkill", "-KILL", "-P", Process.pid.to_s) unless gone?
    super
  end
end
