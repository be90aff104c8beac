# frozen_string_literal: true

require_relative "helper"
require "ripper"

# README.md has the order of the files of lib/procwright and of the modules of the extension:
# each uses only those below it. So there is no circle either.
class TestLayers < Minitest::Test
  README = File.join(ROOT, "ruby", "README.md")
  LIBRARY = File.join(ROOT, "ruby", "lib", "procwright")
  EXTENSION = File.join(ROOT, "ruby", "ext", "procwright", "src")

  # What one Ruby file defines and uses: paths of constants, and methods of Procwright itself.
  class RubyNames
    attr_reader :defined, :used

    def initialize(source)
      @defined = []
      # Pairs of nesting and path.
      @used = []
      walk(Ripper.sexp(source) || raise(ArgumentError, "no Ruby: #{source}"), [])
    end

    private

    def walk(node, nesting)
      return unless node.is_a?(Array)

      case node
      in [:module, name, body] then open(name, nesting) { |inside| walk(body, inside) }
      in [:class, name, parent, body]
        walk(parent, nesting)
        open(name, nesting) { |inside| walk(body, inside) }
      in [:assign, [:var_field, [:@const, name, _]], value]
        @defined << [*nesting, name]
        walk(value, nesting)
      in [:defs, [:var_ref, [:@kw, "self", _]], _, [_, name, _], *rest]
        @defined << [*nesting, ".#{name}"]
        walk(rest, nesting)
      in [:call, [:var_ref, [:@const, "Procwright", _]], _, [:@ident, name, _], *]
        @used << [[], ["Procwright", ".#{name}"]]
      in [:const_path_ref, *] | [:var_ref, [:@const, *]]
        path = path_of(node)
        path ? @used << [nesting, path] : node.each { |child| walk(child, nesting) }
      else node.each { |child| walk(child, nesting) }
      end
    end

    def open(name, nesting)
      inside = [*nesting, *path_of(name)]
      @defined << inside
      yield inside
    end

    # nil for the path of something else than a constant.
    def path_of(node)
      case node
      in [:const_ref | :var_ref, [:@const, name, _]] then [name]
      in [:const_path_ref, left, [:@const, name, _]] then (path = path_of(left)) && [*path, name]
      else nil
      end
    end
  end

  # Pairs of names of files, the first of which uses the second.
  def ruby_uses(files)
    names = files.transform_values { |source| RubyNames.new(source) }
    order = layers("lib/procwright").flatten
    places = Hash.new { |all, path| all[path] = [] }
    names.each { |file, found| found.defined.each { |path| places[path] |= [file] } }
    names.flat_map do |file, found|
      targets = found.used.filter_map do |nesting, path|
        defining = places.fetch(resolve(nesting, path, places), [])
        # A module that several files open is there with the lowest of them.
        defining.max_by { |one| order.index(one) } unless defining.include?(file)
      end
      targets.uniq.map { |target| [file, target] }
    end
  end

  # The longest part of the path that is defined, from where Ruby would find its first name.
  def resolve(nesting, path, places)
    nesting.size.downto(0) do |depth|
      full = [*nesting.first(depth), path.first]
      next unless places.key?(full)

      path.drop(1).each { |name| places.key?([*full, name]) ? full << name : break }
      return full
    end
    nil
  end

  # As {ruby_uses}, of modules of Rust.
  def rust_uses(files)
    files.flat_map do |file, source|
      parent = file.include?("/") ? File.dirname(file) : file
      code = source.gsub(%r{//.*$}, "")
      paths = code.scan(/\bcrate::([\w:]+)/).flatten + code.scan(/\bsuper::([\w:]*)/).flatten.map { |path| "#{parent}::#{path}" }
      # A module in a folder is used by its own name, or by that of a file in it.
      targets = paths.map do |path|
        first, second = path.split("::")
        files.key?("#{first}/#{second}") ? "#{first}/#{second}" : first
      end
      (targets.uniq & files.keys - [file]).map { |target| [file, target] }
    end
  end

  # The lines of a picture in the README, from top to bottom, as arrays of names.
  def layers(picture)
    block = File.read(README)[/^`#{picture}`.*?\n```text\n(.*?)^```$/m, 1] or flunk("no picture of #{picture}")
    block.lines.map { |line| line[/\S.*/].split(/\s{2,}/).first.split(" · ") }
  end

  # Uses of a file that does not stand below.
  def upward(uses, layers)
    height = layers.each_with_index.flat_map { |names, index| names.map { |name| [name, index] } }.to_h
    uses.reject { |from, to| height.fetch(from) < height.fetch(to) }
  end

  def files_below(folder, suffix)
    Dir.glob("**/*#{suffix}", base: folder).to_h do |file|
      [file.delete_suffix(suffix).delete_suffix("/mod"), File.read(File.join(folder, file))]
    end
  end

  def library = @library ||= files_below(LIBRARY, ".rb")
  def extension = @extension ||= files_below(EXTENSION, ".rs").reject { |name, _| name == "lib" }

  def test_the_pictures_have_every_file
    assert_equal library.keys.sort, layers("lib/procwright").flatten.sort
    assert_equal extension.keys.sort, layers("ext/procwright/src").flatten.sort
  end

  def test_files_of_the_library_use_only_those_below
    assert_empty upward(ruby_uses(library), layers("lib/procwright"))
  end

  def test_modules_of_the_extension_use_only_those_below
    assert_empty upward(rust_uses(extension), layers("ext/procwright/src"))
  end

  def test_files_are_required_bottom_first
    required = File.read("#{LIBRARY}.rb").scan(/^require_relative "procwright\/(.*)"$/).flatten
    assert_equal library.keys.sort, required.sort
    height = layers("lib/procwright").each_with_index.flat_map { |names, index| names.map { |name| [name, index] } }.to_h
    assert_equal required, required.sort_by.with_index { |name, index| [-height.fetch(name), index] }
    library.each { |name, source| refute_match(/^\s*require_relative|^\s*require "procwright/, source, name) }
  end

  def test_a_planted_circle_is_found
    planted = library.merge("stop" => "#{library['stop']}\nmodule Procwright; class Stop; Child.new; end; end")
    assert_equal [%w[stop child]], upward(ruby_uses(planted), layers("lib/procwright"))
    planted = library.merge("process" => "#{library['process']}\nmodule Procwright; module Made; def go = Procwright.wait([self]); end; end")
    assert_equal [%w[process wait]], upward(ruby_uses(planted), layers("lib/procwright"))
    planted = extension.merge("errors" => "#{extension['errors']}\nuse crate::child::Child;\n")
    assert_equal [%w[errors child]], upward(rust_uses(planted), layers("ext/procwright/src"))
    planted = extension.merge("queue/errors" => "#{extension['queue/errors']}\nuse super::{Sender};\n")
    assert_equal [%w[queue/errors queue]], upward(rust_uses(planted), layers("ext/procwright/src"))
  end
end
