//! Keys, out of the bytes that a terminal sends for them.

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Leave,
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    /// Pause, or go on.
    Pause,
    /// Look at once.
    LookNow,
    /// Draw all anew, for who sees something else on the screen.
    Redraw,
}

const ESCAPE: u8 = 0x1b;

/// Bytes that make no whole key yet.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pending: Vec<u8>,
}

impl Keys {
    /// The keys that `bytes` end.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, length)) = first(&self.pending) {
            keys.extend(key);
            self.pending.drain(..length);
        }
        keys
    }

    /// True if what came last is the key Esc, or the first byte of another key: only time tells.
    pub(super) fn is_unfinished(&self) -> bool {
        !self.pending.is_empty()
    }

    /// What came last, when nothing has followed: Esc. The rest of a longer key that never came
    /// whole means nothing.
    pub(super) fn finish(&mut self) -> Option<Key> {
        let alone = self.pending == [ESCAPE];
        self.pending.clear();
        alone.then_some(Key::Leave)
    }
}

/// The first key, if it means something, and how many bytes it has. `None` if it has not come
/// whole.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let rest = match bytes {
        [] => return None,
        [ESCAPE, rest @ ..] => rest,
        [letter, ..] => return Some((of_letter(*letter), 1)),
    };
    match rest {
        [] => None,
        [b'[' | b'O', parameters @ ..] => {
            let end = parameters
                .iter()
                .position(|byte| (0x40..=0x7e).contains(byte))?;
            Some((of_sequence(&parameters[..=end]), end + 3))
        }
        // Two times Esc, in a hurry.
        [ESCAPE, ..] => Some((Some(Key::Leave), 1)),
        // A letter with Alt.
        [_, ..] => Some((None, 2)),
    }
}

/// A letter, or one with Ctrl: those of less, vi and top.
fn of_letter(letter: u8) -> Option<Key> {
    Some(match letter {
        // Ctrl-C is a byte where the terminal makes no signal of it.
        b'q' | b'Q' | 0x03 => Key::Leave,
        b'k' | b'y' | 0x10 | 0x19 => Key::Up,
        b'j' | b'e' | b'\r' | b'\n' | 0x0e | 0x05 => Key::Down,
        b'b' | 0x02 => Key::PageUp,
        b' ' | b'f' | 0x06 => Key::PageDown,
        b'g' | b'<' => Key::Top,
        b'G' | b'>' => Key::Bottom,
        b'p' => Key::Pause,
        b'r' => Key::LookNow,
        0x0c => Key::Redraw,
        _ => return None,
    })
}

/// What follows `ESC [` or `ESC O`.
fn of_sequence(sequence: &[u8]) -> Option<Key> {
    Some(match sequence {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"5~" => Key::PageUp,
        b"6~" => Key::PageDown,
        b"H" | b"1~" | b"7~" => Key::Top,
        b"F" | b"4~" | b"8~" => Key::Bottom,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_whatever_pieces() {
        let all = b"j\x1b[A\x1bOB\x1b[5~x\x1b[6~\x1b[1;5C\xc3\xa4\x1bq\x1b[H\x1bOFpr\x0c G";
        let meant = [
            Key::Down,
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::PageDown,
            Key::Top,
            Key::Bottom,
            Key::Pause,
            Key::LookNow,
            Key::Redraw,
            Key::PageDown,
            Key::Bottom,
        ];
        for piece in 1..all.len() {
            let mut keys = Keys::default();
            let found: Vec<Key> = all
                .chunks(piece)
                .flat_map(|bytes| keys.feed(bytes))
                .collect();
            assert_eq!(found, meant, "in pieces of {piece}");
            assert!(!keys.is_unfinished());
        }
    }

    #[test]
    fn escape_is_a_key_if_nothing_follows() {
        let mut keys = Keys::default();
        assert_eq!(keys.feed(b"\x1b"), []);
        assert!(keys.is_unfinished());
        assert_eq!(keys.finish(), Some(Key::Leave));
        assert!(!keys.is_unfinished());
        assert_eq!(keys.feed(b"\x1b\x1b"), [Key::Leave]);
        assert_eq!(keys.finish(), Some(Key::Leave));
        // The rest of it was lost.
        assert_eq!(keys.feed(b"\x1b[5"), []);
        assert_eq!(keys.finish(), None);
        assert_eq!(keys.feed(b"q\x03Q"), [Key::Leave; 3]);
    }
}
