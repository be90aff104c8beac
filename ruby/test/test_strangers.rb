# frozen_string_literal: true

require "helper"

# Nobody else is signalled, where pids come round in milliseconds: stops of trees that
# change all the time, beside processes that write down every signal that they get. The
# library's and the command's are in crates/procwright-cli/tests/strangers.rs, which says
# more. `STRESS=1` makes 10,000 stops.
class TestStrangers < Minitest::Test
  include Helper

  def patience = ENV["STRESS"] == "1" ? 7200 : super

  LOADS = [
    "trap '' TERM; while :; do (sleep 0.02 &); done",
    "while :; do setsid sh -c 'sleep 0.03 & sleep 0.01 & :'; done",
    "set -m; while :; do (sleep 0.03 & sleep 0.02 & exit) & wait $!; done",
    "set -m; trap '' TERM; while :; do (setsid sleep 0.02 & exec sleep 0.01) | sleep 0.01; done",
    "while :; do (:) & (:) & (:) & wait; done >/dev/null"
  ].freeze

  DRIVER = <<~'RUBY'
    require "procwright"
    wanted, *loads = ARGV
    wanted = Integer(wanted)
    stopped = 0
    starts = 0
    threads = 4.times.map do
      Thread.new do
        while stopped < wanted
          load = loads[(starts += 1) % loads.size]
          begin
            Procwright.run("bash", "-c", load, timeout: 0.06, stop: { grace: 0.03 })
          rescue Procwright::TimeoutExpired
            stopped += 1
          rescue SystemCallError
            # A fork may fail for want of a number.
            sleep 0.005
          end
        end
      end
    end
    threads.each(&:join)
    puts "#{stopped} stops, #{starts} starts"
  RUBY

  def test_stops_signal_no_stranger
    skip "needs root" unless Process.uid.zero?
    stops = ENV["STRESS"] == "1" ? 10_000 : 40
    words = [Helper::CHILD, "among-strangers", RbConfig.ruby, "-I#{Helper::LIB}", "-e", DRIVER, stops.to_s, *LOADS]
    told = IO.popen(words, err: %i[child out], &:read)
    skip "no pid namespace with numbers of its own may be made" if $?.exitstatus == 77
    assert_equal 0, $?.exitstatus, told
    puts "FIGURE ruby: #{told.lines.grep(/ stops, /).last&.chomp}, #{told.lines.grep(/^strangers /).last}"
  end
end
