//! Where everything is, and how it is written: `docs/reference/queue-format.md`
//! in code. A test holds one to the other.
//!
//! No state and no system call. What comes from a file is somebody else's, so
//! every value is checked here before anybody calculates with it.

/// Regions begin at multiples of this, so that each begins with a page whatever
/// the size of a page is.
pub(crate) const PLOT: u64 = 64 * 1024;

/// What two processors write to lies this far apart: two cache lines, since
/// neighbouring lines are fetched in pairs.
const LINE: u64 = 128;

pub(crate) const VERSION: u32 = 1;
pub(crate) const MAGIC: [u8; 8] = *b"pwqueue\0";
/// Written as a number: a machine of the other byte order reads another.
const ORDER: u32 = 0x0102_0304;

/// The reader's page: what it alone writes. It says which of the words behind it,
/// each in a plot of its own, tells whether the reader lives.
pub(crate) const READER: u64 = PLOT;
pub(crate) const LIVENESS: u64 = 2 * PLOT;
/// How many such words there are: one after the other is used, so that whoever
/// looks at an old one long after does not take a new one for it.
pub(crate) const WORDS: u64 = 16;
/// A line for each lane, written by the reader.
const LINES: u64 = LIVENESS + WORDS * PLOT;

/// In the reader's page. What is between `SEQUENCE` and its end is written while
/// that is odd, but for `OPEN`.
pub(crate) mod reader {
    pub(crate) const SEQUENCE: u64 = 0;
    /// The plot of the word, its place there, and what it says as long as it is
    /// held: 0 if there is none.
    pub(crate) const WORD_PLOT: u64 = 8;
    pub(crate) const WORD_PLACE: u64 = 12;
    pub(crate) const WORD_VALUE: u64 = 16;
    /// Its process: number, inode in pidfs, start in clock ticks, pid namespace.
    pub(crate) const PID: u64 = 20;
    pub(crate) const INODE: u64 = 24;
    /// [`IS_THERE`] or [`HAS_CLOSED`].
    pub(crate) const OPEN: u64 = 32;
    pub(crate) const START: u64 = 40;
    pub(crate) const NAMESPACE: u64 = 48;
    /// The name of the socket where it is to be had, without the 0 in front.
    pub(crate) const NAME: u64 = 64;
    pub(crate) const NAME_LENGTH: usize = 32;
    /// The whole page.
    pub(crate) const SIZE: u64 = NAME + NAME_LENGTH as u64;

    pub(crate) const IS_THERE: u32 = 1;
    pub(crate) const HAS_CLOSED: u32 = 2;
}

/// In a lane's line: up to where the sender may write anew, and up to where a
/// receiver that takes over need not read again.
pub(crate) const HEAD: u64 = 0;
pub(crate) const DONE: u64 = 8;

/// In the region that all write to.
pub(crate) const BELL: u64 = 0;
pub(crate) const CLAIMS: u64 = LINE;
pub(crate) const GUESTS: u64 = 2 * LINE;
const STATES: u64 = 1024;

/// In a lane's page, which its sender alone writes, but for `SPACE`, which the
/// reader sets back.
pub(crate) const TAIL: u64 = 0;
/// Behind the tail: whose bytes are in the mailbox, and the mailbox, a copy of a short
/// message. Up to `NEAR` words of it lie in the tail's own cache line, the others in
/// the next one: who waits for it needs no line that it has to look for first.
#[cfg(test)]
const STAMP: u64 = TAIL + 8;
#[cfg(test)]
const MAIL: u64 = TAIL + 16;
pub(crate) const NEAR: usize = 6;
/// All of its words, and its bytes.
pub(crate) const MAILBOX: usize = 14;
pub(crate) const SHORT: usize = 8 * MAILBOX;
pub(crate) const SPACE: u64 = LINE;
pub(crate) const PEER: u64 = 2 * LINE;
pub(crate) const PEER_SIZE: u64 = 32;

/// A queue has at most so many lanes: their states fit into a plot, and the
/// numbers of the locks that stand for them into a file.
pub(crate) const MOST_LANES: u32 = 4096;

/// What stands in front of each message.
pub(crate) const RECORD: u64 = 8;

