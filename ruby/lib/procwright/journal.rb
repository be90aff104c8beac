# frozen_string_literal: true

module Procwright
  # A file that notes what a map has started and what has ended, in lines of JSON, by which a
  # later map knows it.
  #
  #   Procwright.map(commands, journal: Procwright::Journal.new("journal", resume: true))
  class Journal
    # @return [String] the file
    attr_reader :path
    # @return [String, nil] the file that gets GNU parallel's `--joblog` besides
    attr_reader :joblog

    # @param path [String, Pathname] it is made if it is not there
    # @param resume [Boolean] go on with what is in it: what was done is not done again
    #   ({Map::Ended#before}), whatever the order of the commands, and what the end of its map had
    #   stopped is run again. Without this a file with a journal in it is refused
    # @param rerun_failed [Boolean] run again what has failed, by a limit of its own too
    # @param rerun_unknown [Boolean] run again what was started and has no known end
    #   ({Map::Ended#unknown?}). It may have done its work or a part of it, and may even still
    #   be running
    # @param sync [Boolean] have each line on the disk before anything follows from it, so that
    #   the journal is right after a power failure, too
    # @param joblog [String, Pathname] a file that gets GNU parallel's `--joblog` besides
    # @raise [InvalidValue]
    def initialize(path, resume: false, rerun_failed: false, rerun_unknown: false, sync: false, joblog: nil)
      @path = Journal.file("path", path)
      @joblog = joblog.nil? ? nil : Journal.file("joblog", joblog)
      @resume, @rerun_failed, @rerun_unknown, @sync = [resume, rerun_failed, rerun_unknown, sync].map { |one| one ? true : false }
      if (@rerun_failed || @rerun_unknown) && !@resume
        raise InvalidValue, "rerun_failed and rerun_unknown are for resume: true"
      end

      freeze
    end

    def inspect = "#<Procwright::Journal #{@path}#{', resume' if @resume}>"

    # @private
    def self.of(given) = given.is_a?(Journal) || given.nil? ? given : new(file("journal", given))

    # The path of a file that is to be opened.
    # @private
    def self.file(name, given)
      Arguments.refuse(name, given, Arguments::PATH) if given.nil?
      Arguments.path(name, given).tap do |path|
        raise InvalidValue, "#{name} is #{Arguments.shown(path)}, which contains a NUL byte: #{Arguments::PATH}" if path.b.include?("\0")
      end
    end

    # For the extension.
    # @private
    def parts
      { path: @path, resume: @resume, rerun_failed: @rerun_failed, rerun_unknown: @rerun_unknown,
        sync: @sync, joblog: @joblog }
    end
  end
end
