# frozen_string_literal: true

require_relative "helper"
require "json"

# The cases that every front end must pass, read from conformance/run.json.
class TestConformance < Minitest::Test
  CASES = JSON.parse(File.read(File.join(ROOT, "conformance", "run.json")))["cases"]

  CASES.each do |one|
    define_method("test_#{one['name']}") { check(one) }
  end

  def options(given)
    given.each_with_object({}) do |(name, value), options|
      case name
      when "timeout", "idle_timeout", "cwd", "env", "pty" then options[name.to_sym] = value
      when "until" then options[:until] = value.to_sym
      when "grace" then options[:stop] = Procwright::Stop.new(grace: value)
      when "limit"
        beyond = { "head_and_tail" => :ends, "fail" => :fail }.fetch(given["beyond"])
        options[:limit] = Procwright::Limit.new(value, beyond: beyond)
      when "beyond" then nil
      when "stderr" then options[:stderr] = value.to_sym
      else flunk "unknown option #{name}"
      end
    end
  end

  def fact(name, result)
    case name
    when "status" then result.status.exited? ? { "exited" => result.exitstatus } : { "signaled" => result.termsig }
    when "reason" then result.reason.name
    when "stdout", "stderr" then result.public_send(name)
    when "stdout_hex" then result.stdout.unpack1("H*")
    when "stdout_bytes" then result.stdout.bytesize
    when "stderr_bytes" then result.stderr.bytesize
    when "stderr_info" then result.stderr_info && "some"
    when "stdout_dropped" then result.stdout_info.dropped_bytes
    when "complete" then result.stdout_info.complete?
    when "held" then !result.stdout_info.held_by.empty?
    when "survivors" then result.survivors.size
    else flunk "unknown fact #{name}"
    end
  end

  def check(one)
    argv = one["argv"].map { |word| word == "$CHILD" ? CHILD : word }
    options = options(one["options"] || {})
    options[:input] = [one["stdin_hex"]].pack("H*") if one["stdin_hex"]
    options[:input] = "\0" * one["stdin_zeros"] if one["stdin_zeros"]
    expected = one["expect"].dup
    case expected.delete("error")
    when "invalid" then assert_raises(Procwright::InvalidValue) { Procwright.run(*argv, **options) }
    when "spawn"
      error = assert_raises(Procwright::SpawnError) { Procwright.run(*argv, **options) }
      assert_equal [expected["step"], expected["errno"]], [error.step.name, error.errno]
    else
      result = begin
        Procwright.run(*argv, on_timeout: :return, **options)
      rescue Procwright::OutputLimitExceeded => e
        e.result
      end
      assert_equal expected, expected.keys.to_h { |name| [name, fact(name, result)] }
    end
  end
end