/// Messages of so many bytes and more begin at a multiple of [`ALIGNED`], which is a
/// cache line: a copy to 8 bytes behind one takes three to five times as long (4 KiB
/// and more, AMD EPYC), since each of its stores goes over a boundary of 16 bytes, and
/// who gets such a message can calculate with it where it is.
pub(crate) const LONG: u64 = 1024;
pub(crate) const ALIGNED: u64 = 64;

/// The bytes that are locked (`F_OFD_SETLK`) for as long as somebody is there. A
/// lock needs no bytes: these lie in the header, and mean nothing else.
pub(crate) const READER_LOCK: u64 = 0;
pub(crate) fn lane_lock(lane: u32) -> u64 {
    1 + u64::from(lane)
}

/// The shape of a queue, from which every offset follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    lanes: u32,
    /// The first block has 2 to this power bytes, and each next one twice as many.
    first: u32,
    blocks: u32,
    /// Memory of so many blocks stays with a lane while somebody has it; of the larger
    /// ones the reader gives back what it has read.
    kept: u32,
}

impl Geometry {
    /// None if there is no such queue.
    pub(crate) fn new(lanes: u32, first: u32, blocks: u32, kept: u32) -> Option<Geometry> {
        let has_lanes = (1..=MOST_LANES).contains(&lanes);
        // From a page to a gibibyte, the largest that a message's length is for.
        let has_blocks = first >= 12 && blocks >= 1 && first.checked_add(blocks)? <= 31;
        let keeps_some = (1..=blocks).contains(&kept);
        (has_lanes && has_blocks && keeps_some).then_some(Geometry {
            lanes,
            first,
            blocks,
            kept,
        })
    }

    /// Blocks so small that a model can go through all that may happen to them.
    #[cfg(test)]
    pub(crate) fn tiny(first: u32, blocks: u32, kept: u32) -> Geometry {
        Geometry {
            lanes: 1,
            first,
            blocks,
            kept,
        }
    }

    /// Whether the memory of a block stays with the lane while somebody has it.
    pub(crate) fn keeps(&self, block: u32) -> bool {
        block < self.kept
    }

    /// Memory is given back in multiples of this, at multiples of it: whole pages.
    pub(crate) fn grain(&self) -> u64 {
        PLOT.min(self.size(self.kept - 1))
    }

    pub(crate) fn lanes(&self) -> u32 {
        self.lanes
    }

    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The size of a block.
    pub(crate) fn size(&self, block: u32) -> u64 {
        1 << (self.first + block)
    }

    /// Where in the window it begins.
    pub(crate) fn start(&self, block: u32) -> u64 {
        self.size(block) - self.size(0)
    }

    /// All blocks of a lane.
    pub(crate) fn window(&self) -> u64 {
        self.start(self.blocks)
    }

    /// A lane's line, in the file.
    pub(crate) fn line(&self, lane: u32) -> u64 {
        LINES + u64::from(lane) * LINE
    }

    /// The region that all write to. All before it is written by the reader alone.
    pub(crate) fn shared(&self) -> u64 {
        (LINES + u64::from(self.lanes) * LINE).next_multiple_of(PLOT)
    }

    /// A lane's state, in the file.
    pub(crate) fn state(&self, lane: u32) -> u64 {
        self.shared() + STATES + u64::from(lane) * 4
    }

    /// A lane's page, in the file. Its window begins a plot further on.
    pub(crate) fn lane(&self, lane: u32) -> u64 {
        self.shared() + PLOT + u64::from(lane) * self.lane_size()
    }

    /// A lane's page and window.
    pub(crate) fn lane_size(&self) -> u64 {
        PLOT + self.window().next_multiple_of(PLOT)
    }

    pub(crate) fn file_size(&self) -> u64 {
        self.lane(self.lanes)
    }
}

/// What a header says that is not followed yet: who sees one of these goes no
/// further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOurs {
    /// It is no queue at all.
    NoQueue(&'static str),
    /// It is one, of another version of the format.
    Version(u32),
}

/// The header of a queue. It does not change once the queue was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) geometry: Geometry,
    /// No other queue has it, as far as chance goes.
    pub(crate) nonce: u64,
}

pub(crate) const HEADER: usize = 64;

