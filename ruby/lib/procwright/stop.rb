# frozen_string_literal: true

module Procwright
  # The way in which a program is ended when it has to be: a signal, a time, and the
  # processes that it concerns.
  #
  #   Procwright::Stop.new(signal: "INT", grace: 1.5, scope: :group)
  class Stop
    # @return [String] `"SIGTERM"`, ...
    attr_reader :signal
    # @return [Float] seconds until SIGKILL
    attr_reader :grace
    # @return [Symbol] `:process`, `:group` or `:tree`
    attr_reader :scope

    # @param signal [String, Symbol, Integer]
    # @param grace [Numeric] 0 kills at once, Float::INFINITY never
    # @param scope [Symbol] the program alone, its process group (it then gets one of its
    #   own), or all of its descendants
    # @raise [InvalidValue]
    def initialize(signal: "TERM", grace: 5.0, scope: :tree)
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
      else Arguments.refuse("stop", given, "pass a Procwright::Stop, or a Hash of what makes one")
      end
    end

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
