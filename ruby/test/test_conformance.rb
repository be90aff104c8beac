# frozen_string_literal: true

require_relative "helper"
require "fileutils"
require "json"
require "tmpdir"

# Writes how each case went, for ci/conformance.py.
def write_results(file, results)
  return if results.empty?

  folder = ENV.fetch("CONFORMANCE_RESULTS") { File.join(Helper::ROOT, "target", "conformance") }
  FileUtils.mkdir_p(folder)
  File.write(File.join(folder, file), JSON.pretty_generate(results))
end

# The cases that every front end must pass, read from conformance/run.json.
class TestConformance < Minitest::Test
  CASES = JSON.parse(File.read(File.join(ROOT, "conformance", "run.json")))["cases"].reject do |one|
    one.dig("without", "ruby")
  end
  RESULTS = {} # rubocop:disable Style/MutableConstant
  STOP = %w[signal grace scope].freeze
  ERRORS = {
    "failed" => Procwright::CommandFailed, "timeout" => Procwright::TimeoutExpired,
    "idle_timeout" => Procwright::IdleTimeout, "output_limit" => Procwright::OutputLimitExceeded
  }.freeze

  Minitest.after_run { write_results("ruby.json", RESULTS) }

  CASES.each do |one|
    define_method("test_#{one['name']}") do
      RESULTS[one["name"]] = "failed"
      check(one)
      RESULTS[one["name"]] = "passed"
    end
  end

  def options(given)
    options = { on_timeout: given["raise"] ? :raise : :return }
    stop = given.slice(*STOP).transform_keys(&:to_sym)
    options[:stop] = Procwright::Stop.new(**stop) unless stop.empty?
    given.except(*STOP).each do |name, value|
      case name
      when "timeout", "idle_timeout", "cwd", "env", "extra_env", "umask", "rlimits", "pty", "shell", "merged", "ok_codes"
        options[name.to_sym] = value
      when *Procwright.const_get(:Setup)::DEFAULTS.keys.map(&:name) then options[name.to_sym] = value
      when "stdout", "stderr" then options[name.to_sym] = value.to_sym
      when "until" then options[:until] = value
      when "stop" then options[:stop] = value
      when "limit"
        next options[:limit] = value unless given["beyond"]

        beyond = { "head_and_tail" => :ends, "fail" => :fail }.fetch(given["beyond"])
        options[:limit] = Procwright::Limit.new(value, beyond: beyond)
      when "beyond", "raise", "check" then nil
      else flunk "unknown option #{name}"
      end
    end
    options
  end

  def fact(name, result)
    case name
    when "status" then result.status.exited? ? { "exited" => result.exitstatus } : { "signaled" => result.termsig }
    when "reason" then result.reason.name
    when "stdout", "stderr" then result.public_send(name)
    when "stdout_hex" then result.stdout.unpack1("H*")
    when "stderr_hex" then result.stderr.unpack1("H*")
    when "stdout_bytes" then result.stdout.bytesize
    when "stderr_bytes" then result.stderr.bytesize
    when "stderr_info" then result.stderr_info && "some"
    when "stdout_dropped" then result.stdout_info.dropped_bytes
    when "stderr_dropped" then result.stderr_info.dropped_bytes
    when "merged" then result.merged.slice_when { |a, b| a[0] != b[0] }.map { |all| [all[0][0].name, all.map(&:last).join] }
    when "ambiguous" then result.merged.any?(&:ambiguous?)
    when "complete" then result.stdout_info.complete?
    when "held" then !result.stdout_info.held_by.empty?
    when "survivors" then result.survivors.size
    else flunk "unknown fact #{name}"
    end
  end

  def check(one)
    argv = one["argv"].map do |word|
      next [word["hex"]].pack("H*") if word.is_a?(Hash)

      word == "$CHILD" ? CHILD : word
    end
    given = one["options"] || {}
    options = options(given)
    options[:input] = [one["stdin_hex"]].pack("H*") if one["stdin_hex"]
    options[:input] = "\0" * one["stdin_zeros"] if one["stdin_zeros"]
    call = -> { given["check"] ? Procwright.run!(*argv, **options) : Procwright.run(*argv, **options) }
    expected = one["expect"].dup
    case error = expected.delete("error")
    when "invalid" then assert_raises(Procwright::InvalidValue, &call)
    when "spawn"
      error = assert_raises(Procwright::SpawnError, &call)
      assert_equal [expected["step"], expected["errno"]], [error.step.name, error.errno]
    else
      result = outcome(error, call)
      assert_equal expected, expected.keys.to_h { |name| [name, fact(name, result)] }
      # A run that was not stopped has left them.
      holders = result.reason == :finished ? result.stdout_info&.held_by : nil
      holders&.each { |holder| Process.kill(:KILL, holder.pid) }
    end
  end

  # What came of it, and with which error.
  def outcome(error, call)
    return assert_raises(ERRORS.fetch(error), &call).result if error

    call.call
  rescue Procwright::OutputLimitExceeded => e
    raise if error

    e.result
  end
