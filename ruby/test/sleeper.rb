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

  # What makes a run stubborn: only SIGKILL ends it.
  def stubborn = [marked.merge("STUBBORN" => mark), Helper::CHILD, "sleep-forever"]
  STUBBORN = { stop: { signal: "STOP", grace: 100_000 } }.freeze

  # Whether its program is in that state: stopped (T) when it has got the signal.
  def stubborn?(state)
    Dir.glob("/proc/[0-9]*/environ").any? do |file|
      File.binread(file).include?("STUBBORN=#{mark}") &&
        File.read(file.sub("environ", "stat")).rpartition(")").last.split.first == state
    rescue SystemCallError
      false
    end
  end

  def teardown
    @child.stop(Procwright::Stop.new(grace: 0))
    Procwright.run("pkill", "-KILL", "-P", Process.pid.to_s) unless gone?
    super
  end
end
