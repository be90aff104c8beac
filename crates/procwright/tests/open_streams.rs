//! Streams over the caller's descriptors.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use test_support::alone;

use common::Census;
use procwright::Overflow;
use procwright::stream::{Closed, Reader};

/// The bare pipe, and a stream that is read ahead.
const BOTH: [Option<Overflow>; 2] = [None, Some(Overflow::Block { memory: 1 << 20 })];

fn open(fd: impl Into<OwnedFd>, overflow: Option<Overflow>) -> Reader {
    match overflow {
        None => Reader::from_fd(fd.into()).unwrap(),
        Some(overflow) => Reader::from_fd_with(fd.into(), overflow).unwrap(),
    }
}

alone! {
    fn what_is_written_comes_through_pipes_and_sockets() {
        let before = Census::now();
        for overflow in BOTH {
            let data: Vec<u8> = (0..3 << 20).map(|i| (i % 251) as u8).collect();
            let (pipe, pipe_end) = std::io::pipe().unwrap();
            let (socket, socket_end) = UnixStream::pair().unwrap();
            let ends: [Box<dyn Write + Send>; 2] = [Box::new(pipe_end), Box::new(socket_end)];
            for (mut reader, mut end) in [open(pipe, overflow), open(socket, overflow)].into_iter().zip(ends) {
                let sent = data.clone();
                let writer = std::thread::spawn(move || end.write_all(&sent).unwrap());
                let mut read = Vec::new();
                reader.read_to_end(&mut read).unwrap();
                writer.join().unwrap();
                assert!(read == data);
            }
        }
        before.comes_back();
    }
}

alone! {
    fn a_close_frees_the_reader_and_tells_the_writer() {
        for overflow in BOTH {
            let (theirs, mut ours) = std::io::pipe().unwrap();
            let reader = open(theirs, overflow);
            let mut blocked = reader.clone();
            let blocked = std::thread::spawn(move || blocked.read(&mut [0]).unwrap_err());
            assert!(reader.close());
            assert!(Closed::is(&blocked.join().unwrap()));
            // The pump closes its end a moment later: a full pipe wakes the write.
            let error = std::iter::repeat_with(|| ours.write(&[0; 4096])).find_map(Result::err);
            assert_eq!(error.unwrap().kind(), ErrorKind::BrokenPipe);
        }
    }
}

alone! {
    fn what_cannot_be_watched_is_told() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let error = open(file, Some(Overflow::default())).read(&mut [0; 8]).unwrap_err();
        assert!(!Closed::is(&error), "{error}");
    }
}
