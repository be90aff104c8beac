//! The path of the helper programs for tests, and the bytes that those programs write.
//!
//! All helpers are subcommands of one binary, `test-child`; `test-child help` lists
//! them. Tests start them instead of a shell, coreutils or `sleep`.

use std::env;
use std::path::{Path, PathBuf};

/// The environment variable that overrides where [`path`] looks.
pub const PATH_VARIABLE: &str = "PROCWRIGHT_TEST_CHILD";

/// The path of the built `test-child` binary.
///
/// It lies in `target/PROFILE`, a parent directory of every test executable
/// (`target/PROFILE/deps/…`). The environment variable
/// `PROCWRIGHT_TEST_CHILD` overrides it.
///
/// # Panics
///
/// If there is no such file; the message says how to build it.
pub fn path() -> PathBuf {
    if let Some(given) = env::var_os(PATH_VARIABLE) {
        let given = PathBuf::from(given);
        assert!(
            given.is_file(),
            "{PATH_VARIABLE} names {}, which is not a file",
            given.display()
        );
        return given;
    }
    let current = env::current_exe().expect("the path of the test executable");
    let name = format!("test-child{}", env::consts::EXE_SUFFIX);
    current
        .ancestors()
        .skip(1)
        .take(4)
        .map(|directory| directory.join(&name))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| panic!("{}", how_to_build(&current)))
}

fn how_to_build(current: &Path) -> String {
    format!(
        "no `test-child` binary in a directory above {}. `make test` and \
         `cargo test --workspace` build it; `cargo test` for one crate alone does not. \
         Run `cargo build -p test-children` first (with the same --release, --profile, \
         --target and CARGO_TARGET_DIR as the tests), or set {PATH_VARIABLE} to its path.",
        current.display()
    )
}

/// What `test-child invalid-utf8` writes: a lone continuation byte, bytes that
/// never occur in UTF-8, an overlong form, a surrogate, a sequence broken off
/// in the middle of the text and one broken off at its end, between valid
/// characters of one to four bytes.
pub const INVALID_UTF8: &[u8] =
    b"a \xc3\xa9 \xe2\x82\xac \xf0\x9f\xa6\x80 \x80 \xff\xfe \xc0\xaf \xed\xa0\x80 \xe2\x82 z\n\xf0\x9f\xa6";

/// The byte of which `test-child fork-flooder` writes `--own` many.
pub const OWN_BYTE: u8 = b'O';

/// The byte that the grandchild of `test-child fork-flooder` writes for ever.
pub const FLOOD_BYTE: u8 = b'.';

/// The distance after which the pattern of [`Pattern`] repeats: a prime, so
/// that a lost or swapped block of any usual size shows.
pub const PATTERN_PERIOD: u64 = 65_521;

/// The stream that a pattern is for; the two differ in every byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error: every byte is the complement of that of stdout.
    Stderr,
}

/// The byte at `offset` of what `test-child flood` writes to `stream`:
/// with `j = offset % 65521` it is `(j * 31 + j / 256) % 256` on stdout, and
/// 255 minus that on stderr.
pub fn pattern_byte(stream: Stream, offset: u64) -> u8 {
    let j = offset % PATTERN_PERIOD;
    let byte = ((j * 31 + j / 256) % 256) as u8;
    match stream {
        Stream::Stdout => byte,
        Stream::Stderr => !byte,
    }
}

/// The bytes of [`pattern_byte`], computed once and then only copied.
#[derive(Debug, Clone)]
pub struct Pattern {
    block: Vec<u8>,
    longest: usize,
}

impl Pattern {
    /// A pattern whose [`slice`](Self::slice) gives up to `longest` bytes.
    pub fn new(stream: Stream, longest: usize) -> Self {
        let longest = longest.max(1);
        let block = (0..PATTERN_PERIOD + longest as u64)
            .map(|offset| pattern_byte(stream, offset))
            .collect();
        Self { block, longest }
    }

    /// The bytes from `offset` on: `length` of them.
    ///
    /// # Panics
    ///
    /// If `length` is more than the longest slice asked for in `new`.
    pub fn slice(&self, offset: u64, length: usize) -> &[u8] {
        assert!(length <= self.longest, "slice longer than the pattern");
        let start = (offset % PATTERN_PERIOD) as usize;
        &self.block[start..start + length]
    }

    /// Compares `data`, read from `offset` on, with the pattern, and gives the
    /// offset of the first byte that differs.
    pub fn mismatch(&self, offset: u64, data: &[u8]) -> Option<u64> {
        let mut at = offset;
        for piece in data.chunks(self.longest) {
            let expected = self.slice(at, piece.len());
            if piece != expected {
                let wrong = piece.iter().zip(expected).position(|(a, b)| a != b)?;
                return Some(at + wrong as u64);
            }
            at += piece.len() as u64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_slices_are_the_bytes_of_the_formula() {
        let pattern = Pattern::new(Stream::Stdout, 4096);
        for offset in [0, 1, 65_000, PATTERN_PERIOD - 1, PATTERN_PERIOD, 1 << 40] {
            let slice = pattern.slice(offset, 4096);
            for (index, byte) in slice.iter().enumerate() {
                assert_eq!(*byte, pattern_byte(Stream::Stdout, offset + index as u64));
            }
        }
    }

    #[test]
    fn mismatch_names_the_first_wrong_offset() {
        let pattern = Pattern::new(Stream::Stderr, 100);
        let mut data: Vec<u8> = (500..1500)
            .map(|offset| pattern_byte(Stream::Stderr, offset))
            .collect();
        assert_eq!(pattern.mismatch(500, &data), None);
        assert_eq!(
            Pattern::new(Stream::Stdout, 100).mismatch(500, &data),
            Some(500)
        );
        data[777] ^= 1;
        assert_eq!(pattern.mismatch(500, &data), Some(1277));
    }

    #[test]
    fn the_message_for_a_missing_binary_names_the_remedies() {
        let message = how_to_build(Path::new("/x/target/debug/deps/t"));
        assert!(message.contains("cargo test --workspace"));
        assert!(message.contains("cargo build -p test-children"));
        assert!(message.contains(PATH_VARIABLE));
    }
}