end

# The cases of conformance/map.json.
class TestConformanceOfMap < Minitest::Test
  CASES = JSON.parse(File.read(File.join(ROOT, "conformance", "map.json")))["cases"].reject do |one|
    one.dig("without", "ruby")
  end
  RESULTS = {} # rubocop:disable Style/MutableConstant
  COUNTS = %w[succeeded failed stopped succeeded_before failed_before unknown].freeze

  Minitest.after_run { write_results("map-ruby.json", RESULTS) }

  CASES.each do |one|
    define_method("test_#{one['name']}") do
      RESULTS[one["name"]] = "failed"
      Dir.mktmpdir { |dir| check(one, File.join(dir, "journal")) }
      RESULTS[one["name"]] = "passed"
    end
  end

  def check(one, path)
    expected = one["expect"]
    return assert_raises(Procwright::InvalidValue) { run_all(one, one["items"], nil) } if expected["error"] == "invalid"

    again = one["again"]
    done = run_all(one, one["items"], again && path)
    if again
      forget_ends(path) if again["without_ends"]
      assert_empty again.keys - %w[items without_ends rerun_failed rerun_unknown]
      rerun = again.slice("rerun_failed", "rerun_unknown").transform_keys(&:to_sym)
      done = run_all(one, again["items"], Procwright::Journal.new(path, resume: true, **rerun))
    end
    assert_equal expected, (expected.to_h { |name, wanted| [name, fact(name, wanted, *done)] })
  end

  # What came of each, and of all.
  def run_all(one, items, journal)
    words = one["argv"].map { |word| word == "$CHILD" ? CHILD : word }
    options = (one["options"] || {}).transform_keys(&:to_sym)
    assert_empty options.keys - %i[parallel stop_after_failures deadline timeout cwd extra_env ok_codes]
    map = Procwright.map(items.map { |item| [*words, item] }, ordered: true, journal: journal, **options)
    [map.to_a, map.progress]
  end

  # Takes the ends out of a journal, as if its writer had been killed before each of them.
  def forget_ends(path)
    lines = File.readlines(path)
    kept = lines.reject { |line| line.include?('"event":"ended"') }
    refute_equal lines, kept
    File.write(path, kept.join)
  end

  def status(ended)
    assert_equal [ended.before.status, ended.before.exitstatus], [ended.status, ended.exitstatus]
    return if ended.status.nil?

    ended.exitstatus ? { "exited" => ended.exitstatus } : { "signaled" => ended.status.termsig }
  end

  def fact(name, wanted, ended, progress)
    case name
    when "commands" then progress.taken
    when *COUNTS then progress[name]
    when "stopped_by" then progress.stopped_by&.name
    when "statuses_before" then ended.select(&:before).to_h { |one| [one.index.to_s, status(one)] }
    when "stdout" then ended.filter_map { |one| one.result&.stdout }.join
    when "failures"
      ended.reject(&:success?).to_h do |one|
        line = wanted[one.index.to_s]
        [one.index.to_s, line.nil? || one.summary.include?(line) ? line : one.summary]
      end
    else flunk "unknown fact #{name}"
    end
  end
end

