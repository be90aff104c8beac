# frozen_string_literal: true

module Procwright
  # Includers can be waited for in {Procwright.wait}. Their `awaited` is an object of the
  # extension, or a descriptor that becomes readable. Anything else needs a descriptor.
  #
  # {Procwright.wait} knows the answer and not the classes, which stand above it.
  # @private
  module Waitable
  end
  private_constant :Waitable
end
