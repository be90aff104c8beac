# frozen_string_literal: true

# `/bin/true`: `HOW COUNT BATCHES`.
require "json"
require "open3"
how = ARGV.shift
require "procwright" unless %w[process_spawn stdlib_capture3].include?(how)

TRUE = "/bin/true"
CALLS = {
  "process_spawn" => proc { Process.wait(Process.spawn(TRUE)) },
  "stdlib_capture3" => proc { Open3.capture3(TRUE) },
  "run" => proc { Procwright.run(TRUE, stdout: :inherit, stderr: :inherit) },
  "capture" => proc { Procwright.run(TRUE) },
  "capture3" => proc { Procwright::Open3.capture3(TRUE) },
  "spawn" => proc { Procwright.spawn(TRUE, stdout: :inherit, stderr: :inherit).wait }
}.freeze

call = CALLS.fetch(how)
count, batches = ARGV.first(2).map { |word| Integer(word) }
rates = Array.new(batches) do
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  count.times(&call)
  count / (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started)
end
puts JSON.generate(plain_per_s: rates)
