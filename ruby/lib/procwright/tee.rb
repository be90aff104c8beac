# frozen_string_literal: true

module Procwright
  # `tee:`, the places where output is shown while it comes.
  # @private
  module Tee
    # Numbers of streams that are shown on our own; files and descriptors, each with the number of
    # its stream, or 0 for both; what has `write`, likewise.
    Plan = Struct.new(:shown, :files, :taps, :writers)

    STREAMS = { "stdout" => 1, "stderr" => 2 }.freeze
    HINT = "pass true for our own stdout and stderr, a path, an IO, a descriptor, what has write, or a Hash " \
           "of streams to these, { stderr: true }"

    module_function

    # What is to be done for the `tee` of these options.
    def plan(options)
      plan = Plan.new([], [], [], [])
      tee = options[:tee]
      return plan if tee.nil? || tee == false

      captured = captured(options)
      targets = Hash.try_convert(tee)
      if targets
        targets.each { |stream, target| add_one(plan, stream, target, captured) unless target.nil? || target == false }
      else
        refuse_uncaptured("tee", tee, "stdout or stderr") if captured.empty?
        add(plan, "tee", tee, captured)
      end
      plan
    end

    # The streams that come to us, by their numbers.
    def captured(options)
      names = options[:pty] ? ["stdout"] : STREAMS.keys
      names.select { |name| %i[capture pipe].include?(options[name.to_sym]) }.map { |name| STREAMS[name] }
    end

    def add_one(plan, stream, target, captured)
      number = STREAMS[stream.to_s] if stream.is_a?(Symbol) || stream.is_a?(String)
      Arguments.refuse("a stream in tee", stream, "it is :stdout or :stderr") if number.nil?
      refuse_uncaptured("tee[:#{stream}]", target, stream) unless captured.include?(number)
      add(plan, "tee[:#{stream}]", target, [number])
    end

    def refuse_uncaptured(name, target, stream)
      Arguments.refuse(name, target, "it needs #{stream} captured: leave #{stream} as it is by default, or leave tee out")
    end

    def add(plan, name, target, streams)
      # One place for both gets them in the order in which they are read.
      number = streams.one? ? streams.first : 0
      case target
      when true then plan.shown.concat(streams)
      when :stdout, :stderr, "stdout", "stderr"
        Arguments.refuse(name, target, "pass { #{target}: true } for that stream alone, or \"./#{target}\" for a file of that name")
      when String then plan.files << [number, target]
      when Integer then plan.taps << [number, Arguments.descriptor(name, target), nil]
      else add_object(plan, name, target, number)
      end
    end

    def add_object(plan, name, target, number)
      descriptor = Arguments.descriptor_of(name, target) if PlainIO.writes?(target)
      if descriptor
        # Output that Ruby has buffered stands before that of the program.
        target.flush if target.respond_to?(:flush)
        plan.taps << [number, descriptor, nil]
      elsif target.respond_to?(:to_path)
        plan.files << [number, target.to_path]
      else
        Arguments.refuse(name, target, HINT) unless target.respond_to?(:write)
        Arguments.refuse_closed(name, target)
        plan.writers << [number, target]
      end
    end
  end
  private_constant :Tee
end
