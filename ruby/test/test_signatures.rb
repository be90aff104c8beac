# frozen_string_literal: true

require_relative "helper"

# sig/ names what is there, and all of it.
class TestSignatures < Minitest::Test
  SIG = File.join(ROOT, "ruby", "sig", "procwright.rbs")
  # Of Ruby's own protocols: in the signatures of their classes already.
  USUAL = %i[== eql? hash inspect initialize_copy initialize message to_s to_io fileno].freeze
  NOT_PUBLIC = %i[Native Options Fibers Garbage Run Wait SystemErrors OwnMessage].freeze

  # Names in the file: by class or module, with `self.` where that is said.
  def declared
    found = Hash.new { |all, name| all[name] = [] }
    nesting = []
    File.foreach(SIG) do |line|
      case line
      when /^\s*(?:module|class|interface)\s+(\w+)/ then nesting << $1
      when /^\s*end\s*$/ then nesting.pop
      when /^\s*def (self\??\.)?([^\s:]+(?:=|\?|!)?):/ then found[nesting.join("::")] << [$1, $2.to_sym]
      when /^\s*attr_accessor (\w+):/ then found[nesting.join("::")].push([nil, $1.to_sym], [nil, :"#{$1}="])
      end
    end
    found
  end

  def test_what_it_names_is_there
    declared.each do |name, methods|
      next if name.include?("::_")

      place = Object.const_get(name)
      methods.each do |at, method|
        there = at ? place.respond_to?(method) : place.method_defined?(method) || place.private_method_defined?(method)
        assert there, "#{name} #{at}#{method}"
      end
    end
  end

  def test_keywords_of_run_and_spawn_are_those_of_the_tables
    text = File.read(SIG)
    { "run" => :RUN, "run!" => :RUN, "spawn" => :SPAWN, "map" => :MAP, "pipeline" => :PIPELINE, "pipeline!" => :PIPELINE,
      "spawn_pipeline" => :SPAWN_PIPELINE }.each do |name, table|
      # One for each overload.
      signatures = text[/^  def self\.#{Regexp.escape(name)}:.*?(?=^  def )/m].split(") ->")[..-2]
      refute_empty signatures
      known = Procwright.const_get(:Options).const_get(table).keys
      signatures.each { |one| assert_equal known.sort, one.scan(/\?(\w+): /).flatten.map(&:to_sym).sort, name }
    end
  end

  def test_what_is_there_is_named
    names = declared
    private_here = File.read(SIG)
    [Procwright, Procwright::Queue].each do |space|
      space.constants.each do |constant|
        next if NOT_PUBLIC.include?(constant)

        place = space.const_get(constant)
        next unless place.is_a?(Module)

        assert_match(/(class|module) #{constant}\b/, private_here)
        mine = place.public_instance_methods(false) - USUAL - names[place.name].map(&:last)
        mine -= %i[native native_if_open awaited holds_back? try_line partial_line expect_end encodings refused deliver_events abandon finish close_inputs command parts explain_silence]
        mine -= place.members.map { |name| :"#{name}=" } if place < Struct
        assert_empty mine, constant
      end
      assert_empty space.singleton_methods(false) - names[space.name].map(&:last)
    end
  end
end
