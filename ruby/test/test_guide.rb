# frozen_string_literal: true

require_relative "helper"
require "tmpdir"

# What the documents show in Ruby, each block as a program. `# => value` is compared.
class TestGuide < Minitest::Test
  FILES = %w[docs/guide/ruby.md docs/guide/hangs.md docs/recipes/pipelines.md].freeze
  CHECK = <<~'RUBY'
    def __check(line, found, expected)
      abort "line #{line}: #{found.inspect}, not #{expected.inspect}" unless found == expected
      found
    end
  RUBY

  FILES.each do |file|
    text = File.read(File.join(ROOT, file))
    blocks = text.to_enum(:scan, /^```ruby\n(.*?)^```$/m).map { [$~.pre_match.count("\n") + 2, $1] }
    blocks.each do |first, block|
      define_method("test_the_block_of_#{file}_at_line_#{first}") { check(first, block) }
    end
  end

  def check(first, block)
    lines = block.lines.each_with_index.map do |line, place|
      line.sub(/^(.*\S)\s+# => (.+)$/) { "__check(#{first + place}, (#{$1}), (#{$2}))" }
    end
    assert_includes lines.join, "__check"
    # So that the Ruby that a block starts is this one, and finds the library.
    found = { "RUBYLIB" => LIB, "PATH" => [RbConfig::CONFIG["bindir"], ENV.fetch("PATH")].join(File::PATH_SEPARATOR) }
    Dir.mktmpdir { |directory| ruby(CHECK + lines.join.sub('require "procwright"', ""), cwd: directory, extra_env: found).check! }
  end
end
