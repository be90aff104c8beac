# frozen_string_literal: true

module Procwright
  # The encoding of bytes, and the one that is wanted: as of an IO.
  # @private
  class Encodings
    attr_reader :external, :internal

    # Takes the options of IO.open: `binmode`, `encoding: "ext:int"`, `external_encoding`,
    # `internal_encoding`.
    def self.of(binmode: nil, encoding: nil, external_encoding: nil, internal_encoding: nil)
      return BINARY if binmode && !encoding && !external_encoding

      encodings = new(external_encoding, internal_encoding)
      encodings = encodings.with(encoding) if encoding
      encodings
    end

    def initialize(external, internal = nil)
      @external = external && Encoding.find(external)
      @internal = internal && Encoding.find(internal)
      @internal = nil if @internal == @external
      freeze
    end

    # Takes what IO#set_encoding takes.
    def with(external, internal = nil)
      return self.class.new(external, internal) if external.nil? || external.is_a?(Encoding) || internal

      ext, int = external.to_s.sub(/\ABOM\|/i, "").split(":", 2)
      self.class.new(ext, int == "-" ? nil : int)
    end

    # The encoding that was asked for, or the default one.
    def source = @external || Encoding.default_external

    # The encoding to convert to, nil for none.
    def target
      return if binary?

      @internal || (Encoding.default_internal unless @external)
    end

    def binary? = @external == Encoding::BINARY

    # True if a newline is the byte that it is in ASCII.
    def newline? = source.ascii_compatible?

    # A string of bytes from a child, as the reader sees it.
    def decode(string, **replacing)
      return string if string.nil?

      string.force_encoding(source)
      to = target
      to && to != source ? string.encode(to, **replacing) : string
    end

    # {#decode} that replaces what it cannot convert, where an exception would lose other
    # results.
    def decode_lossy(string) = decode(string, invalid: :replace, undef: :replace)

    # The bytes to write of a string.
    def encode(string)
      return string if @external.nil? || binary? || string.encoding == @external
      return string if string.encoding == Encoding::BINARY

      string.encode(@external)
    end

    # The string as an IO with these encodings writes it.
    def convert(string)
      @external.nil? || binary? || string.encoding == @external ? string : string.encode(@external)
    end

    BINARY = new(Encoding::BINARY)
  end
  private_constant :Encodings
end