impl Header {
    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let shape = &self.geometry;
        bytes[..8].copy_from_slice(&MAGIC);
        for (at, value) in [
            (8, VERSION),
            (12, ORDER),
            (16, shape.lanes),
            (20, shape.first),
            (24, shape.blocks),
            // Flags: none is defined yet.
            (28, 0),
            (48, shape.kept),
        ] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes[32..40].copy_from_slice(&self.nonce.to_le_bytes());
        bytes[40..48].copy_from_slice(&shape.file_size().to_le_bytes());
        bytes
    }

    /// # Errors
    /// If these bytes are no header, or one that this code does not follow.
    pub(crate) fn parse(bytes: &[u8; HEADER]) -> Result<Header, NotOurs> {
        let number = |at: usize| {
            let mut four = [0; 4];
            four.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(four)
        };
        let whole = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
        if bytes[..8] != MAGIC {
            return Err(NotOurs::NoQueue("it does not begin as one"));
        }
        // Before all else: what follows may have another meaning there.
        match number(8) {
            VERSION => {}
            other => return Err(NotOurs::Version(other)),
        }
        if number(12) != ORDER {
            return Err(NotOurs::NoQueue("its byte order is another"));
        }
        let geometry = Geometry::new(number(16), number(20), number(24), number(48))
            .ok_or(NotOurs::NoQueue("it has an impossible shape"))?;
        // Whoever sets a flag means something that we would get wrong.
        if number(28) != 0 || bytes[52..].iter().any(|byte| *byte != 0) {
            return Err(NotOurs::NoQueue("it has features that are not known here"));
        }
        if whole(40) != geometry.file_size() {
            return Err(NotOurs::NoQueue("its size is not that of its shape"));
        }
        Ok(Header {
            geometry,
            nonce: whole(32),
        })
    }
}

/// How far somebody has got in a lane: which block, and the position. Both in one
/// word, so that it is never half written, whenever its writer is killed.
///
/// Positions count the bytes of a lane, all its life, and never begin anew: 2^62
/// of them are fourteen years at ten gigabytes a second. A position's place in a
/// block is what is left of it when it is divided by the block's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) block: u32,
    /// A multiple of 8.
    pub(crate) position: u64,
}

const UNITS: u32 = 59;

/// Stands in the place of a lane's head when the reader will not read on: what it
/// found there is no lane.
pub(crate) const REFUSED: u64 = u64::MAX;

/// The position that no cursor reaches.
pub(crate) const FARTHEST: u64 = 1 << 62;

impl Cursor {
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.block) << UNITS | self.position >> 3
    }

    pub(crate) fn of_word(word: u64) -> Cursor {
        Cursor {
            block: (word >> UNITS) as u32,
            position: (word & ((1 << UNITS) - 1)) << 3,
        }
    }

    /// Whether there is such a place in a lane.
    pub(crate) fn is_valid(self, geometry: &Geometry) -> bool {
        self.block < geometry.blocks && self.position < FARTHEST
    }
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message of so many bytes, which follow.
    Message(u32),
    /// The same, but that it begins at the next multiple of [`ALIGNED`].
    Aligned(u32),
    /// Nothing: go on where the block begins.
    Skip,
    /// Go on in another block, where it begins.
    Jump(u32),
}

/// The 8 bytes in front of a message: its length, what it is, and the lowest bits
/// of its position, so that old bytes are not taken for new ones.
///
/// | bits | |
/// |---|---|
/// | 0 to 31 | length of a message, number of the block of a jump, else 0 |
/// | 32 to 39 | 1 a message, 2 skip, 3 jump, 4 a message that is aligned |
/// | 40 to 47 | 0; room for a class of priority |
/// | 48 to 63 | position / 8 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record;

impl Record {
    pub(crate) fn to_word(kind: Kind, position: u64) -> u64 {
        let (length, kind) = match kind {
            Kind::Message(length) => (length, 1),
            Kind::Skip => (0, 2),
            Kind::Jump(block) => (block, 3),
            Kind::Aligned(length) => (length, 4),
        };
        u64::from(length) | kind << 32 | (position >> 3) << 48
    }

    /// None if no such record can stand there.
    pub(crate) fn parse(word: u64, position: u64) -> Option<Kind> {
        if word >> 48 != (position >> 3) & 0xffff {
            return None;
        }
        let length = word as u32;
        match (word >> 32) as u16 {
            1 => Some(Kind::Message(length)),
            2 if length == 0 => Some(Kind::Skip),
            3 => Some(Kind::Jump(length)),
            4 => Some(Kind::Aligned(length)),
            _ => None,
        }
    }

