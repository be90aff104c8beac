# frozen_string_literal: true

module Procwright
  # Ends runs from another thread, or from a signal handler.
  #
  #   cancel = Procwright::Cancel.new
  #   Thread.new { Procwright.run("make", cancel: cancel) }
  #   cancel.cancel
  class Cancel
    def initialize
      @native = Native::Cancel.new
    end

    # Stops every run that was given this object. Returns at once.
    def cancel
      @native.cancel
      nil
    end

    # @return [Boolean]
    def cancelled? = @native.cancelled?

    # @return [Integer] a descriptor that is readable once it is cancelled. Not to be
    #   read from
    def readiness_fd = @native.readiness_fd

    # @return [Native::Cancel, nil]
    # @private
    def self.native_of(given)
      case given
      when nil then nil
      when Cancel then given.native
      else Arguments.refuse("cancel", given, "pass a Procwright::Cancel, and call its cancel to end the run")
      end
    end

    # @private
    attr_reader :native
  end
end
