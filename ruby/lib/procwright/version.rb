# frozen_string_literal: true

module Procwright
  VERSION = "0.1.0"
end
