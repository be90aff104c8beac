# frozen_string_literal: true

require "io/wait"

module Procwright
  # Invitations over Unix sockets (SCM_RIGHTS). The extension sends and receives in one go, and
  # Ruby waits for the socket, which may be full or empty.
  # @private
  module DescriptorPassing
    module_function

    def send_over(native, socket)
      fd = descriptor_of(socket)
      socket.to_io.wait_writable
      native.send_over(fd)
    rescue Errno::EAGAIN
      retry
    end

    # @param kind [Class] of the extension
    def receive(kind, socket)
      fd = descriptor_of(socket)
      socket.to_io.wait_readable
      kind.receive(fd)
    rescue Errno::EAGAIN
      retry
    end

    def descriptor_of(socket)
      Arguments.descriptor_of("socket", socket) or Arguments.refuse("socket", socket, "pass a UNIXSocket")
    end
  end
  private_constant :DescriptorPassing
end
