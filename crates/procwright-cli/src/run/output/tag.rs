//! `--tag`: time, a name if there is one, and stream in front of each line.
//!
//! Output is shown at once, a prompt too: the tag comes with the first bytes of a
//! line, and later bytes of the line get none. If the other stream comes in between
//! on the same terminal or file, the line ends there in `…`, and its rest has `+` in
//! its tag.

use std::ffi::OsStr;
use std::time::SystemTime;

use procwright::StdStream;

use super::timestamp::TimestampFormat;
use crate::lines::name_in_a_line;
use crate::stdio::{self, StandardStreams};

#[derive(Debug)]
pub(super) struct Tagger {
    clock: TimestampFormat,
    /// The name with a space in front; empty without one.
    name: Vec<u8>,
    /// True if both streams go to the same place.
    is_shared: bool,
    streams: [TaggedStream; 2],
}

#[derive(Debug)]
struct TaggedStream {
    name: &'static str,
    is_terminal: bool,
    colour: Option<&'static str>,
    /// True if a line has begun and not ended.
    is_open: bool,
    /// True if the latest line was cut by the other stream.
    was_cut: bool,
    /// True if the latest byte was a carriage return: the next byte is written over
    /// the tag, unless it ends the line.
    at_return: bool,
}

impl Tagger {
    /// A tagger without a name if that is empty.
    pub(super) fn new(streams: &StandardStreams, name: &OsStr) -> Tagger {
        let tagged = |stream: StdStream, colour| TaggedStream {
            name: stdio::short_name(stream),
            is_terminal: streams.is_terminal(stream),
            colour: streams.takes_colour(stream).then_some(colour),
            is_open: false,
            was_cut: false,
            at_return: false,
        };
        Tagger {
            clock: TimestampFormat::local(),
            name: match name.is_empty() {
                true => Vec::new(),
                false => [b" ", &*name_in_a_line(name)].concat(),
            },
            is_shared: streams.is_shared(),
            streams: [
                tagged(StdStream::Stdout, "36"),
                tagged(StdStream::Stderr, "33"),
            ],
        }
    }

    /// Text that is to be written for a piece of a stream.
    pub(super) fn tagged(&mut self, stream: StdStream, bytes: &[u8], at: SystemTime) -> Vec<u8> {
        let mut text = Vec::with_capacity(bytes.len() + bytes.len() / 2 + 64);
        let index = stdio::index(stream);
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            if !self.streams[index].is_open {
                self.cut_line_of(stream.other(), &mut text);
                self.push_tag(index, at, &mut text);
            }
            if self.streams[index].is_terminal {
                self.push_with_returns(index, part, at, &mut text);
            } else {
                text.extend_from_slice(part);
            }
            let stream = &mut self.streams[index];
            stream.is_open = !part.ends_with(b"\n");
            stream.at_return &= stream.is_open;
        }
        text
    }

    /// Ends the line of the other stream, if the next bytes would go on in it.
    fn cut_line_of(&mut self, other: StdStream, text: &mut Vec<u8>) {
        let other = &mut self.streams[stdio::index(other)];
        if self.is_shared && other.is_open {
            text.extend_from_slice("…\n".as_bytes());
            (other.is_open, other.was_cut, other.at_return) = (false, true, false);
        }
    }

    fn push_tag(&mut self, index: usize, at: SystemTime, text: &mut Vec<u8>) {
        let stream = &mut self.streams[index];
        let mark = if std::mem::take(&mut stream.was_cut) {
            '+'
        } else {
            '|'
        };
        match stream.colour {
            Some(colour) => {
                text.extend_from_slice(b"\x1b[2m");
                self.clock.push_time_of_day(at, text);
                text.extend_from_slice(&self.name);
                let name = format!("\x1b[22m \x1b[{colour}m{}\x1b[39m {mark} ", stream.name);
                text.extend_from_slice(name.as_bytes());
            }
            None => {
                self.clock.push_time_of_day(at, text);
                text.extend_from_slice(&self.name);
                text.extend_from_slice(format!(" {} {mark} ", stream.name).as_bytes());
            }
        }
    }

    /// Appends a part of a line for a terminal, with a new tag after each carriage
    /// return.
    fn push_with_returns(&mut self, index: usize, part: &[u8], at: SystemTime, text: &mut Vec<u8>) {
        for &byte in part {
            let returned = std::mem::replace(&mut self.streams[index].at_return, byte == b'\r');
            if returned && byte != b'\r' && byte != b'\n' {
                self.push_tag(index, at, text);
            }
            text.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn tag(is_shared: bool, is_terminal: bool, colour: bool) -> Tagger {
        let stream = |name, colours| TaggedStream {
            name,
            is_terminal,
            colour: colour.then_some(colours),
            is_open: false,
            was_cut: false,
            at_return: false,
        };
        Tagger {
            clock: TimestampFormat::local(),
            name: Vec::new(),
            is_shared,
            streams: [stream("out", "36"), stream("err", "33")],
        }
    }

    /// Tags pieces, with `T` for the times.
    fn tagged(mut tag: Tagger, pieces: &[(usize, &str)]) -> String {
        let mut clock = Vec::new();
        TimestampFormat::local().push_time_of_day(UNIX_EPOCH, &mut clock);
        let clock = String::from_utf8(clock).unwrap();
        let text = pieces.iter().flat_map(|(index, bytes)| {
            tag.tagged(StdStream::BOTH[*index], bytes.as_bytes(), UNIX_EPOCH)
        });
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