    /// What a message takes that begins `gap` behind its record: both, and what fills it
    /// up to the next multiple of 8.
    #[inline]
    pub(crate) fn takes(gap: u64, length: u64) -> u64 {
        gap + length.next_multiple_of(8)
    }

    /// From a record at `position` to an aligned message.
    pub(crate) fn gap(position: u64) -> u64 {
        ALIGNED - position % ALIGNED
    }

    /// What a message takes at most, wherever its record is.
    #[inline]
    pub(crate) fn most(length: u64) -> u64 {
        match length < LONG {
            true => Record::takes(RECORD, length),
            false => Record::takes(ALIGNED, length),
        }
    }
}

/// Whose bytes are in a lane's mailbox: the position of the message, and its length
/// in the lowest 7 bits. A position is a multiple of 8, so it is shifted by 4, and
/// the two bits that are lost are those of what is beyond the first 2^60 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp;

impl Stamp {
    /// Nobody's: no short message has this length.
    pub(crate) const NONE: u64 = u64::MAX;
    const LENGTH: u64 = 127;

    pub(crate) fn to_word(length: u64, position: u64) -> u64 {
        position << 4 | length
    }

    /// The length of the message at `position`, if it is that one.
    #[inline]
    pub(crate) fn parse(word: u64, position: u64) -> Option<u64> {
        let length = word & Stamp::LENGTH;
        (word & !Stamp::LENGTH == position << 4 && length <= SHORT as u64).then_some(length)
    }
}

