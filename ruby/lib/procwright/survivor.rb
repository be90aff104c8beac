# frozen_string_literal: true

module Procwright
  # A process that could not be ended, or that nobody can say was. `state` is a letter,
  # as in /proc; "?" is for one that may belong to the program or be a stranger's, and
  # was not signalled. `pid` is nil for all that cannot be seen: without /proc a stop
  # reaches the program and its group; and a program may have started processes faster
  # than they could be found.
  Survivor = Struct.new(:pid, :name, :state)
end
