# frozen_string_literal: true

module Procwright
  # The time came before the child wrote a line that matches.
  class MatchTimeout < WaitTimeout
    # @return [Array<String>] the last lines that came
    attr_reader :lines

    # @private
    def initialize(command, timeout, pattern, lines, doing = "")
      super(command, timeout)
      @lines = lines
      @words = "#{command} did not say #{OutputSearch.sought(pattern)} within #{Seconds.shown(timeout)}#{OutputSearch.tail(lines)}#{doing}"
    end

    def message = @words
    alias to_s message
  end

  # The child ended, or closed its output, and wrote nothing that matches.
  class EndedBeforeMatch < StandardError
    include Error
    # @return [Status, nil] nil if it lives on
    attr_reader :status
    # @return [Array<String>] the last lines that came
    attr_reader :lines

    # @private
    def initialize(command, status, pattern, lines)
      super("#{command} #{status ? OutputSearch.ended(status) : 'closed its output'} before it said " \
            "#{OutputSearch.sought(pattern)}#{OutputSearch.tail(lines)}")
      @status = status
      @lines = lines
    end
  end

  # One call of {Child#wait_for}.
  # @private
  class OutputSearch
    # Lines that are shown in an error.
    LINES_KEPT = 20
    # Seconds for a child that has closed its output to end, so that its status can be told;
    # and for the last output of a child that has failed, which other processes may hold open.
    GRACE = 1.0

    PATTERN = "pass a Regexp, or a String that is valid in its encoding"

    def self.tail(lines)
      return "; it said nothing" if lines.empty?

      "; its last lines:\n#{lines.map { |line| "    #{line.dup.force_encoding('UTF-8').scrub}" }.join("\n")}"
    end

    # A pattern as an error shows it. Of one with the end of a line it says what one who has seen
    # the last lines would not think of.
    def self.sought(pattern)
      by_line = names_ends?(pattern) ? " (which is looked for in one line at a time)" : ""
      "#{pattern.inspect}#{by_line}"
    end

    # Whether it names the end of a line by its characters, and not by $.
    def self.names_ends?(pattern) = pattern.source.match?(/[\r\n]|\\[rn]/)

    # How it ended, as every other error says it.
    def self.ended(status)
      return "exited with code #{status.exitstatus}" if status.exited?

      status.signaled? ? "was killed by SIG#{status.signal_name.delete_prefix('SIG')}" : "ended (#{status})"
    end

    def initialize(child, pattern, name)
      Arguments.word("stream", name, %i[stdout stderr], ", or nil for both") unless name.nil?

      @child = child
      @pattern = pattern.is_a?(Regexp) ? pattern : regexp(pattern)
      @names_ends = OutputSearch.names_ends?(@pattern)
      names = name ? [name] : %i[stdout stderr]
      @open = names.filter_map { |one| child.public_send(one) }
      raise InvalidValue, "#{names.join(' and ')} of the child cannot be read: spawn with :pipe" if @open.empty?

      @searched_bytes = Hash.new(0)
      @lines = []
    end

    def run(timeout)
      seconds = Arguments.seconds("timeout", timeout)
      deadline = Deadline.new(seconds)
      loop do
        status = @child.status
        match = search_streams
        return match if match

        give_up if @open.empty?
        left = deadline.remaining
        raise MatchTimeout.new(@child.command, seconds, @pattern, @lines, @child.explain_silence(seconds)) if left&.zero?

        if status.nil? || status.success?
          wait_for_output(left, status)
        elsif !wait_for_output([left, GRACE].compact.min, status)
          # Output may still have been on its way when the child failed; now it is here.
          give_up
        end
      end
    end

    private

    def regexp(pattern)
      text = Arguments.string("pattern", pattern, PATTERN)
      Arguments.refuse("pattern", pattern, PATTERN) unless text.valid_encoding?
      Regexp.new(Regexp.escape(text))
    end

    def search_streams
      @open.dup.each do |stream|
        match = search(stream)
        return match if match
      end
      nil
    end

    def search(stream)
      while (said = stream.try_line)
        @searched_bytes.delete(stream)
        line = said.chomp
        @lines = (@lines << line).last(LINES_KEPT)
        match = @pattern.match(line) || (@pattern.match(said) if @names_ends)
        next unless match

        rest = said.byteslice(taken_by(match, line, said)..)
        stream.ungetc(rest) unless rest.empty?
        return match
      end
      said.nil? ? (@open.delete(stream) && nil) : search_partial_line(stream)
    end

    def search_partial_line(stream)
      part = stream.partial_line
      return if part.nil? || part.bytesize <= @searched_bytes[stream]

      @searched_bytes[stream] = part.bytesize
      match = @pattern.match(part) or return

      taken = taken_by(match, part, part)
      stream.read(taken)
      stream.expect_end if taken == part.bytesize
      match
    end

    # Number of the bytes of what was said that a match takes: all up to its end, and the line's
    # end where nothing else follows. One of nothing takes all of it, else the next search
    # would find it again.
    def taken_by(match, line, said)
      taken = match.pre_match.bytesize + match[0].bytesize
      match[0].empty? || taken >= line.bytesize ? said.bytesize : taken
    end

    # Waits until there is more, or the child ends; false if the time came first.
    def wait_for_output(seconds, status)
      awaited = @open.map(&:readiness_fd)
      awaited << @child.awaited unless status
      Fibers.on_thread { Native.wait(awaited, 0, :exited, seconds) }.any?
    end

    # Asks also of one that is known to have ended: if it was stopped for a limit of its own, that
    # is what `wait` raises.
    def give_up
      status =
        begin
          @child.wait(timeout: GRACE)
        rescue WaitTimeout
          # It lives on; or it has ended, and its stop has not.
          @child.status
        end
      raise EndedBeforeMatch.new(@child.command, status, @pattern, @lines)
    end
  end
  private_constant :OutputSearch
end
