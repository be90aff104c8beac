# frozen_string_literal: true

module Procwright
  # Which words behind a line for the shell the line uses, as far as that is certain.
  module ShellLine # :nodoc:
    # Any of $0, $1, $@, $*, $#, or ${1}.
    ANY = /\$\{?[#!]?[0-9@*#]/n
    # Those among them that have the first word, or all.
    FIRST = /\$\{?[#!]?[0@*#]/n
    # What may give the shell other words than those behind the line, asks whether there is one,
    # or says that a `$` may be one of another program: functions, `set`, tests, comments, here
    # documents, `$'...'`.
    OTHERS = /\(\s*\)|<<|\$'|(?:\A|\s)#|\b(?:set|function|eval|source|alias|test)\b|\[|(?:\A|[;&|({\n])\s*\.\s/n
    # In their order: a text in single quotes and an escaped character, which are left out; one in
    # double quotes without any of these, an argument, and a quote that is none of all these.
    PART = /'[^']*'|\\.|\$\$|"(?<quoted>(?:[^"'\\`(]|\\.)*)"|\$(?<one>[1-9])|\$\{(?<many>[1-9][0-9]*)\}|(?<unclear>["'`])/mn
    # What people put first for the sake of `$0` alone.
    NAMES = %w[_ - -- sh bash dash ksh zsh].freeze

    private_constant :ANY, :FIRST, :OTHERS, :PART, :NAMES

    class << self
      # Whether the line has any of $0, $1, $@, $*, $#, or ${1}.
      def uses_any?(line) = line.b.match?(ANY)

      # Whether the line takes the one word behind it for `$1`, while it is `$0`: it uses `$1`,
      # which is not there, and never the word.
      #
      # A shell makes an empty word of it without an error. Of several words the first may be a
      # name that is meant, and the others as many as there are.
      def takes_first_for_one?(line, words)
        return false unless words.size == 1

        line = line.b
        return false if NAMES.include?(File.basename(words.first.b)) || line.match?(FIRST) || line.match?(OTHERS)

        arguments(line)&.include?(1) || false
      end

      private

      # The numbers of the arguments that the shell puts in whatever else is true; nil if what is
      # quoted cannot be told.
      def arguments(line)
        found = []
        line.scan(PART) do
          part = Regexp.last_match
          return nil if part[:unclear]

          found.concat(arguments(part[:quoted]) || []) if part[:quoted]
          number = part[:one] || part[:many]
          found << Integer(number, 10) if number
        end
        found
      end
    end
  end

  private_constant :ShellLine
end
