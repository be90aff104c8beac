use super::super::syscalls::parse_syscall;
use super::super::{Call, Comm};
use super::*;

const TAIL: &[u8] = b" S 7 8 9 34816 8 4194304 1 2 3 4 5 6 7 8 20 0 3 0 4711 1 2 3\n";

fn stat_of(name: &[u8]) -> ProcStat {
    let text = [b"42 (", name, b")", TAIL].concat();
    parse_stat(&text).unwrap()
}

#[test]
fn names_hold_anything() {
    for name in [
        &b"sh"[..],
        b"",
        b" ",
        b")",
        b"(",
        b") R 1 (",
        b"a\nb",
        b"\xff\xfe)",
        b"a b) S 1 2",
    ] {
        let stat = stat_of(name);
        assert_eq!(stat.name.as_bytes(), name);
        assert_eq!((stat.pid, stat.state, stat.ppid), (42, 'S', 7));
        assert_eq!((stat.pgrp, stat.session), (8, 9));
        assert_eq!((stat.threads, stat.start_ticks), (3, 4711));
        assert!(!stat.kernel_thread);
    }
    assert_eq!(stat_of(b"a\n\x1b[m").name.to_string(), "a\\n\\u{1b}[m");
    assert_eq!(stat_of(&[b'x'; 60]).name.as_bytes().len(), Comm::MAX);
}

#[test]
fn cut_or_odd_text_is_no_process() {
    let text = [&b"42 (sh)"[..], TAIL].concat();
    for len in 0..text.len() - 8 {
        // Any prefix is refused or, once past the start time, whole.
        if let Some(stat) = parse_stat(&text[..len]) {
            assert!(len >= text.len() - 11, "{len}");
            assert!(
                4711u64
                    .to_string()
                    .starts_with(&stat.start_ticks.to_string())
            );
        }
    }
    assert_eq!(parse_stat(b") 1 ("), None);
    assert_eq!(parse_stat(b"x (a) S 1 2 3"), None);
}

#[test]
fn calls() {
    let nr = libc::SYS_write;
    let text = format!("{nr} 0xffffffff00000001 0x7f 0x10 0x0 0x0 0x0 0x7ffc 0x7f0d\n");
    assert_eq!(parse_syscall(text.as_bytes()), Call::Write(1));
    let text = format!("{} 0x3 0x0\n", libc::SYS_read);
    assert_eq!(parse_syscall(text.as_bytes()), Call::Read(3));
    assert_eq!(parse_syscall(b"running\n"), Call::Running);
    assert_eq!(parse_syscall(b"-1 0x7ffc 0x7f0d\n"), Call::Other(-1));
    assert_eq!(parse_syscall(b""), Call::Unknown);
}

#[test]
fn pipes_by_link() {
    assert_eq!(pipe_inode(b"pipe:[27438]"), Some(27438));
    for link in [&b"pipe:[]"[..], b"pipe:[1", b"socket:[1]", b"/tmp/pipe:[1]"] {
        assert_eq!(pipe_inode(link), None);
    }
}

#[test]
fn ourselves() {
    let pid = std::process::id() as i32;
    let me = stat(pid).unwrap();
    assert_eq!(me.pid, pid);
    assert_eq!(me.ppid, std::os::unix::process::parent_id() as i32);
    assert!(!me.is_gone() && !me.kernel_thread && me.threads >= 1);
    assert!(me.start_ticks <= now_ticks());
    let mut all = Vec::new();
    each_pid(&mut |pid, _| {
        all.push(pid);
        Ok(Scan::Next)
    })
    .unwrap();
    assert!(all.contains(&pid));
    all.clear();
    each_pid(&mut |pid, _| {
        all.push(pid);
        Ok(Scan::Stop)
    })
    .unwrap();
    assert_eq!(all, [1]);
    // A thousand numbers ahead of 1 are not 1.
    all.clear();
    each_pid(&mut |pid, _| {
        all.push(pid);
        Ok(Scan::Skip)
    })
    .unwrap();
    assert!(all.windows(2).all(|w| w[1] - w[0] > 1000), "{all:?}");
    assert_eq!(stat(i32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(!threads_stopped(pid).unwrap());
}

#[test]
fn our_own_pipe_with_its_modes() {
    let (reader, writer) = std::io::pipe().unwrap();
    use std::os::fd::AsRawFd as _;
    let of = Conduit::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
    let mut found = Vec::new();
    each_pipe(std::process::id() as i32, &[of], &mut |fd| found.push(fd)).unwrap();
    found.sort_by_key(|fd| fd.write);
    let end = |fd: i32, write: bool| PipeFd {
        fd,
        of,
        read: !write,
        write,
    };
    assert_eq!(
        found,
        [
            end(reader.as_raw_fd(), false),
            end(writer.as_raw_fd(), true)
        ]
    );
}
