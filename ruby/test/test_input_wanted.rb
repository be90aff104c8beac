# frozen_string_literal: true

require_relative "helper"

# `input_wanted`: who asks for it is told that a program waits for input, once for each prompt.
class TestInputWanted < Minitest::Test
  TWO = ["sh", "-c", "printf 'Name: '; read name; printf 'Age of %s: ' \"$name\"; read age; echo"].freeze

  def test_a_child_is_answered_prompt_by_prompt
    told = Thread::Queue.new
    child = Procwright.spawn(*TWO, pty: true, stdin: :pipe, input_wanted: true, on_event: ->(event) { told << event })
    { "Name: " => "Ada", "Age of Ada: " => "36" }.each do |prompt, answer|
      event = told.pop
      assert_equal [:input_wanted, prompt], [event.kind, event.prompt]
      assert_equal [:input, child.pid, true], [event.waiting.kind, event.waiting.pid, event.waiting.terminal?]
      child.stdin.puts answer
    end
    assert_predicate child.wait, :success?
    assert_empty told
  end

  def test_it_is_told_to_one_who_waits_for_the_answer
    child = nil
    answer = ->(event) { child.stdin.puts(event.prompt.start_with?("Name") ? "Ada" : "36") }
    child = Procwright.spawn(*TWO, stdin: :pipe, input_wanted: true, on_event: answer)
    assert_equal "Name: Age of Ada: \n", child.stdout.gets
    assert_predicate child.wait, :success?
  end

  def test_its_thread_ends_with_the_program
    threads = Thread.list
    child = Procwright.spawn("true", stdin: :pipe, input_wanted: true, on_event: ->(event) { flunk event.message })
    mine = Thread.list - threads
    assert_equal 1, mine.size
    child.wait
    mine.each(&:join)
    assert_raises(Errno::ENOENT) { Procwright.spawn("/nonexistent", input_wanted: true, on_event: -> {}) }
    # None of it stays: else this waits for ever.
    (Thread.list - threads).each(&:join)
  end

  def test_what_it_raises_is_told_and_raised_and_it_goes_on
    told = []
    child = nil
    answer = lambda do |event|
      told << event.prompt
      child.stdin.puts "Ada"
      raise IndexError, "on purpose" if told.size == 1
    end
    _, words = capture_io do
      child = Procwright.spawn(*TWO, stdin: :pipe, input_wanted: true, on_event: answer)
      child.stdout.read
      assert_equal "on purpose", assert_raises(IndexError) { child.wait }.message
    end
    assert_equal ["Name: ", "Name: Age of Ada: "], told
    assert_includes words, "has raised IndexError: on purpose"
    assert_predicate child.wait, :success?
  end

  def test_a_run_says_who_waits_and_where
    IO.pipe do |theirs, ours|
      events = []
      answer = lambda do |event|
        events << event
        ours.syswrite("yes\n")
      end
      script = "printf 'Go on? ' >&2; read answer; echo $answer"
      result = Procwright.run("sh", "-c", script, stdin: theirs, on_event: answer, input_wanted: true)
      assert_equal "yes\n", result.stdout
      assert_equal ["Go on? "], events.map(&:prompt)
      assert_includes events[0].to_s, " wants input: sh ("
      assert_includes events[0].to_s, "waits for input on stdin, pipe "
    end
  end

  def test_without_a_prompt_there_is_none
    IO.pipe do |theirs, ours|
      prompts = []
      answer = lambda do |event|
        prompts << event.prompt
        ours.syswrite("x")
      end
      assert_equal "x", Procwright.run("head", "-c", "1", stdin: theirs, on_event: answer, input_wanted: true).stdout
      assert_equal [nil], prompts
    end
  end

  def test_without_it_nothing_is_told
    IO.pipe do |theirs, _ours|
      events = []
      result = Procwright.run("cat", stdin: theirs, on_event: ->(event) { events << event }, timeout: 0.8, on_timeout: :return)
      assert_equal :timeout, result.reason
      assert_empty events
    end
  end

  def test_where_it_has_no_place
    tell = ->(event) { flunk event.message }
    {
      -> { Procwright.spawn("cat", input_wanted: true) } => /\Ainput_wanted is true: nobody would be told/,
      -> { Procwright.spawn("cat", input_wanted: true, on_event: tell, detach: true, stdout: :null, stderr: :null) } => /\Ainput_wanted /,
      -> { Procwright.map([%w[true]], input_wanted: true) } => /run or spawn it alone/,
      -> { Procwright.pipeline("cat", input_wanted: true) } => /no stage has somebody to answer/,
      -> { Procwright.spawn_pipeline("cat", input_wanted: true) } => /input_wanted/
    }.each { |call, text| assert_match text, assert_raises(Procwright::InvalidValue, &call).message }
  end
end
