//! The thread that reads all streams loses the epoll instance that it sleeps on.

mod common;

use std::io::{PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use test_support::alone;

use common::sys;
use procwright::Overflow;
use procwright::stream::Reader;

/// The only epoll instance of this process.
fn epoll() -> RawFd {
    let fds = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut found = fds.filter_map(|fd| {
        let fd = fd.unwrap();
        let target = std::fs::read_link(fd.path()).ok()?;
        let number = fd.file_name().to_str()?.parse().ok()?;
        (target.to_str()? == "anon_inode:[eventpoll]").then_some(number)
    });
    let epoll = found.next().expect("an epoll instance");
    assert_eq!(found.next(), None, "there are two");
    epoll
}

fn stream() -> (Reader, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let overflow = Overflow::Block { memory: 1 << 20 };
    (
        Reader::from_fd_with(reader.into(), overflow).unwrap(),
        writer,
    )
}

alone! {
    fn all_readers_are_told_and_the_next_stream_has_another() {
        let _watchdog = common::watchdog("lost_pump");
        let streams = [stream(), stream()];
        for (reader, writer) in &streams {
            let (mut reader, mut writer) = (reader, writer);
            writer.write_all(b"before").unwrap();
            reader.read_exact(&mut [0; 6]).unwrap();
        }
        let lost = epoll();
        let null = std::fs::File::open("/dev/null").unwrap();
        sys::replace(null.as_raw_fd(), lost);
        // A pump that sleeps does so in the old epoll instance, and finds out when it
        // wakes up.
        let mut to_one = &streams[0].1;
        let _ = to_one.write_all(b"behind");
        for (reader, writer) in &streams {
            let (mut reader, mut writer) = (reader, writer);
            let mut data = Vec::new();
            let error = reader.read_to_end(&mut data).unwrap_err();
            assert!(b"behind".starts_with(&data[..]), "{data:?}");
            assert!(error.to_string().contains("os error"), "{error}");
            // A writer gets an error too.
            common::eventually(|| writer.write(b"x").is_err());
        }
        let (mut reader, mut writer) = stream();
        writer.write_all(b"hello").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }
}
