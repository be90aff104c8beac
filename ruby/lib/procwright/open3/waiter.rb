# frozen_string_literal: true

module Procwright
  module Open3
    # A stand-in for the thread that waits for the child: no thread exists, but this object
    # answers as one does. It has ended when the child has.
    class Waiter
      include NamesOfOthers::OfWaiter

      # @return [Child]
      attr_reader :child

      # @private
      def initialize(child)
        @child = child
      end

      # @return [Integer]
      def pid = @child.pid

      # Waits for the child.
      # @return [Status]
      # @raise [Stalled] if it cannot go on because its output is full and unread
      def value = @child.wait

      # @param limit [Numeric, nil] seconds
      # @return [self, nil] nil if the time came first
      def join(limit = nil)
        @child.wait(timeout: Arguments.seconds("limit", limit))
        self
      rescue WaitTimeout
        nil
      end

      def alive? = @child.alive?
      # @return [String, false] as Thread#status
      def status = alive? ? "sleep" : false
      def stop? = true
      # @return [Integer, nil] the pid for `:pid`
      def [](key) = key.to_sym == :pid ? pid : nil
      def key?(key) = key.to_sym == :pid
      def keys = [:pid]
      def inspect = "#<Procwright::Open3::Waiter #{@child.inspect}>"
    end
  end
end