# The cases of conformance/pipeline.json.
class TestConformanceOfPipelines < Minitest::Test
  CASES = JSON.parse(File.read(File.join(ROOT, "conformance", "pipeline.json")))["cases"].reject do |one|
    one.dig("without", "ruby")
  end
  RESULTS = {} # rubocop:disable Style/MutableConstant
  STOP = %w[signal grace].freeze
  ERRORS = TestConformance::ERRORS

  Minitest.after_run { write_results("pipeline-ruby.json", RESULTS) }

  CASES.each do |one|
    define_method("test_#{one['name']}") do
      RESULTS[one["name"]] = "failed"
      check(one)
      check(one, held: true) unless keeps_ends?(one) || ends_in_a_fan?(one)
      RESULTS[one["name"]] = "passed"
    end
  end

  # Whether several are captured, of which one that is held has one.
  def ends_in_a_fan?(one)
    last = one["stages"].last
    last.is_a?(Hash) && last.key?("fan")
  end

  # Whether a limit says how much is kept, which is for what is captured alone.
  def keeps_ends?(one)
    given = one["options"] || {}
    given.key?("limit") && given["beyond"] != "fail"
  end

  # What comes of a pipeline that a caller holds.
  def held(*stages, **options) = Procwright.spawn_pipeline(*stages, **options, &:result)

  class Failed < StandardError; end

  FUNCTIONS = {
    "copy" => ->(input, output) { IO.copy_stream(input, output) },
    "upcase" => ->(input, output) { input.each_line { |line| output << line.upcase } },
    "first_line" => ->(input, output) { output << input.gets },
    "fail" => lambda do |input, output|
      output << input.gets
      raise Failed, "on purpose"
    end
  }.freeze

  # A stage: its words, or a Hash of these and options of its own; a function; a fan.
  def stage(given)
    return FUNCTIONS.fetch(given["function"]) if given.is_a?(Hash) && given.key?("function")
    return given.map { |word| word == "$CHILD" ? CHILD : word } if given.is_a?(Array)
    return Procwright::Fan.new(*given["fan"].map { |program| stage(program) }) if given.key?("fan")

    { argv: stage(given["argv"]), **options(given.except("argv")) }
  end

  def options(given)
    stop = given.slice(*STOP).transform_keys(&:to_sym)
    options = stop.empty? ? {} : { stop: Procwright::Stop.new(**stop) }
    given.except(*STOP, "check", "raise", "beyond").each do |name, value|
      options[name.to_sym] =
        case name
        when "timeout", "idle_timeout", "cwd", "extra_env", "success", "until", "no_new_privs" then value
        when "stdout", "stderr" then value.to_sym
        when "ok_codes" then value.transform_keys { |stage| Integer(stage) }
        when "elastic" then value.to_h { |stage| [stage, true] }
        when "limit" then Procwright::Limit.new(value, beyond: { "head_and_tail" => :ends, "fail" => :fail }.fetch(given["beyond"]))
        else flunk "unknown option #{name}"
        end
    end
    options
  end

  def check(one, held: false)
    given = one["options"] || {}
    options = { on_timeout: given["raise"] ? :raise : :return, **options(given) }
    options[:input] = [one["stdin_hex"]].pack("H*") if one["stdin_hex"]
    options[:input] = "\0" * one["stdin_zeros"] if one["stdin_zeros"]
    stages = one["stages"].map { |stage| stage(stage) }
    call = lambda do
      result = held ? held(*stages, **options) : Procwright.pipeline(*stages, **options)
      given["check"] ? result.check! : result
    end
    expected = one["expect"].dup
    case error = expected.delete("error")
    when "invalid" then assert_raises(Procwright::InvalidValue, &call)
    when "spawn"
      refused = assert_raises(Procwright::SpawnError, &call)
      assert_equal expected, { "step" => refused.step.name, "errno" => refused.errno, "stage" => refused.stage }.slice(*expected.keys)
    when "function" then assert_equal expected["says"], [assert_raises(Failed, &call).message]
    else
      result = outcome(error, expected, call)
      assert_equal expected, expected.keys.to_h { |name| [name, fact(name, result)] }
      # A pipeline that was not stopped has left them.
      holders = result.reason == :finished ? result.stdout_info&.held_by : nil
      holders&.each { |holder| Process.kill(:KILL, holder.pid) }
    end
  end

  # What came of it, and with which error.
  def outcome(error, expected, call)
    if error
      caught = assert_raises(ERRORS.fetch(error), &call)
      expected.delete("says")&.each { |words| assert_includes caught.message, words }
      return caught.result
    end

    call.call
  rescue Procwright::OutputLimitExceeded => e
    raise if error

    e.result
  end

  def fact(name, result)
    of_each = ->(&fact) { result.stages.map(&fact) }
    case name
    when "success" then result.success?
    when "rule", "reason" then result.public_send(name).name
    when "outcome", "stdout" then result.public_send(name)
    when "judgements" then of_each.call { |stage| stage.judgement.name }
    when "reasons" then of_each.call { |stage| stage.reason.name }
    when "statuses" then of_each.call { |stage| stage.status.exited? ? { "exited" => stage.exitstatus } : { "signaled" => stage.termsig } }
    when "stdout_hex" then result.stdout.unpack1("H*")
    when "stdout_bytes" then result.stdout.bytesize
    when "stdouts" then result.stages.select(&:fan).map(&:stdout)
    when "fanned_out" then of_each.call { |stage| stage.fan&.fetch(:bytes_out) }
    when "stderrs" then result.stages.map(&:stderr)
    when "passed_on" then of_each.call { |stage| stage.elastic&.fetch(:bytes_out) }
    when "functions" then of_each.call { |stage| stage.function&.map(&:name) }
    when "held" then !result.stdout_info.held_by.empty?
    when "survivors" then result.stages.sum { |stage| stage.survivors.size }
    else flunk "unknown fact #{name}"
    end
  end
end
