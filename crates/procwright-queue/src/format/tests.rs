use super::layout::{LINE, MAILBOX, STAMP};
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
        assert!(shape.claim_state(lanes - 1) + 4 <= shape.shared() + SECTION);
        assert!(shape.claim_state(0) >= shape.shared() + FREED + LINE);
        for block in 1..shape.blocks() {
            let end = shape.start(block - 1) + shape.size(block - 1);
            assert_eq!(shape.start(block), end);
        }
        assert_eq!(shape.lane_page(lanes) % SECTION, 0);
    }
}

#[test]
fn a_header_that_is_not_whole_is_refused() {
    let header = QueueHeader {
        geometry: usual(),
        nonce: 7,
    };
    let bytes = header.to_bytes();
    assert_eq!(QueueHeader::parse(&bytes), Ok(header));
    for at in 0..HEADER_SIZE {
        let mut changed = bytes;
        changed[at] ^= 0x10;
        let is_nonce = (32..40).contains(&at);
        assert_eq!(QueueHeader::parse(&changed).is_ok(), is_nonce, "byte {at}");
    }
    let mut newer = bytes;
    newer[8] = 2;
    newer[16..].fill(0xff);
    assert_eq!(QueueHeader::parse(&newer), Err(HeaderError::Version(2)));
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
            position: POSITION_END - 8,
        },
    ] {
        assert_eq!(Cursor::from_word(cursor.to_word()), cursor);
    }
    assert!(!Cursor::from_word(REFUSED).is_valid(&usual()));
    for kind in [
        RecordKind::Message(0),
        RecordKind::Message(u32::MAX),
        RecordKind::Aligned(u32::MAX),
        RecordKind::Spaced(u32::MAX),
        RecordKind::Skip,
        RecordKind::Jump(3),
    ] {
        let word = Record::to_word(kind, 0x7_fff8);
        assert_eq!(Record::parse(word, 0x7_fff8), Some(kind));
        assert_eq!(Record::parse(word, 0x7_fff0), None);
        assert_eq!(Record::parse(word | 1 << 40, 0x7_fff8), None);
    }
    assert_eq!(Record::parse(0, 0), None);
}

/// The tables in the reference.
#[test]
fn the_reference_says_the_same() {
    let Some(text) = reference::text("the_reference_says_the_same") else {
        return;
    };
    let table = |name: &str| -> Vec<Vec<String>> {
        let lines = reference::table(&text, name).lines();
        let rows = lines.filter(|line| line.starts_with('|')).skip(2);
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
    let header = QueueHeader {
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
        RECEIVER_PAGE,
        LIVENESS,
        shape.line(0) + HEAD,
        shape.line(1) + HEAD,
        shape.line(1) + DONE,
        shape.shared() + SLEEP,
        shape.shared() + CLAIMS,
        shape.shared() + GUESTS,
        shape.shared() + FREED,
        shape.claim_state(0),
        shape.claim_state(1),
        shape.lane_page(0) + TAIL,
        shape.lane_page(0) + STAMP,
        shape.lane_page(0) + MAILBOX,
        shape.lane_page(0) + SPACE,
        shape.lane_page(0) + PEER,
        shape.lane_page(0) + SECTION + shape.start(0),
        shape.lane_page(0) + SECTION + shape.start(1),
        shape.lane_page(0) + SECTION + shape.start(11),
        shape.lane_page(1) + TAIL,
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
            "message" => RecordKind::Message(argument),
            "aligned" => RecordKind::Aligned(argument),
            "spaced" => RecordKind::Spaced(argument),
            "skip" => RecordKind::Skip,
            _ => RecordKind::Jump(argument),
        };
        assert_eq!(
            Record::to_word(kind, number(&row[2])),
            number(&row[3]),
            "{row:?}"
        );
    }
}