/// What a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum State {
    /// Nobody's: whoever gets its lock may take it.
    Free = 0,
    /// Somebody's.
    Taken = 1,
    /// Its sender has left it. What is in it is to be read yet.
    Left = 2,
    /// It is empty, and the reader is making it as good as new.
    Clearing = 3,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> Geometry {
        Geometry::new(64, 14, 12, 10).unwrap()
    }

    #[test]
    fn shapes_that_cannot_be_are_refused() {
        for (lanes, first, blocks) in [
            (0, 14, 12),
            (4097, 14, 12),
            (64, 11, 12),
            (64, 14, 0),
            (64, 14, 18),
            (64, u32::MAX, 1),
            (64, 14, u32::MAX),
        ] {
            assert_eq!(Geometry::new(lanes, first, blocks, 1), None);
        }
        for kept in [0, 13, u32::MAX] {
            assert_eq!(Geometry::new(64, 14, 12, kept), None);
        }
        for (lanes, first, blocks) in [(1, 12, 1), (4096, 14, 17), (1, 30, 1)] {
            let shape = Geometry::new(lanes, first, blocks, blocks).unwrap();
            assert!(shape.file_size() < 1 << 53);
        }
    }

    #[test]
    fn regions_do_not_overlap() {
        for lanes in [1, 7, 512, 513, 4096] {
            let shape = Geometry::new(lanes, 12, 3, 1).unwrap();
            assert!(shape.line(lanes - 1) + LINE <= shape.shared());
            assert!(shape.state(lanes - 1) + 4 <= shape.shared() + PLOT);
            assert!(shape.state(0) >= shape.shared() + GUESTS + LINE);
            for block in 1..shape.blocks() {
                let end = shape.start(block - 1) + shape.size(block - 1);
                assert_eq!(shape.start(block), end);
            }
            assert_eq!(shape.lane(lanes) % PLOT, 0);
        }
    }

    #[test]
    fn a_header_that_is_not_whole_is_refused() {
        let header = Header {
            geometry: usual(),
            nonce: 7,
        };
        let bytes = header.to_bytes();
        assert_eq!(Header::parse(&bytes), Ok(header));
        for at in 0..HEADER {
            let mut changed = bytes;
            changed[at] ^= 0x10;
            let is_nonce = (32..40).contains(&at);
            assert_eq!(Header::parse(&changed).is_ok(), is_nonce, "byte {at}");
        }
        let mut newer = bytes;
        newer[8] = 2;
        newer[16..].fill(0xff);
        assert_eq!(Header::parse(&newer), Err(NotOurs::Version(2)));
    }

    #[test]
    fn cursors_and_records_come_back() {
        for cursor in [
            Cursor {
                block: 0,
                position: 0,
            },
            Cursor {
                block: 30,
                position: FARTHEST - 8,
            },
        ] {
            assert_eq!(Cursor::of_word(cursor.to_word()), cursor);
        }
        assert!(!Cursor::of_word(REFUSED).is_valid(&usual()));
        for kind in [
            Kind::Message(0),
            Kind::Message(u32::MAX),
            Kind::Aligned(u32::MAX),
            Kind::Skip,
            Kind::Jump(3),
        ] {
            let word = Record::to_word(kind, 0x7_fff8);
            assert_eq!(Record::parse(word, 0x7_fff8), Some(kind));
            assert_eq!(Record::parse(word, 0x7_fff0), None);
            assert_eq!(Record::parse(word | 1 << 40, 0x7_fff8), None);
        }
        assert_eq!(Record::parse(0, 0), None);
    }

    /// The vectors in the reference.
    #[test]
    fn the_reference_says_the_same() {
        let text = include_str!("../../../../docs/reference/queue-format.md");
        let table = |name: &str| -> Vec<Vec<String>> {
            let (_, rest) = text
                .split_once(&format!("<!-- vectors: {name} -->"))
                .unwrap();
            let (table, _) = rest.split_once("<!-- end -->").unwrap();
            let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
            rows.map(|row| {
                let cells = row.trim_matches('|').split('|');
                cells
                    .map(|cell| cell.trim().trim_matches('`').replace(',', ""))
                    .collect()
            })
            .collect()
        };
        let number = |text: &String| -> u64 {
            match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
                None => text.parse().unwrap(),
            }
        };
        let shape = usual();
        let header = Header {
            geometry: shape,
            nonce: 0x0123_4567_89ab_cdef,
        };
        let hex: String = header
            .to_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let rows: Vec<String> = table("header").concat();
        assert_eq!(rows.concat().replace(' ', ""), hex);

        let offsets = table("offsets");
        let ours = [
            READER,
            LIVENESS,
            shape.line(0) + HEAD,
            shape.line(1) + HEAD,
            shape.line(1) + DONE,
            shape.shared() + BELL,
            shape.shared() + CLAIMS,
            shape.shared() + GUESTS,
            shape.state(0),
            shape.state(1),
            shape.lane(0) + TAIL,
            shape.lane(0) + STAMP,
            shape.lane(0) + MAIL,
            shape.lane(0) + SPACE,
            shape.lane(0) + PEER,
            shape.lane(0) + PLOT + shape.start(0),
            shape.lane(0) + PLOT + shape.start(1),
            shape.lane(0) + PLOT + shape.start(11),
            shape.lane(1) + TAIL,
            shape.file_size(),
        ];
        let theirs: Vec<u64> = offsets.iter().map(|row| number(&row[1])).collect();
        assert_eq!(theirs, ours);

        for row in table("cursors") {
            let cursor = Cursor {
                block: number(&row[0]) as u32,
                position: number(&row[1]),
            };
            assert_eq!(cursor.to_word(), number(&row[2]), "{row:?}");
        }
        for row in table("stamps") {
            let (length, position) = (number(&row[0]), number(&row[1]));
            let stamp = Stamp::to_word(length, position);
            assert_eq!(stamp, number(&row[2]), "{row:?}");
            assert_eq!(Stamp::parse(stamp, position), Some(length));
            assert_eq!(Stamp::parse(stamp, position + 8), None);
            assert_eq!(Stamp::parse(Stamp::NONE, position), None);
        }
        for row in table("aligned") {
            let [length, position, begins, next] = [0, 1, 2, 3].map(|at| number(&row[at]));
            assert_eq!(position + Record::gap(position), begins, "{row:?}");
            assert_eq!(begins + length.next_multiple_of(8), next, "{row:?}");
        }
        for row in table("records") {
            let argument = number(&row[1]) as u32;
            let kind = match row[0].as_str() {
                "message" => Kind::Message(argument),
                "aligned" => Kind::Aligned(argument),
                "skip" => Kind::Skip,
                _ => Kind::Jump(argument),
            };
            assert_eq!(
                Record::to_word(kind, number(&row[2])),
                number(&row[3]),
                "{row:?}"
            );
        }
    }
}
