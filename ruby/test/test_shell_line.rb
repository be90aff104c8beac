# frozen_string_literal: true

require_relative "helper"
require "json"

# Words behind a line for the shell: those that it would drop without an error are refused.
class TestShellLine < Minitest::Test
  CASES = JSON.parse(File.read(File.join(ROOT, "conformance", "shell.json")))

  CASES["used"].each do |words|
    define_method("test_passes_#{words}") do
      assert_equal words, Procwright::Options.command_words("run", words, true).drop(2)
    end
  end

  CASES["taken_for_one"].each do |words|
    define_method("test_refuses_as_taken_for_1_#{words}") do
      told = refusal(words)

      assert_includes told, "the first word behind the line is $0"
      named = [words.first, "sh", *words.drop(1)]
      # What is told to pass is taken.
      assert_includes told, "run(#{named.map(&:inspect).join(', ')}, shell: true)"
      assert_equal named, Procwright::Options.command_words("run", named, true).drop(2)
    end
  end

  CASES["unused"].each do |words|
    define_method("test_refuses_as_unused_#{words}") do
      assert_includes refusal(words), "uses none of the words behind it"
    end
  end

  def test_nothing_is_run
    %i[run spawn].each do |call|
      assert_raises(Procwright::InvalidValue) { Procwright.public_send(call, 'cat "$1"', "x", shell: true) }
    end
  end

  private

  def refusal(words)
    assert_raises(Procwright::InvalidValue) { Procwright::Options.command_words("run", words, true) }.message
  end
end
