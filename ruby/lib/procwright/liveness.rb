# frozen_string_literal: true

module Procwright
  # A liveness token or monitor cannot be had. Where it can be asked, monitor the process.
  class LivenessError < StandardError
    include Error

    # @return [Symbol] `:unsupported` (the kernel or a sandbox does not look after tokens),
    #   `:full` (this process holds as many as it may), `:stale` (the token is from before the
    #   machine was started, or its place is another's), `:forked` (it is that of the process
    #   which this one was forked from), `:no_parent` (this program was not spawned with
    #   `liveness: true`), `:not_main` (only the main thread may hold one itself), `:released`
    attr_reader :reason

    # @private
    def initialize(reason, words)
      super(words)
      @reason = reason.to_sym
    end

    # Whether a process holds as many tokens, or rights, as it may.
    # @private
    FULL = ->(error) { error.is_a?(LivenessError) && error.reason == :full }
  end

  # The extension makes exceptions of liveness with this.
  # @private
  module Native
    def self.liveness_error(reason, words) = LivenessError.new(reason, words)
  end

  # The promises of a {LivenessToken} or {LivenessMonitor}.
  #
  # - `names`, whose end it tells of: `:image` (that of the program: an exec ends it),
  #   `:process` (whatever programs it runs), or `:thread`
  # - `mechanism`, how it knows: `:robust_word` (the kernel marks a word when the peer ends) or
  #   `:watcher` (a thread of this process is told of the end, some microseconds later)
  LivenessGuarantee = Struct.new(:names, :mechanism)

  # Tells the processes that were invited to watch that this one lives.
  #
  #   token = Procwright::LivenessToken.new
  #   monitor = Procwright::LivenessMonitor.new(token.invite) # mostly in another process
  #   monitor.alive?  # => true
  #   token.release
  #   monitor.state   # => :released
  #
  # The token holds until {#release}, until the block of {hold} is left, until the object is
  # collected, or until Ruby ends in good order: monitors then say `:released`. If the process
  # ends in any other way (a signal, `exit!`), or runs another program, they say `:died`.
  #
  # The first starts one thread that sleeps for as long as the process lives. A fork has no part
  # in a token: whatever it does with the object, monitors tell of the process that made it.
  class LivenessToken
    # @param holder [Symbol] `:process`; or `:thread`, which starts no thread: the main thread
    #   holds it itself, and only that may make it, and release it
    # @raise [LivenessError]
    def initialize(holder: :process)
      Arguments.word("holder", holder, %i[process thread])
      @native = Garbage.retried(LivenessError::FULL) { Native::Token.hold(holder.name) }
    end

    # Holds one while the block runs.
    # @yieldparam token [LivenessToken]
    # @return [Object] what the block gives
    def self.hold(holder: :process)
      token = new(holder: holder)
      yield token
    ensure
      token&.release
    end

    # Makes what a process needs to watch: to be sent, or inherited.
    # @return [LivenessInvitation]
    def invite = LivenessInvitation.of(@native.invite)

    # The promises of its monitors.
    # @return [LivenessGuarantee]
    def guarantee = LivenessGuarantee.new(*@native.guarantee).freeze

    # Gives it back. Further calls do nothing.
    # @raise [LivenessError] on another thread than the main one, if that holds it
    def release
      @native.release
      nil
    end

    def released? = @native.released?

    def inspect = "#<Procwright::LivenessToken, #{released? ? 'released' : 'held'}>"

    # @private
    def initialize_copy(_other)
      raise TypeError, "a token cannot be copied: make another"
    end
  end

  # A token in the form in which it is handed to another process: descriptors and a few bytes.
  #
  # Over a Unix socket, or by inheritance: pass `fds: invitation.fds` to `spawn`, tell the
  # program numbers and ticket, and put them together there, with {new}. It stays good.
  class LivenessInvitation
    # @param fds [Array<Integer, IO>] what {#fds} gave. They stay the caller's
    # @param ticket [String]
    # @raise [InvalidValue]
    def initialize(fds, ticket)
      @native = Native::TokenInvitation.of_parts(*Arguments.invitation(fds, ticket))
    end

    # Receives one from a connected UNIXSocket: waits for it. Nothing else may have been read
    # from that socket with Ruby's own buffer.
    # @return [LivenessInvitation]
    # @raise [InvalidValue] if something else comes, or the other side closes it
    def self.receive(socket) = of(DescriptorPassing.receive(Native::TokenInvitation, socket))

    # @private
    def self.of(native)
      allocate.tap { |invitation| invitation.instance_variable_set(:@native, native) }
    end

    # Sends it over a connected UNIXSocket.
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

    def inspect = "#<Procwright::LivenessInvitation #{ticket}>"

    # @private
    attr_reader :native
  end

  # Knows whether a peer lives. Any thread may use it, and a fork may as well.
  class LivenessMonitor
    include Waitable

    # @param peer [LivenessInvitation, Process, Child, Integer, String] the token to watch; or a
    #   process, which need not know of it, as {Process.new} takes it
    # @raise [InvalidValue]
    # @raise [LivenessError]
    # @raise [NoSuchProcess]
    def initialize(peer)
      @native = case peer
                when LivenessInvitation then Native::Monitor.accept(peer.native)
                when LivenessToken
                  Arguments.refuse("peer", peer, "a token is for the watched side, pass token.invite")
                when Process::Owner then Native::Monitor.of_process(peer.awaited)
                else Native::Monitor.of_process(Process.new(peer).native)
                end
    end

    # Watches the parent, in a program that it has spawned with `liveness: true`. May be called
    # any number of times.
    # @return [LivenessMonitor]
    # @raise [LivenessError]
    def self.of_parent
      native = Native::Monitor.of_parent
      allocate.tap { |monitor| monitor.instance_variable_set(:@native, native) }
    end

    # True while the peer lives: one load from memory while it does, no system call. The answer
    # is a moment old. A process that is stopped or hangs is alive.
    def alive? = @native.alive?

    # @return [Symbol] `:alive`, `:released` (it has given its token back, and may live on) or
    #   `:died` (the process has ended, or runs another program than the one that held the token)
    def state = @native.state

    # {#state} that asks the kernel as well where the word says `:alive`.
    # @return [Symbol]
    def confirm = @native.confirm

    # Waits until the peer does not live any more. Sleeps all the while.
    # @param timeout [Numeric, nil] seconds
    # @return [Symbol] `:released` or `:died`
    # @raise [WaitTimeout]
    def wait(timeout: nil)
      seconds = Arguments.seconds("timeout", timeout)
      too_late(seconds) unless over?(seconds)
      confirm
    end

    # Waits until the process of the peer is gone with all its threads: only then nothing of it
    # writes any more to what was shared with it. The process goes on after its token was
    # released, and after an exec: give a timeout where peers do that.
    # @raise [WaitTimeout]
    # @raise [LivenessError] if the process cannot be seen from here
    def wait_gone(timeout: nil)
      whose = process
      if whose.nil?
        raise LivenessError.new(:unsupported, "the process of the peer cannot be seen from here, as from " \
                                              "another namespace: whether it is gone cannot be known")
      end
      seconds = Arguments.seconds("timeout", timeout)
      too_late(seconds) if Fibers.on_thread { Native.wait([whose.native], -1, :exited, seconds) }.empty?
      # The caller shall not find it alive after this: the watching thread may be told later.
      confirm
      nil
    end

    # Asks for the right to clean up after the peer, when it has died. Of all monitors of it, in
    # whatever processes, one has it at a time.
    #
    #   monitor.claim(timeout: nil) { |claim| repair if claim.ours? }
    #
    # A block that is left normally says that the cleaning up is done; one that is left in any
    # other way gives the right back.
    #
    # @param timeout [Numeric, nil] seconds to wait if another monitor has it; nil for ever
    # @return [LivenessClaim, Object] with a block what that gives
    # @raise [LivenessError] for a monitor of a process
    def claim(timeout: 0)
      seconds = Arguments.seconds("timeout", timeout)
      claim = Garbage.retried(LivenessError::FULL) { Fibers.on_thread { @native.claim(seconds) } }
      claim = LivenessClaim.of(claim)
      return claim unless block_given?

      begin
        value = yield claim
        claim.done if claim.ours?
        value
      ensure
        claim.give_back if claim.ours?
      end
    end

    # @return [Integer] a descriptor that is readable once the peer does not live any more; this
    #   object's
    def readiness_fd = @native.readiness_fd

    # @return [Process, nil] nil where it cannot be seen from here
    def process
      native = @native.process
      native && Process.of(native)
    end

    # The promises of this monitor.
    # @return [LivenessGuarantee]
    def guarantee = LivenessGuarantee.new(*@native.guarantee).freeze

    def inspect = "#<Procwright::LivenessMonitor of #{whom}, #{state}>"

    # @private
    attr_reader :native
    # @private
    alias awaited native

    private

    def over?(seconds)
      return true unless alive?

      Fibers.on_thread do
        Native.wait([@native], -1, :exited, seconds).any?
      rescue Errno::EOPNOTSUPP
        # The descriptor of a forked monitor belongs to the parent. The word is shared.
        @native.wait_on_the_word(seconds)
      end
    end

    def too_late(seconds) = raise(WaitTimeout.new(whom, seconds, [self]))

    def whom
      native = @native.process
      native ? "process #{native.id}" : "a process out of sight"
    end
  end

  # The answer to a request for the right to clean up after a peer that has died.
  class LivenessClaim
    # @private
    def self.of(native)
      allocate.tap { |claim| claim.instance_variable_set(:@native, native) }
    end

    # @return [Symbol] `:ours`; `:theirs`, another monitor has it; `:done`, the cleaning up is
    #   over; or `:alive` or `:released`, there is nothing to clean up
    def kind = @native.kind

    # True while the right is ours, and of no other monitor.
    def ours? = @native.ours?

    # Says that there is nothing left to clean up: from now on all monitors are told `:done`.
    # @raise [LivenessError] if the right is not ours
    def done
      @native.done or refuse
      nil
    end

    # Gives the right to the next monitor that asks.
    # @raise [LivenessError] if the right is not ours
    def give_back
      @native.give_back or refuse
      nil
    end

    def inspect = "#<Procwright::LivenessClaim, #{kind}#{', over' if kind == :ours && !ours?}>"

    private

    def refuse
      raise LivenessError.new(:not_ours, kind == :ours ? "the right was given back, or used: ask for it again"
                                                       : "the right is not ours: the answer was #{kind}")
    end
  end
end
