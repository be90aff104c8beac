# frozen_string_literal: true

module Procwright
  # Which encoding bytes are of, and which one is wanted.
  # @private
  class Text
    attr_reader :external, :internal

    # As the options of IO.open: `binmode`, `encoding: "ext:int"`, `external_encoding`,
    # `internal_encoding`.
    def self.of(binmode: nil, encoding: nil, external_encoding: nil, internal_encoding: nil)
      return BINARY if binmode && !encoding && !external_encoding

      text = new(external_encoding, internal_encoding)
      text = text.with(encoding) if encoding
      text
    end

    def initialize(external, internal = nil)
      @external = external && Encoding.find(external)
      @internal = internal && Encoding.find(internal)
      @internal = nil if @internal == @external
      freeze
    end

    # What IO#set_encoding takes.
    def with(external, internal = nil)
      return self.class.new(external, internal) if external.nil? || external.is_a?(Encoding) || internal

      ext, int = external.to_s.sub(/\ABOM\|/i, "").split(":", 2)
      self.class.new(ext, int == "-" ? nil : int)
    end

    # The encoding that was asked for, or the default one.
    def source = @external || Encoding.default_external

    def target
      return if binary?

      @internal || (Encoding.default_internal unless @external)
    end

    def binary? = @external == Encoding::BINARY

    # Whether a newline is the byte that it is elsewhere.
    def newline? = source.ascii_compatible?

    # A string of bytes, as it is to be seen.
    def mark(string, **replacing)
      return string if string.nil?

      string.force_encoding(source)
      to = target
      to && to != source ? string.encode(to, **replacing) : string
    end

    # The same where an exception would take along what else there is.
    def mark_all(string) = mark(string, invalid: :replace, undef: :replace)

    # What is to be written of it.
    def bytes(string)
      return string if @external.nil? || binary? || string.encoding == @external
      return string if string.encoding == Encoding::BINARY

      string.encode(@external)
    end

    BINARY = new(Encoding::BINARY)
    DEFAULT = new(nil)
  end
end
