# frozen_string_literal: true

module Procwright
  module Queue
    # A place at a queue for one process, in the form in which it is handed over: descriptors
    # and a few bytes.
    #
    # {Receiver#invite} makes one, and {Sender.attach} uses it up; `dup` of that sender makes
    # more. In between it goes over a Unix socket ({#send_over}), or is inherited: pass
    # `fds: invitation.fds` to `spawn`, tell the program numbers and ticket, and put them
    # together there, with {new}.
    #
    # The receiver counts an invitation, in whatever process, as a possible sender: once it is
    # handed over, close it.
    class Invitation
      # @param fds [Array<Integer, IO>] what {#fds} gave. They stay the caller's
      # @param ticket [String]
      # @raise [InvalidValue]
      def initialize(fds, ticket)
        @native = Native::Invitation.of_parts(*Arguments.invitation(fds, ticket))
      end

      # Receives one from a connected UNIXSocket: waits for it. Nothing else may have been read
      # from that socket with Ruby's own buffer.
      # @return [Invitation]
      # @raise [InvalidValue] if something else comes, or the other side closes it
      def self.receive(socket) = of(DescriptorPassing.receive(Native::Invitation, socket))

      # @private
      def self.native_of(invitation)
        return invitation.native if invitation.is_a?(Invitation)

        Arguments.refuse("invitation", invitation, "pass a Procwright::Queue::Invitation, such as receiver.invite")
      end

      # @private
      def self.of(native)
        allocate.tap { |invitation| invitation.instance_variable_set(:@native, native) }
      end

      # Sends it over a connected UNIXSocket. It stays good here until it is closed.
      # @return [self]
      # @raise [InvalidValue] for another kind of socket
      def send_over(socket)
        DescriptorPassing.send_over(@native, socket)
        self
      end

      # @return [Array<Integer>] its descriptors, which stay this object's
      def fds = @native.fds

      # @return [String] the text to hand over beside them
      def ticket = @native.ticket

      # Gives the place back, unless another process has it too.
      def close
        @native.close
        nil
      end

      # True once it was used up, or closed.
      def closed? = @native.closed?

      def inspect = "#<Procwright::Queue::Invitation #{closed? ? 'used up' : ticket}>"

      # @private
      attr_reader :native

      # @private
      def initialize_copy(_other)
        raise TypeError, "an invitation cannot be copied: ask the receiver for another"
      end
    end
  end
end
