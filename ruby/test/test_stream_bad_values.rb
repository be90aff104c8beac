# frozen_string_literal: true

require_relative "helper"
require "stringio"

# Bad values of every parameter of every method of a stream, and of an IO: the exceptions are the
# same, and so is what can be read or was written afterwards.
#
# The methods and their parameters are those of sig/: a new one is called here by itself, and one
# of another kind fails.
class TestStreamBadValues < Minitest::Test
  SIG = File.join(ROOT, "ruby", "sig", "procwright.rbs")
  TEXT = "first\nsecond é€ line\nlast"

  ODD = Object.new
  def ODD.inspect = "<odd>"
  HUGE = 2**70

  # By what is wrong with them. Each is made anew.
  VALUES = {
    "of no type" => -> { ODD }, "nil" => -> { nil }, "true" => -> { true }, "a list" => -> { [1, "x"] }, "a hash" => -> { { 1 => 2 } },
    "negative" => -> { -1 }, "zero" => -> { 0 }, "a fraction" => -> { 1.5 }, "NaN" => -> { Float::NAN }, "huge" => -> { HUGE },
    "complex" => -> { Complex(1, 1) }, "a symbol" => -> { :x }, "text" => -> { +"x" }, "empty" => -> { +"" }, "NUL" => -> { +"a\0b" },
    "broken UTF-8" => -> { +"\xff" }, "UTF-16" => -> { "x".encode("UTF-16LE") }, "frozen" => -> { "x" },
    "closed file" => -> { File.open(IO::NULL).tap(&:close) }, "closed memory" => -> { StringIO.new("x").tap(&:close) }
  }.freeze

  # A parameter: its kind (:positional, :rest, :key, :keyrest), its name, and a value that is good.
  Parameter = Struct.new(:kind, :name, :good)

  # The methods with parameters, each as its name and one of its overloads.
  def self.signatures
    text = File.read(SIG)[/^  class Stream\n(.*?)^  end$/m, 1]
    # Overloads stand on lines of their own.
    text = text.gsub(/\n\s+\|/, " |").gsub(/attr_accessor (\w+): (\w+)/, 'def \1=: (\2) -> \2')
    text.lines.flat_map do |line|
      name, overloads = line.match(/^\s+def ([^:]+(?:=|\?)?): (.*)$/)&.captures
      next [] if name.nil?

      overloads.split(/ \| (?=\(|\[)/).map { |one| [name.to_sym, parameters(one[/\A(?:\[\w+\] )?\((.*?)\)(?= ->|\)? \{|\z)/, 1] || one[/\((.*)\) (?:->|\{)/, 1])] }
    end
  end

  def self.parameters(list)
    depth = 0
    parts = list.each_char.slice_when do |before, _|
      depth += { "(" => 1, "[" => 1, ")" => -1, "]" => -1 }.fetch(before, 0)
      before == "," && depth.zero?
    end
    parts.map { |part| parameter(part.join.delete_suffix(",").strip) }
  end

  def self.parameter(text)
    case text
    when /\A\*\*/ then Parameter.new(:keyrest)
    when /\A\*/ then Parameter.new(:rest)
    when /\A\??(\w+): / then Parameter.new(:key, $1.to_sym)
    when /\A\??(Integer|String|Symbol|seconds|untyped|T|\()/
      Parameter.new(:positional, nil, { "Integer" => 3, "String" => +"x", "Symbol" => :read, "seconds" => 0 }.fetch($1, "x"))
    else raise "a parameter of a kind that no table has: #{text}"
    end
  end

  WRITES = %i[write syswrite << print puts printf putc write_nonblock sync= wait_writable pwrite].freeze

  # What differs, and why: by the beginning of what is told of it.
  DIFFERENT = {
    /\A(seek|sysseek|pos=|pread|pwrite)\(/ => "a pipe has no position, whatever is asked for: Errno::ESPIPE",
    /\A(gets|readline)\(timeout: / => "an IO takes any keyword, and goes on without it",
    /\A(wait|wait_readable|wait_writable)\(/ => "what waits here takes seconds as all waits of this library do",
    /\Aset_encoding\(NUL\)/ => "an IO refuses a NUL in the second name alone"
  }.freeze

  def test_the_signatures_are_read
    names = self.class.signatures.reject { |_, parameters| parameters.empty? }.map(&:first).uniq
    assert_operator names.size, :>=, 25
    assert_empty %i[gets read_nonblock write_nonblock set_encoding lineno=] - names
  end

  # Both warn of some values, and go on.
  def setup
    super
    @verbose, $VERBOSE = $VERBOSE, nil
  end

  def teardown
    $VERBOSE = @verbose
    super
  end

  # What a call gives, or raises: the first class of it that is Ruby's.
  def outcome(io, name, arguments, keywords)
    yielded = []
    value = io.public_send(name, *arguments, **keywords) { |one| yielded << one }
    [value.equal?(io) ? :itself : value.is_a?(Enumerator) ? :enumerator : value, yielded]
  rescue StandardError => e
    kind = class_elsewhere(e)
    # A RangeError, which says more.
    kind == FloatDomainError ? RangeError : kind
  end

  # A stream and an IO that have the same, and what they have afterwards.
  def beside(writes)
    child = Procwright.spawn(CHILD, "cat", **(writes ? { stdin: :pipe } : { input: TEXT.b }))
    reader, writer = IO.pipe
    if writes
      rest = lambda do
        [writer, child.stdin].each(&:close)
        [reader.read.b, child.stdout.read.b]
      end
      yield writer, child.stdin, rest
    else
      writer.binmode.write(TEXT.b)
      writer.close
      [reader, child.stdout].each(&:wait_readable)
      yield reader, child.stdout, -> { [reader, child.stdout].map { |io| io.closed? ? :closed : io.read.b } }
    end
  ensure
    [reader, writer].each { |io| io&.close }
    child&.kill
    child&.wait
  end

  def check(name, what, arguments, keywords)
    writes = WRITES.include?(name)
    beside(writes) do |io, stream, rest|
      # A value that is changed is another for each; one that is written as text is the same.
      same = what.include?("closed") ? [arguments.map(&:call), keywords.transform_values(&:call)] : nil
      theirs, ours = [io, stream].map do |one|
        given, named = same || [arguments.map(&:call), keywords.transform_values(&:call)]
        [outcome(one, name, given, named)]
      end
      there, here = rest.call
      found = [theirs, there].inspect == [ours, here].inspect
      @differences << "#{name}(#{what}): #{theirs.inspect} and #{there.inspect[0, 40]}, here #{ours.inspect} and #{here.inspect[0, 40]}" unless found
    end
  end

  signatures.group_by(&:first).each do |name, overloads|
    overloads = overloads.map(&:last).reject(&:empty?)
    next if overloads.empty? || !IO.method_defined?(name)

    define_method("test_bad_values_of_#{name}") do
      @differences = []
      overloads.each do |parameters|
        parameters.each_with_index do |parameter, place|
          before = parameters.first(place).reject { |one| %i[key keyrest].include?(one.kind) }.map { |one| -> { one.good } }
          VALUES.each do |what, make|
            case parameter.kind
            when :key then check(name, "#{parameter.name}: #{what}", before, { parameter.name => make })
            when :keyrest then check(name, "no_such: #{what}", before, { no_such: make })
            else check(name, "#{'..., ' * place}#{what}", [*before, make], {})
            end
          end
        end
      end
      assert_empty @differences.reject { |one| DIFFERENT.keys.any? { |key| key === one } }
    end
  end
end
