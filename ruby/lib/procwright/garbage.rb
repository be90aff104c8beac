# frozen_string_literal: true

module Procwright
  # Objects that nobody has any more give back what they hold when Ruby collects them, which it
  # does for want of memory alone. Where something else has run out, it is asked to do so, as
  # Ruby does for its own files.
  # @private
  module Garbage
    module_function

    # The block's value. If that raises an exception for which `runs_out` is true, all garbage is
    # collected, and the block called once more.
    def retried(runs_out)
      yield
    rescue StandardError => e
      raise unless runs_out.call(e)

      GC.start
      yield
    end
  end
end
