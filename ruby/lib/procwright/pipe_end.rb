# frozen_string_literal: true

module Procwright
  # An end of a pipe that no fork keeps, unlike that of IO.pipe: a program would see no end of
  # its input for as long as the fork lives, and a run would wait for a callback that is gone.
  # @private
  class PipeEnd
    # The reading and the writing end.
    def self.pair
      read, write = Native::PipeEnd.pair
      [new(read, "rb"), new(write, "wb")]
    end

    # @return [IO] what reads or writes; not to be closed by itself
    attr_reader :io

    def initialize(native, mode)
      @native = native
      # Only the extension closes the descriptor: in a fork its number may be another file's.
      @io = IO.for_fd(native.fileno, mode, autoclose: false)
      @io.sync = true
    end

    def fileno = @native.fileno

    # Closes it, if it is open; who waits for it is told.
    def close
      @io.close
      @native.close
    end
  end
  private_constant :PipeEnd
end
