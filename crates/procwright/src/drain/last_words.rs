//! The end of what came of a stream, for those who tell of its program.

use std::collections::VecDeque;

use procwright_os::sync::Mutex;

/// The most bytes that are kept: more than a report shows.
const MOST: usize = 4096;

/// The latest bytes of a stream, whether or not somebody has read them.
#[derive(Debug, Default)]
pub(crate) struct LastWords(Mutex<VecDeque<u8>>);

impl LastWords {
    /// Notes what has just been read.
    pub(super) fn note(&self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(MOST)..];
        let mut kept = self.0.lock();
        let excess = (kept.len() + bytes.len()).saturating_sub(MOST);
        kept.drain(..excess);
        kept.extend(bytes);
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().iter().copied().collect()
    }

    /// The last line if it has no end yet, as a prompt has none; what a return has begun anew
    /// is the rest of it.
    pub(crate) fn unfinished_line(&self) -> Option<String> {
        let bytes = self.bytes();
        let line = bytes.rsplit(|byte| *byte == b'\n').next()?;
        let line = line
            .rsplit(|byte| *byte == b'\r')
            .find(|part| !part.is_empty())?;
        Some(String::from_utf8_lossy(line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_the_line_without_an_end() {
        for (said, prompt) in [
            ("", None),
            ("done\n", None),
            ("Go on? ", Some("Go on? ")),
            ("one\r\ntwo\r\n> ", Some("> ")),
            ("50 %\r100 %\rName: ", Some("Name: ")),
            ("100 %\r", Some("100 %")),
        ] {
            let words = LastWords::default();
            words.note(said.as_bytes());
            assert_eq!(words.unfinished_line().as_deref(), prompt, "{said:?}");
        }
    }

    #[test]
    fn the_end_is_kept() {
        let words = LastWords::default();
        let all: Vec<u8> = (0..3 * MOST).map(|i| (i % 251) as u8).collect();
        assert_eq!(words.bytes(), b"");
        for piece in [100, MOST - 1, 1, MOST, 7] {
            let mut said = Vec::new();
            for bytes in all.chunks(piece) {
                words.note(bytes);
                said.extend_from_slice(bytes);
                let end = &said[said.len().saturating_sub(MOST)..];
                assert!(words.bytes().ends_with(end));
            }
            assert_eq!(words.bytes(), all[2 * MOST..]);
        }
    }
}
