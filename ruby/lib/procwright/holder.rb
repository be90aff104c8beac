# frozen_string_literal: true

module Procwright
  # A process that holds the other end of a pipe. Its number may be another's by now: {#process}
  # is the way to signal it.
  Holder = Struct.new(:pid, :name) do
    # @private
    def self.seen(pid, name, identity)
      new(pid, name).tap { |holder| holder.instance_variable_set(:@identity, identity) }
    end

    # The process, to signal it, stop it or wait for its end: never another one.
    # @return [Process]
    # @raise [NoSuchProcess] if it has ended, whoever has its number now
    def process
      return Process.of(Native::Handle.of_identity(pid, *@identity)) if @identity

      raise NoSuchProcess.new(pid, "#{name} (pid #{pid}) cannot be told from a later process of its number: it " \
                                   "ended while it was looked at, or the Holder was made by hand")
    end
  end
end
