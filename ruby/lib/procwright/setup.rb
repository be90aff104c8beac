# frozen_string_literal: true

module Procwright
  # Options of `run` and `spawn` for what is set up before a program's first instruction: their
  # names, kinds and hints are those of the core's table.
  # @private
  module Setup
    # Name, kind, and what would do for a value that would not.
    TABLE = Native.setup_options.each(&:freeze).freeze
    DEFAULTS = TABLE.to_h { |name, kind, _| [name, kind == :flag ? false : nil] }.freeze

    module_function

    # Those that were given, as pairs of name and value for the extension.
    def translated(options)
      TABLE.filter_map do |name, kind, hint|
        value = options[name]
        next if value.nil? || (kind == :flag && !value)

        [name, checked(name, kind, value, hint)]
      end
    end

    def checked(name, kind, value, hint)
      given = public_send(kind, name.name, value, hint)
      Native.check_setup(name, given)
      given
    rescue InvalidValue => e
      raise if e.refused.nil?

      _, problem, hint = *e.refused
      Arguments.refuse_as_core(name, value, problem, hint)
    end

    def flag(_name, _value, _hint) = true

    def number(name, value, hint) = Arguments.number(name, value, (-2**31)..((2**31) - 1), hint)

    def numbers(name, value, hint)
      each(name, value, hint) { |what, one| Arguments.number(what, one, 0..((2**31) - 1), hint) }
    end

    def signals(name, value, hint)
      each(name, value, hint) { |what, one| Arguments.signal(what, one) }
    end

    def text(name, value, hint)
      Arguments.text(name, value.is_a?(Symbol) ? value.name : value, hint)
    end

    def path(name, value, hint)
      Arguments.string(name, value.respond_to?(:to_path) ? value.to_path : value, hint)
    end

    def each(name, value, hint)
      Arguments.refuse(name, value, hint) unless value.is_a?(Array)
      value.each_with_index.map { |one, place| yield "#{name}[#{place}]", one }
    end
  end
  private_constant :Setup
end
