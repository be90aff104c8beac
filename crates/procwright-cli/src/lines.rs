//! Lines of one stream, out of the pieces that it comes in.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Bytes of a line before it is cut: the end of a line may never come.
pub(crate) const LONGEST: usize = 64 * 1024;

/// A line, or a part of a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Bytes without the newline.
    pub(crate) bytes: &'a [u8],
    /// True if the part before was cut from this line.
    pub(crate) continues: bool,
    /// True if the newline has come, too.
    pub(crate) is_ended: bool,
}

/// A name that stands in front of lines: a newline in it would begin one of its own.
pub(crate) fn name_in_a_line(name: &OsStr) -> Vec<u8> {
    let bytes = name.as_bytes().iter();
    bytes
        .map(|byte| if *byte == b'\n' { b' ' } else { *byte })
        .collect()
}

/// Splits a stream into lines, and keeps the one that has not ended.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    partial: Vec<u8>,
    continues: bool,
}

impl LineSplitter {
    /// Calls `each` for each line that `bytes` end.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (mut part, ends) = match part.strip_suffix(b"\n") {
                Some(line) => (line, true),
                None => (part, false),
            };
            while self.partial.len() + part.len() > LONGEST {
                let (fits, rest) = part.split_at(LONGEST - self.partial.len());
                self.partial.extend_from_slice(fits);
                self.emit(&mut each, false);
                self.continues = true;
                part = rest;
            }
            match (ends, self.partial.is_empty()) {
                (true, true) => each(Line {
                    bytes: part,
                    continues: self.continues,
                    is_ended: true,
                }),
                (true, false) => {
                    self.partial.extend_from_slice(part);
                    self.emit(&mut each, true);
                }
                (false, _) => self.partial.extend_from_slice(part),
            }
            self.continues &= !ends;
        }
    }

    /// Calls `each` for the last line, if it has no newline.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if !self.partial.is_empty() {
            self.emit(&mut each, false);
        }
        self.continues = false;
    }

    fn emit(&mut self, each: &mut impl FnMut(Line<'_>), is_ended: bool) {
        each(Line {
            bytes: &self.partial,
            continues: self.continues,
            is_ended,
        });
        self.partial.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut lines = LineSplitter::default();
        let mut found = Vec::new();
        let mut each = |line: Line<'_>| found.push((line.bytes.to_vec(), line.continues));
        for piece in pieces {
            lines.feed(piece, &mut each);
        }
        lines.finish(&mut each);
        found
    }

    #[test]
    fn lines_are_put_together() {
        let whole = |line: &str| (line.as_bytes().to_vec(), false);
        let expected = [whole("one"), whole(""), whole("two"), whole("rest")];
        assert_eq!(lines(&[b"one\n\ntwo\nrest"]), expected);
        assert_eq!(
            lines(&[b"o", b"ne\n", b"\nt", b"", b"wo\nre", b"st"]),
            expected
        );
        assert_eq!(lines(&[]), []);
        assert_eq!(lines(&[b"a\n"]), [whole("a")]);
    }

    #[test]
    fn long_lines_are_cut_and_say_so() {
        for size in [
            LONGEST - 1,
            LONGEST,
            LONGEST + 1,
            3 * LONGEST,
            3 * LONGEST + 5,
        ] {
            let mut line = vec![b'x'; size];
            line.extend_from_slice(b"\nnext\n");
            for step in [1000, LONGEST, usize::MAX] {
                let pieces: Vec<&[u8]> = line.chunks(step).collect();
                let mut found = lines(&pieces);
                assert_eq!(found.pop(), Some((b"next".to_vec(), false)));
                assert_eq!(
                    found.iter().map(|(part, _)| part.len()).sum::<usize>(),
                    size
                );
                assert_eq!(found.len(), size.div_ceil(LONGEST), "{size}");
                for (i, (_, continues)) in found.iter().enumerate() {
                    assert_eq!(*continues, i > 0);
                }
            }
        }
    }
}
