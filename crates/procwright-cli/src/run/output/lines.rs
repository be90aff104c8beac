//! Whole lines of one stream, out of the pieces that it comes in.

/// What a line may take before it is cut: nobody waits for the end of a line that
/// has none.
pub(super) const LONGEST: usize = 64 * 1024;

/// A line, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Without its end.
    pub(super) bytes: &'a [u8],
    /// Whether it goes on with the line before.
    pub(super) continues: bool,
    /// Whether its end has come, too.
    pub(super) is_ended: bool,
}

/// The line that has begun and not ended.
#[derive(Debug, Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
    continues: bool,
}

impl Lines {
    /// Hands on each line that `bytes` end.
    pub(super) fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (mut part, ends) = match part.strip_suffix(b"\n") {
                Some(line) => (line, true),
                None => (part, false),
            };
            while self.partial.len() + part.len() > LONGEST {
                let (fits, rest) = part.split_at(LONGEST - self.partial.len());
                self.partial.extend_from_slice(fits);
                self.hand_on(&mut each, false);
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
                    self.hand_on(&mut each, true);
                }
                (false, _) => self.partial.extend_from_slice(part),
            }
            self.continues &= !ends;
        }
    }

    /// Hands on what has no end.
    pub(super) fn end(&mut self, mut each: impl FnMut(Line<'_>)) {
        if !self.partial.is_empty() {
            self.hand_on(&mut each, false);
        }
        self.continues = false;
    }

    fn hand_on(&mut self, each: &mut impl FnMut(Line<'_>), is_ended: bool) {
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
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut each = |line: Line<'_>| found.push((line.bytes.to_vec(), line.continues));
        for piece in pieces {
            lines.feed(piece, &mut each);
        }
        lines.end(&mut each);
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
