# frozen_string_literal: true

require_relative "helper"
require "socket"
require "timeout"
require "tmpdir"

# Queues for tests, which are closed after them.
module QueueHelper
  Q = Procwright::Queue
  # A lane that is full after some messages.
  SMALL = { first: 4096, limit: 64 * 1024, keep: 0 }.freeze

  class Boom < StandardError; end

  def setup
    super
    @ends = []
  end

  def teardown
    @ends.each(&:close)
    super
  end

  def receiver(**shape) = Q::Receiver.new(**shape).tap { |one| @ends << one }

  # A receiver and a sender whose lane has no room left.
  def full(**options)
    receiver = receiver(**SMALL)
    sender = receiver.sender(**options)
    @ends << sender
    nil while sender.try_send("x" * 1000)
    [receiver, sender]
  end

  # Another Ruby, which finds the queues of {#with_names}.
  def spawn_ruby(lines, *args, **options, &block)
    Procwright.spawn({ "PROCWRIGHT_QUEUE_DIR" => @names }, RbConfig.ruby, "--disable-gems", "-w", "-I#{Helper::LIB}",
                     "-rprocwright", "-e", lines, *args, **options, &block)
  end

  # Runs the block in a fork, and fails if it raises there.
  def in_a_fork
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      begin
        yield
      rescue Exception => e # rubocop:disable Lint/RescueException
        writer.write(e.full_message)
      end
      writer.close
      exit!(0)
    end
    writer.close
    assert_equal "", reader.read
    reader.close
    assert_predicate Process.wait2(pid)[1], :success?
  end

  def with_names
    Dir.mktmpdir do |directory|
      before = ENV.fetch("PROCWRIGHT_QUEUE_DIR", nil)
      ENV["PROCWRIGHT_QUEUE_DIR"] = @names = File.join(directory, "queues")
      yield
    ensure
      ENV["PROCWRIGHT_QUEUE_DIR"] = before
    end
  end
end
