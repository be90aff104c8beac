# frozen_string_literal: true

module Procwright
  # Whether the descriptor of an object has what the object itself reads or writes. That of a
  # Zlib::GzipReader has what is compressed, that of an OpenSSL::SSL::SSLSocket what is encrypted.
  # So what is no IO is taken to change what it passes on.
  # @private
  module PlainIO
    READS = %i[readpartial read each].freeze

    module_function

    def reads?(object) = plain?(object, READS)

    def writes?(object) = plain?(object, [:write])

    # Takes the descriptor of a file back to where Ruby is, which has read ahead of it. A pipe
    # cannot go back.
    def give_back(object)
      object = behind(object)
      object.flush if object.is_a?(IO)
    end

    def plain?(object, methods)
      object = behind(object)
      # A stream of ours has a descriptor only with all that it holds behind it.
      object.is_a?(IO) || object.respond_to?(:holds_back?) || methods.none? { |name| object.respond_to?(name) }
    end

    # What a Delegator, such as a Tempfile, stands for.
    def behind(object)
      object = object.__getobj__ while defined?(::Delegator) && ::Delegator === object
      object
    end
    private_class_method :plain?, :behind
  end
  private_constant :PlainIO
end
