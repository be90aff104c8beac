//! `--tag`: time and stream in front of each line.
//!
//! What comes is shown at once, a prompt too: the tag comes with the first bytes
//! of a line. The rest of it gets none. If the other stream comes in between on
//! the same terminal or file, the line ends there in `…`, and what then follows
//! of it has `+` in its tag.

use std::time::SystemTime;

use super::own::Own;
use super::stamp::Clock;

#[derive(Debug)]
pub(super) struct Tag {
    clock: Clock,
    /// Whether both streams go to the same place.
    is_shared: bool,
    streams: [Stream; 2],
}

#[derive(Debug)]
struct Stream {
    name: &'static str,
    is_terminal: bool,
    colour: Option<&'static str>,
    /// A line has begun and not ended.
    is_open: bool,
    /// Its latest line was ended by us.
    was_cut: bool,
    /// The latest byte was a carriage return: what comes next is written over the
    /// tag, unless it ends the line.
    at_return: bool,
}

impl Tag {
    pub(super) fn new(own: &Own) -> Tag {
        let stream = |index: usize, name, colour| Stream {
            name,
            is_terminal: own.is_terminal(index),
            colour: own.takes_colour(index).then_some(colour),
            is_open: false,
            was_cut: false,
            at_return: false,
        };
        Tag {
            clock: Clock::local(),
            is_shared: own.is_shared(),
            streams: [stream(0, "out", "36"), stream(1, "err", "33")],
        }
    }

    /// What is to be written for a piece of a stream, 0 or 1.
    pub(super) fn tagged(&mut self, index: usize, bytes: &[u8], at: SystemTime) -> Vec<u8> {
        let mut text = Vec::with_capacity(bytes.len() + bytes.len() / 2 + 64);
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            if !self.streams[index].is_open {
                self.cut_other(index, &mut text);
                self.begin(index, at, &mut text);
            }
            if self.streams[index].is_terminal {
                self.add_with_returns(index, part, at, &mut text);
            } else {
                text.extend_from_slice(part);
            }
            let stream = &mut self.streams[index];
            stream.is_open = !part.ends_with(b"\n");
            stream.at_return &= stream.is_open;
        }
        text
    }

    /// Ends the line of the other stream if this one would go on in it.
    fn cut_other(&mut self, index: usize, text: &mut Vec<u8>) {
        let other = &mut self.streams[1 - index];
        if self.is_shared && other.is_open {
            text.extend_from_slice("…\n".as_bytes());
            (other.is_open, other.was_cut, other.at_return) = (false, true, false);
        }
    }

    fn begin(&mut self, index: usize, at: SystemTime, text: &mut Vec<u8>) {
        let stream = &mut self.streams[index];
        let mark = if std::mem::take(&mut stream.was_cut) {
            '+'
        } else {
            '|'
        };
        match stream.colour {
            Some(colour) => {
                text.extend_from_slice(b"\x1b[2m");
                self.clock.time_of_day(at, text);
                let name = format!("\x1b[22m \x1b[{colour}m{}\x1b[39m {mark} ", stream.name);
                text.extend_from_slice(name.as_bytes());
            }
            None => {
                self.clock.time_of_day(at, text);
                text.extend_from_slice(format!(" {} {mark} ", stream.name).as_bytes());
            }
        }
    }

    /// On a terminal a line may begin anew after a carriage return.
    fn add_with_returns(&mut self, index: usize, part: &[u8], at: SystemTime, text: &mut Vec<u8>) {
        for &byte in part {
            let returned = std::mem::replace(&mut self.streams[index].at_return, byte == b'\r');
            if returned && byte != b'\r' && byte != b'\n' {
                self.begin(index, at, text);
            }
            text.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn tag(is_shared: bool, is_terminal: bool, colour: bool) -> Tag {
        let stream = |name, colours| Stream {
            name,
            is_terminal,
            colour: colour.then_some(colours),
            is_open: false,
            was_cut: false,
            at_return: false,
        };
        Tag {
            clock: Clock::local(),
            is_shared,
            streams: [stream("out", "36"), stream("err", "33")],
        }
    }

    /// Tags pieces, and leaves the times out.
    fn tagged(mut tag: Tag, pieces: &[(usize, &str)]) -> String {
        let mut clock = Vec::new();
        Clock::local().time_of_day(UNIX_EPOCH, &mut clock);
        let clock = String::from_utf8(clock).unwrap();
        let text = pieces
            .iter()
            .flat_map(|(index, bytes)| tag.tagged(*index, bytes.as_bytes(), UNIX_EPOCH));
        let text = String::from_utf8(text.collect()).unwrap();
        text.replace(&clock, "T")
    }

    #[test]
    fn a_line_gets_one_tag_however_it_comes() {
        let pieces = [(0, "one\ntw"), (0, "o\n"), (1, "\n"), (0, "prompt: ")];
        let expected = "T out | one\nT out | two\nT err | \nT out | prompt: ";
        assert_eq!(tagged(tag(true, false, false), &pieces), expected);
    }

    #[test]
    fn a_line_that_is_interrupted_ends_visibly() {
        let pieces = [
            (0, "Password: "),
            (1, "warning\n"),
            (0, "thanks\n"),
            (0, "end\n"),
        ];
        let shared = "T out | Password: …\nT err | warning\nT out + thanks\nT out | end\n";
        assert_eq!(tagged(tag(true, true, false), &pieces), shared);
        let apart = "T out | Password: T err | warning\nthanks\nT out | end\n";
        assert_eq!(tagged(tag(false, false, false), &pieces), apart);
    }

    #[test]
    fn what_is_written_over_on_a_terminal_gets_its_tag_again() {
        let pieces = [(0, "\r1%\r"), (0, "2%\r\r"), (0, "\ncrlf\r\n")];
        let expected = "T out | \rT out | 1%\rT out | 2%\r\r\nT out | crlf\r\n";
        assert_eq!(tagged(tag(true, true, false), &pieces), expected);
        let exact = "T out | \r1%\r2%\r\r\nT out | crlf\r\n";
        assert_eq!(tagged(tag(true, false, false), &pieces), exact);
    }

    #[test]
    fn colour_is_the_tags_alone() {
        let text = tagged(tag(true, true, true), &[(1, "x\n")]);
        assert_eq!(text, "\x1b[2mT\x1b[22m \x1b[33merr\x1b[39m | x\n");
    }
}
