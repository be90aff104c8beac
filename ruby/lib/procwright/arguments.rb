# frozen_string_literal: true

module Procwright
  # Values of parameters, for every call: each function gives what the extension takes, or
  # raises an {InvalidValue} that says which parameter, which value and what would do.
  # @private
  module Arguments
    SECONDS = "pass seconds as a number, or nil for no limit"
    SIGNAL = "pass the name of a signal, such as \"TERM\" or :TERM, or its number"
    DESCRIPTOR = "pass an IO, or the number of an open descriptor, 0 or more"
    PATH = "pass a String or a Pathname"
    BYTES = "pass 0 or more bytes, as 65536, \"64KiB\", \"64K\" or \"1GiB\""
    UNITS = {
      "" => 1, "b" => 1, "kib" => 1 << 10, "mib" => 1 << 20, "gib" => 1 << 30, "tib" => 1 << 40,
      "k" => 1 << 10, "m" => 1 << 20, "g" => 1 << 30, "t" => 1 << 40
    }.freeze
    SIZE = /\A\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*\z/
    # The most bytes that any parameter takes.
    MOST_BYTES = (2**63) - 1
    # Characters of a value that an error shows.
    SHOWN = 200

    module_function

    # Raises the error for a value of the parameter `name`. `hint` says what would do.
    def refuse(name, value, hint)
      raise InvalidValue, "#{name} is #{shown(value)}: #{hint}"
    end

    # Raises the core's refusal of a value, with the value that was given.
    def refuse_as_core(name, value, problem, hint)
      # Some of the core's words have the value.
      raise InvalidValue, "#{name} is #{shown(value)}, which #{problem.sub(/\Ais .*, which /, '')}: #{hint}"
    end

    # The value as an error shows it, of what is long the beginning.
    def shown(value)
      return "#{value[0, SHOWN].inspect}..." if value.is_a?(String) && value.size > SHOWN

      text = value.inspect
      text.size > SHOWN ? "#{text[0, SHOWN]}..." : text
    rescue StandardError
      "an object of #{value.class}"
    end

    # @return [Float, nil]
    def seconds(name, value, hint = SECONDS)
      return if value.nil?

      refuse(name, value, hint) unless value.is_a?(Numeric) && value.real?
      value.to_f.tap { |seconds| refuse(name, value, hint) if seconds.nan? }
    end

    # A whole number of the range.
    def number(name, value, range, hint)
      value.is_a?(Integer) && range.cover?(value) ? value : refuse(name, value, hint)
    end

    # An Array of exit codes.
    def exit_codes(name, value, hint)
      refuse(name, value, hint) unless value.is_a?(Array)
      value.each_with_index.map { |code, at| number("#{name}[#{at}]", code, 0..255, hint) }
    end

    # A number of bytes, which may be text with a unit. `besides` says what else would do.
    def bytes(name, value, besides = "")
      bytes = value.is_a?(String) ? bytes_in(value) : value
      return bytes if bytes.is_a?(Integer) && (0..MOST_BYTES).cover?(bytes)

      refuse(name, value, BYTES + besides)
    end

    def bytes_in(text)
      number, unit = text.match(SIZE)&.captures if text.valid_encoding? && text.encoding.ascii_compatible?
      scale = UNITS[unit&.downcase]
      scale && (number.include?(".") ? (number.to_r * scale).to_i : number.to_i * scale)
    end

    # One of these symbols. `besides` says what else would do.
    def word(name, value, words, besides = "")
      return value if words.include?(value)

      *first, last = words.map(&:inspect)
      refuse(name, value, "use #{first.join(', ')} or #{last}#{besides}")
    end

    # One of these symbols, which may be given as a String.
    def symbol(name, value, words)
      words.find { |one| one.name == value } || word(name, value, words)
    end

    # What can be called, or nil.
    def callable(name, value)
      return value if value.nil? || value.respond_to?(:call)

      refuse(name, value, "pass what has call, such as a Proc, or nil")
    end

    # Refuses a signal for what sends SIGKILL.
    def no_signal(value, hint = 'kill sends SIGKILL alone: use signal, as in signal("INT")')
      refuse("signal", value, hint)
    end

    # A signal by its number or name, for the extension, which knows them.
    def signal(name, value, hint = SIGNAL)
      given = value.is_a?(Symbol) ? value.name : value
      refuse(name, value, hint) unless given.is_a?(String) || given.is_a?(Integer)
      begin
        Native.signal_name(given)
      rescue InvalidValue, RangeError, EncodingError
        refuse(name, value, hint)
      end
      given
    end

    # @return [String, nil]
    def path(name, value)
      return if value.nil?

      string(name, value.respond_to?(:to_path) ? value.to_path : value, PATH)
    end

    def string(name, value, hint)
      String.try_convert(value) || refuse(name, value, hint)
    end

    def mapping(name, value, hint)
      Hash.try_convert(value) || refuse(name, value, hint)
    end

    # The descriptor of an IO, or a number itself.
    def descriptor(name, value)
      return number(name, value, 0..0x7fff_ffff, DESCRIPTOR) if value.is_a?(Integer)

      descriptor_of(name, value) || refuse(name, value, DESCRIPTOR)
    end

    # What the core reads as text: of characters, where a path or an argument is of bytes.
    def text(name, value, hint)
      text = string(name, value, hint)
      refuse(name, value, hint) unless text.encoding.ascii_compatible? && text.valid_encoding?
      text.encode("UTF-8")
    rescue EncodingError
      refuse(name, value, hint)
    end

    def queue_name(value) = text("name", value, "pass the name of a queue, such as \"jobs\"")

    # Descriptors and ticket of an invitation.
    def invitation(fds, ticket)
      hint = "pass the two descriptors that the fds of an invitation gave, in that order"
      refuse("fds", fds, hint) unless fds.is_a?(Array) && fds.size == 2
      [fds.each_with_index.map { |fd, place| descriptor("fds[#{place}]", fd) },
       text("ticket", ticket, "pass the text that the ticket of an invitation gave")]
    end

    # @return [Integer, nil] nil for an object that has no descriptor
    def descriptor_of(name, file)
      return unless file.respond_to?(:to_io)

      refuse_closed(name, file)
      file.to_io.fileno
    end

    # Refuses what was closed: an IO, a StringIO, a {Stream}. It would be found out by a thread
    # that reads or writes it for a program that runs by then.
    def refuse_closed(name, value)
      refuse(name, value, "it is closed; pass an open one") if value.respond_to?(:closed?) && value.closed?
    end
  end
  private_constant :Arguments
end
