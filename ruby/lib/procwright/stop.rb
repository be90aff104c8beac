# frozen_string_literal: true

module Procwright
  # The way in which a program is ended when it has to be: a signal, a time, and the
  # processes that it concerns.
  #
  #   Procwright::Stop.new("INT", grace: 1.5, scope: :group)
  class Stop
    TERM = "TERM"
    private_constant :TERM

    # @return [String] `"SIGTERM"`, ...
    attr_reader :signal
    # @return [Float] seconds until SIGKILL
    attr_reader :grace
    # @return [Symbol] `:process`, `:group` or `:tree`
    attr_reader :scope

    # @param named [String, Symbol] the signal, which may be a keyword as well; a number is refused,
    #   since it could be seconds
    # @param signal [String, Symbol]
    # @param grace [Numeric, nil] seconds until SIGKILL: 0 kills at once, Float::INFINITY or nil never
    # @param scope [Symbol] the program alone, its process group (it then gets one of its
    #   own), or all of its descendants
    # @raise [InvalidValue]
    def initialize(named = TERM, signal: named, grace: 5.0, scope: :tree)
      unless named.equal?(TERM) || named.equal?(signal) || named == signal
        raise InvalidValue, "signal is #{Arguments.shown(signal)}, and #{Arguments.shown(named)} as well: pass it once"
      end

      Arguments.refuse("signal", signal, AMBIGUOUS) if signal.is_a?(Integer)
      @grace = Arguments.seconds("grace", grace) || Float::INFINITY
      @scope = Arguments.symbol("scope", scope, %i[process group tree])
      @signal = Native.check_stop(Arguments.signal("signal", signal), @grace, @scope.name)
      freeze
    end

    def to_h = { signal: @signal, grace: @grace, scope: @scope }
    def ==(other) = other.is_a?(Stop) && to_h == other.to_h
    alias eql? ==
    def hash = to_h.hash
    def inspect = "#<Procwright::Stop #{@signal}, grace #{@grace} s, #{@scope}>"

    # @private
    def self.of(given)
      case given
      when Stop then given
      when Hash then from_hash(given)
      when String, Symbol then new(Arguments.signal("stop", given, HINT))
      # Who writes 5 may mean SIGTRAP, or seconds.
      when Integer then Arguments.refuse("stop", given, AMBIGUOUS)
      else Arguments.refuse("stop", given, HINT)
      end
    end

    HINT = 'pass the name of a signal, such as "KILL", or Procwright::Stop.new("TERM", grace: 5)'
    AMBIGUOUS = "a number may be a signal or seconds; #{HINT}".freeze
    private_constant :HINT, :AMBIGUOUS

    # @private
    def self.from_hash(given)
      unknown = given.keys - %i[signal grace scope]
      Arguments.refuse("stop", given, "use the keys :signal, :grace and :scope") unless unknown.empty?
      new(**given)
    end
    private_class_method :from_hash

    # @private
    def parts = [@signal, @grace, @scope.name]
  end
end
