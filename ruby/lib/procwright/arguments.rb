# frozen_string_literal: true

module Procwright
  # Conversions of single arguments, for every call that takes them.
  # @private
  module Arguments
    module_function

    # @return [Float, nil]
    def seconds(name, value)
      case value
      when nil then nil
      when Numeric then value.to_f
      else raise InvalidValue, "#{name} is #{value.inspect}: pass seconds, or nil"
      end
    end

    # The extension takes a number or a name. It knows which there are.
    def signal(value) = value.is_a?(Symbol) ? value.name : value

    # @return [String, nil]
    def path(path)
      return if path.nil?

      path.respond_to?(:to_path) ? path.to_path : path.to_str
    end

    # The descriptor of an IO, or a number itself.
    def descriptor(name, value)
      return value if value.is_a?(Integer)

      descriptor_of(value) or raise InvalidValue, "#{name}: #{value.inspect} is no IO and no descriptor"
    end

    # @return [Integer, nil] nil for an object that has no descriptor
    def descriptor_of(file)
      return unless file.respond_to?(:to_io)

      file.to_io.fileno
    end
  end
  private_constant :Arguments
end
