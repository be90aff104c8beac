# frozen_string_literal: true

module Procwright
  # Seconds, as texts have them.
  # @private
  module Seconds
    # To a thousandth; those of a moment that is past are 0.
    def self.shown(seconds)
      return "any time" if seconds.nil? || seconds == Float::INFINITY

      rounded = [seconds, 0].max.round(3)
      "#{rounded == rounded.to_i ? rounded.to_i : rounded} s"
    end
  end
  private_constant :Seconds
end
