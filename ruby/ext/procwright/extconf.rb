# frozen_string_literal: true

# Called by `gem install`: has cargo build the extension. Whoever has the repository
# calls `rake` instead.

require "rbconfig"

unless system("cargo", "--version", out: File::NULL, err: File::NULL)
  abort "procwright is built with Rust, and cargo was not found: https://rustup.rs"
end

mac = RbConfig::CONFIG["host_os"].include?("darwin")
# On macOS the symbols of Ruby are looked up when it is loaded, as on Linux by default.
flags = mac ? "-C link-arg=-Wl,-undefined,dynamic_lookup" : ""

# The tests build in the profile and the directory where most is built already.
profile = ENV.fetch("PROCWRIGHT_GEM_PROFILE", "release")
target = ENV.fetch("PROCWRIGHT_GEM_TARGET", "$(CURDIR)/target")
built = File.join(target, profile == "dev" ? "debug" : profile, "libnative.#{mac ? 'dylib' : 'so'}")

File.write("Makefile", <<~MAKE)
  sitearchdir = $(DESTDIR)#{RbConfig::CONFIG['sitearchdir']}
  TARGET = native.#{RbConfig::CONFIG['DLEXT']}

  all: $(TARGET)

  $(TARGET):
  \tRUBY="#{RbConfig.ruby}" RUSTFLAGS="#{flags}" cargo build --profile #{profile} --locked --manifest-path "#{__dir__}/Cargo.toml" --target-dir "#{target}"
  \tcp "#{built}" $(TARGET)

  install: all
  \tmkdir -p "$(sitearchdir)/procwright"
  \tcp $(TARGET) "$(sitearchdir)/procwright/"

  clean distclean:
  \trm -rf target $(TARGET)

  .PHONY: all install clean distclean
MAKE
