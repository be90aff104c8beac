# frozen_string_literal: true

require_relative "helper"
require "timeout"

# A stream beside an IO: the same calls with the same inputs, results and exceptions compared.
# Every public method of IO's is called here, or is in the guide's list of those that a stream
# has not.
class TestStreamBesideIO < Minitest::Test
  GUIDE = File.join(ROOT, "docs", "guide", "ruby.md")
  TEXT = "first\nsecond line\n\n\nthird é€🦀 ünd\nlast".b.freeze
  RECURSIVE = [1, [2]].tap { |array| array << array }
  Text = Struct.new(:to_s)
  Words = Struct.new(:to_str)
  Many = Struct.new(:to_ary)

  # Strings in several encodings, and what is no string.
  OBJECTS = {
    "UTF-8" => "ä", "bytes" => "\xff".b, "bytes of ASCII" => "a\n".b, "Latin-1" => "ä".encode("ISO-8859-1"),
    "UTF-16LE" => "aä".encode("UTF-16LE"), "UTF-16LE with an end" => "a\n".encode("UTF-16LE"),
    "UTF-32BE" => "x\n".encode("UTF-32BE"), "a broken UTF-16LE" => "a\n\0".b.force_encoding("UTF-16LE"),
    "UTF-16" => "a\n".encode("UTF-16"), "broken UTF-8" => "\xc3\n", "Shift_JIS" => "表\n".encode("Shift_JIS"),
    "ISO-2022-JP" => "日\n".encode("ISO-2022-JP"), "empty" => "", "a newline" => "\n",
    "nil" => nil, "a number" => 1.5, "a symbol" => :é, "an empty list" => [], "a list" => [1, ["ä", nil, []]],
    "a recursive list" => RECURSIVE, "an object" => Text.new("as text"), "an object without text" => Text.new(5),
    "an object that is text" => Words.new("as a string\n"), "an object that is a list" => Many.new([1, 2])
  }.freeze

  # Writes of one object, and of several.
  SINGLE = {
    "write" => ->(io, object) { io.write(object) },
    "<<" => ->(io, object) { (io << object).equal?(io) },
    "print" => ->(io, object) { io.print(object) },
    "puts" => ->(io, object) { io.puts(object) },
    "syswrite" => ->(io, object) { io.syswrite(object) },
    "write_nonblock" => ->(io, object) { io.write_nonblock(object) },
    "putc" => ->(io, object) { io.putc(object) },
    "printf" => ->(io, object) { io.printf("%s|", object) }
  }.freeze

  WRITES = {
    "write of several" => ->(io) { io.write("ä", "\xff".b, "ü".encode("UTF-16LE"), 1, nil, RECURSIVE.inspect) },
    "print of several" => ->(io) { io.print("ä", "\xff".b, 1, nil) },
    "print of nothing" => ->(io) { $_ = "the last line"; io.print },
    "print of nothing, nil" => ->(io) { $_ = nil; io.print },
    "puts of several" => ->(io) { io.puts("ä", "\xff".b, "a\n".encode("UTF-16LE"), [RECURSIVE, ["x"]]) },
    "puts of nothing" => ->(io) { io.puts },
    "puts of mixed lists" => ->(io) { io.puts(["ä", ["\xff".b]], []) },
    "printf of nothing" => ->(io) { io.printf },
    "printf of too little" => ->(io) { io.printf("%d") },
    "putc of nothing like it" => ->(io) { io.putc(nil) },
    "putc of large numbers" => ->(io) { [io.putc(65 + 512), io.putc(-1), io.putc(66.7)] },
    "set_encoding of an unknown one" => ->(io) { silently { io.set_encoding("no such") }.equal?(io) && io.write("ä") },
    "write in another encoding" => ->(io) { io.set_encoding("ISO-8859-1") && [io.write("é"), io.write("€")] },
    "write of bytes in another encoding" => ->(io) { io.set_encoding("ISO-8859-1") && io.write("\xff".b) },
    "write of bytes as UTF-8" => ->(io) { io.set_encoding("UTF-8") && io.write("\xff".b) },
    "write as UTF-16LE" => ->(io) { io.set_encoding("UTF-16LE") && io.write("aé") },
    "puts as UTF-16LE" => ->(io) { io.set_encoding("UTF-16LE") && io.puts("aé", "b\n") },
    "puts in another encoding" => ->(io) { io.set_encoding("ISO-8859-1") && io.puts("é", "ü".encode("UTF-16BE")) },
    "syswrite in another encoding" => ->(io) { io.set_encoding("ISO-8859-1") && io.syswrite("é") },
    "write_nonblock in another encoding" => ->(io) { io.set_encoding("ISO-8859-1") && io.write_nonblock("é") },
    "write when binary" => ->(io) { io.binmode && [io.write("é", "\xff".b), io.binmode?, io.external_encoding] },
    "encodings" => ->(io) { [io.external_encoding, io.internal_encoding] },
    "write_nonblock without an exception" => ->(io) { io.write_nonblock("x", exception: false) },
    "pwrite" => ->(io) { io.pwrite("x", 0) },
    "pos" => ->(io) { io.pos },
    "pos=" => ->(io) { io.pos = 1 },
    "tell" => ->(io) { io.tell },
    "seek" => ->(io) { io.seek(0) },
    "sysseek" => ->(io) { io.sysseek(0) },
    "rewind" => ->(io) { io.rewind },
    "flush, sync" => ->(io) { [io.flush.equal?(io), io.sync = true, io.sync] },
    "wait_writable" => ->(io) { io.wait_writable(0).equal?(io) },
    "wait" => ->(io) { [!io.wait(IO::WRITABLE, 0), io.wait(0, :write).equal?(io)] },
    "tty?, isatty" => ->(io) { [io.tty?, io.isatty] },
    "pid" => ->(io) { io.pid },
    "gets" => ->(io) { io.gets },
    "pread" => ->(io) { io.pread(1, 0) },
    "close_read" => ->(io) { io.close_read },
    "close_write" => ->(io) { [io.close_write, io.closed?] },
    "close, and write" => ->(io) { [io.close, io.close, io.write("x")] },
    "close, and puts" => ->(io) { io.close || io.puts("x") },
    "close, and print" => ->(io) { io.close || io.print("x") },
    "close, and pos" => ->(io) { io.close || io.pos },
    "to_io, fileno, to_i" => ->(io) { [io.to_io.is_a?(IO), io.fileno == io.to_i] }
  }.freeze

  ODD = Object.new.freeze
  NUMBERS = [3, 3.9, -1, 0, nil, "x", ODD, [], true, false, 2**70].freeze
  SEPARATORS = ["\n", "", "in", "é", "é".encode("ISO-8859-1"), "\n".encode("UTF-16LE"), "\xff".b, "n".b, nil, :s, 5,
                ODD, Words.new("s"), [], true].freeze
  READS = {
    "gets" => ->(io) { [io.gets, $_, io.gets(chomp: true), $_, io.gets(3), $_, io.read && io.gets, $_] },
    "readline" => ->(io) { [io.readline, $_, io.readline(chomp: true), io.read, io.readline] },
    "readlines" => ->(io) { [io.readlines, $_] },
    "each_line" => ->(io) { io.each_line.to_a },
    "each" => ->(io) { io.each { |line| break line } },
    "each, itself" => ->(io) { io.each { nil }.equal?(io) },
    "each_char" => ->(io) { io.each_char.to_a },
    "each_char, itself" => ->(io) { io.each_char { nil }.equal?(io) },
    "each_byte" => ->(io) { io.each_byte.to_a },
    "each_codepoint" => ->(io) { io.each_codepoint.to_a },
    "each_codepoint, itself" => ->(io) { io.each_codepoint { nil }.equal?(io) },
    "getc" => ->(io) { [io.getc, io.read && io.getc] },
    "readchar" => ->(io) { io.read && io.readchar },
    "getbyte" => ->(io) { [io.getbyte, io.read && io.getbyte] },
    "readbyte" => ->(io) { io.read && io.readbyte },
    "read" => ->(io) { [io.read, io.read] },
    "read into what is no string" => ->(io) { io.read(3, 5) },
    "read into a frozen string" => ->(io) { [(io.read(3, "x") rescue $!.class), io.read(3)] },
    "readpartial into a frozen string" => ->(io) { [(io.readpartial(3, "x") rescue $!.class), io.read(3)] },
    "readpartial" => ->(io) { [io.gets, io.readpartial(2, +"old")] },
    "sysread" => ->(io) { [io.sysread(2), io.sysread(2, +"old")] },
    "read_nonblock" => ->(io) { io.wait_readable && io.read_nonblock(2) },
    "ungetc of another type" => ->(io) { io.ungetc(ODD) },
    "ungetbyte of another type" => ->(io) { io.ungetbyte(ODD) },
    "ungetbyte of large numbers" => ->(io) { [io.ungetbyte(65 + 512), io.ungetbyte(-1), io.read(2)] },
    "ungetc of mixed encodings" => ->(io) { [io.ungetc("ä".encode("ISO-8859-1")), io.read(2), io.ungetc(nil)] },
    "lineno=" => ->(io) { [io.lineno = 5, io.gets, io.lineno, $.] },
    "lineno= of another type" => ->(io) { io.lineno = "x" },
    "eof?, eof" => ->(io) { [io.eof?, io.read.size, io.eof] },
    "a separator, and another encoding" => lambda do |io|
      first = io.gets("d")
      io.set_encoding("UTF-16LE:UTF-8") && [first, io.gets("d"), io.set_encoding("UTF-8"), io.gets("d")].values_at(0, 1, 3)
    end,
    "a newline, and another encoding" => ->(io) { [io.gets, io.set_encoding("UTF-16LE:UTF-8").class.nil?, io.read.size] },
    "set_encoding with too much" => ->(io) { io.set_encoding("a", "b", "c", "d") },
    "another default separator" => ->(io) { io.gets("e") + io.gets("e", chomp: true) },
    "pos" => ->(io) { io.pos },
    "pos=" => ->(io) { io.pos = 1 },
    "tell" => ->(io) { io.tell },
    "seek" => ->(io) { io.seek(0, IO::SEEK_END) },
    "sysseek" => ->(io) { io.sysseek(0) },
    "rewind" => ->(io) { io.rewind },
    "pread" => ->(io) { io.pread(1, 0) },
    "pwrite" => ->(io) { io.pwrite("x", 0) },
    "wait" => ->(io) { [io.wait.equal?(io), !io.wait(IO::READABLE, 0), io.wait(0, :read).equal?(io)] },
    "wait_readable" => ->(io) { io.wait_readable.equal?(io) },
    "wait_writable" => ->(io) { io.wait_writable(0) },
    "binmode" => ->(io) { [io.binmode?, io.binmode.equal?(io), io.binmode?, io.gets.encoding] },
    "encodings" => ->(io) { [io.external_encoding, io.internal_encoding] },
    "set_encoding" => ->(io) { [io.set_encoding("ISO-8859-1").equal?(io), io.gets.encoding, io.external_encoding] },
    "close" => ->(io) { [io.close, io.closed?, io.close, io.gets] },
    "close, and eof?" => ->(io) { io.close || io.eof? },
    "close, and each_byte" => ->(io) { io.close || io.each_byte { nil } },
    "close_write" => ->(io) { io.close_write },
    "close_read" => ->(io) { [io.close_read, io.closed?] },
    "putc" => ->(io) { io.putc("x") },
    "puts" => ->(io) { io.puts("x") },
    "print" => ->(io) { io.print("x") },
    "printf" => ->(io) { io.printf("x") },
    "<<" => ->(io) { io << "x" },
    "syswrite" => ->(io) { io.syswrite("x") },
    "write_nonblock" => ->(io) { io.write_nonblock("x") }
  }.freeze

  def self.silently
    warned, $VERBOSE = $VERBOSE, nil
    yield
  ensure
    $VERBOSE = warned
  end

  # What both give, or which exception: the first class of it that is Ruby's, and its words.
  def outcome(io, words: true)
    yield io
  rescue StandardError, SystemStackError => e
    theirs = class_elsewhere(e)
    words ? [theirs, e.message] : theirs
  end

  def beside_a_reader(what, text: TEXT, words: true, &call)
    child = Procwright.spawn(CHILD, "cat", input: text)
    reader, writer = IO.pipe
    feeding = Thread.new { writer.binmode.write(text) rescue nil; writer.close }
    # What does not wait for input finds it there on both sides.
    [reader, child.stdout].each(&:wait_readable)
    theirs = outcome(reader, words: words, &call)
    ours = outcome(child.stdout, words: words, &call)
    assert_equal [theirs].inspect, [ours].inspect, what
    reader.close
    feeding.join
    child.stop
  end

  def beside_a_writer(what, words: true)
    child = Procwright.spawn(CHILD, "cat", stdin: :pipe)
    reader, writer = IO.pipe
    theirs = outcome(writer, words: words) { |io| yield io }
    ours = outcome(child.stdin, words: words) { |io| yield io }
    assert_equal [theirs].inspect, [ours].inspect, what
    [writer, child.stdin].each(&:close)
    assert_equal reader.read.b, child.stdout.read.b, what unless theirs.is_a?(Array) && theirs.first.is_a?(Class)
    reader.close
    child.stop
  end

  SINGLE.each do |name, call|
    define_method("test_writing: #{name}") do
      OBJECTS.each do |what, object|
        # Of a conversion only the class is compared: the words are of Ruby's version.
        beside_a_writer("#{name}, #{what}", words: false) { |io| call.call(io, object) }
      end
    end
  end

  WRITES.each do |name, call|
    define_method("test_into: #{name}") { beside_a_writer(name, &call) }
  end

  READS.each do |name, call|
    define_method("test_out_of: #{name}") { beside_a_reader(name, &call) }
  end

  def test_separators
    SEPARATORS.each do |separator|
      %i[gets readline readlines].each do |method|
        beside_a_reader("#{method}(#{separator.inspect})", words: separator != true) { |io| io.public_send(method, separator) }
        # An IO forgets a limit that the last byte of a longer separator comes at.
        next if separator == "in"

        beside_a_reader("#{method}(#{separator.inspect}, 4)") { |io| io.public_send(method, separator, 4) }
      end
    end
  end

  def test_numbers
    NUMBERS.each do |number|
      %i[read readpartial sysread].each do |method|
        words = ![false, true, 2**70].include?(number) && method != :sysread
        next if method == :read && number == 2**70

        beside_a_reader("#{method}(#{number.inspect})", words: words) { |io| io.wait_readable && io.public_send(method, number) }
      end
      next if number == 2**70

      beside_a_reader("gets(nil, #{number.inspect})", words: ![true, false].include?(number)) { |io| io.gets(nil, number) }
    end
  end

  def test_broken_text_character_by_character
    ["a\xffb\xc3", "\xe2\x82", "\xf0\x9f\xa6a", "é"].each do |text|
      %i[each_char each_codepoint each_byte].each do |method|
        beside_a_reader("#{method} of #{text.inspect}", text: text.b) { |io| io.public_send(method).to_a }
      end
    end
  end

  # Methods of IO's that are there without a require.
  def methods_of_io
    code = "print((IO.public_instance_methods - Object.instance_methods).join(' '))"
    Procwright.run(RbConfig.ruby, "--disable-gems", "-e", code).stdout.split.map(&:to_sym)
  end

  def test_every_method_of_an_io_is_here_or_in_the_guides_list
    listed = File.read(GUIDE)[/^### What an IO has and a stream has not\n\n(.*?)\n\n/m, 1].scan(/`([a-z_]+[?=!]?)`/).flatten.map(&:to_sym)
    stream = Procwright::Stream
    of_a_pipe = %i[to_io fileno to_i]
    missing = methods_of_io.reject { |name| stream.public_method_defined?(name) } - of_a_pipe
    assert_empty missing - listed, "neither there nor in the guide's list"
    assert_empty listed.select { |name| stream.public_method_defined?(name) }, "in the guide's list, and there"
  end

  def test_every_method_that_is_here_is_compared
    compared = [SINGLE, WRITES, READS].flat_map { |table| table.keys.flat_map { |key| key.scan(/[a-z_]+[?=]?|<</) } }.map(&:to_sym)
    others = %i[isatty external_encoding internal_encoding closed? sync sync= binmode? lineno set_encoding]
    # What does nothing with a pipe, where an IO fails: the guide says so.
    others += %i[fsync fdatasync]
    ours = methods_of_io.select { |name| Procwright::Stream.public_method_defined?(name) }
    assert_empty ours - compared - others - Enumerable.instance_methods
  end

  def test_print_and_puts_with_the_old_globals
    code = <<~'RUBY'
      $, = "\xfe".b
      $\ = "ä!"
      child = Procwright.spawn(ENV.fetch("PROCWRIGHT_TEST_CHILD"), "cat", stdin: :pipe)
      reader, writer = IO.pipe
      [writer, child.stdin].each { |io| io.print("ü", "\xff".b); io.puts("x", "y"); io.close }
      exit child.stdout.read.b == reader.read.b
    RUBY
    assert_predicate ruby(code, extra_env: { "RUBYOPT" => "-W0" }), :success?
  end

  def test_separators_are_not_kept_for_ever
    child = Procwright.spawn(CHILD, "cat", input: "x" * 300)
    200.times { |n| assert_equal "x", child.stdout.gets("#{n}é", 1) }
    assert_operator child.stdout.instance_variable_get(:@frames).size, :<=, 16
    child.stop
  end

  # An interrupt strikes as the extension has read, before what it read is the caller's: at
  # the first, second, ... return of the native reader. What was read is read again.
  {
    "gets" => ->(io) { io.gets }, "gets, chomp" => ->(io) { io.gets(chomp: true) },
    "gets of a limit" => ->(io) { io.gets(31) }, "gets of a paragraph" => ->(io) { io.gets("") },
    "gets of all" => ->(io) { io.gets(nil) }, "readline" => ->(io) { io.readline },
    "read" => ->(io) { io.read }, "read of a length" => ->(io) { io.read(5) },
    "readpartial" => ->(io) { io.readpartial(5) }, "sysread" => ->(io) { io.sysread(5) },
    "getc" => ->(io) { io.getc }, "readchar" => ->(io) { io.readchar }, "getbyte" => ->(io) { io.getbyte },
    "readbyte" => ->(io) { io.readbyte }, "each_char" => ->(io) { io.each_char { break } }
  }.each do |name, call|
    define_method("test_an_interrupt_loses_nothing: #{name}") do
      (1..3).each do |which|
        child = Procwright.spawn(CHILD, "cat", input: TEXT)
        left = which
        strike = TracePoint.new(:c_return) do |point|
          reads = point.self.is_a?(Procwright::Native::Reader) && %i[read read_some line plain_line].include?(point.method_id)
          raise Interrupt, "now" if reads && (left -= 1).zero?
        end
        struck = begin
          strike.enable { call.call(child.stdout) } && false
        rescue Interrupt
          true
        end
        assert struck || which > 1
        assert_equal TEXT, child.stdout.read.b, "#{name}, #{which}" if struck
        assert_equal 0, child.stdout.lineno if struck
        child.stop
      end
    end
  end
end
