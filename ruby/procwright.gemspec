# frozen_string_literal: true

require_relative "lib/procwright/version"

Gem::Specification.new do |spec|
  # A gem is built where nobody has the repository, so the core goes along.
  raise "the core is not here: build the gem with `rake gem`" unless File.directory?("#{__dir__}/ext/procwright/core")

  spec.name = "procwright"
  spec.version = Procwright::VERSION
  spec.summary = "Runs programs, talks to them and knows when they end or die"
  spec.description = "Runs programs, talks to them and knows when they end or die: without deadlocks, " \
                     "polling or lost output. When something hangs, it says who and why."
  spec.authors = ["The Procwright developers"]
  spec.licenses = ["MIT", "Apache-2.0"]
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.rb", "sig/**/*.rbs", "ext/**/*.{rs,toml,lock,rb}", "README.md", "LICENSE-*"]
  end
  spec.extensions = ["ext/procwright/extconf.rb"]
  spec.metadata["rubygems_mfa_required"] = "true"
end
