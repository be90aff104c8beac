//! Hostile peers: what they can do with an invitation that they were given, and with
//! forged ones.

use procwright_os::fork::OnceBox;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use procwright_liveness::{Error, Invitation, Monitor, State, ThreadToken, Token};
use procwright_process::Process;
use test_support::sys::attacks::{self, FORBIDDEN, HARMLESS, page};
use test_support::{Census, sys};

/// A fork that keeps a token, and two invitations to it.
fn fork_holder(keep: fn(&UnixStream)) -> (i32, Invitation, Invitation) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| keep(&theirs));
    let invitation = Invitation::receive(&ours).unwrap();
    let other = invitation.try_clone().unwrap();
    (pid, invitation, other)
}

fn keep_token(to: &UnixStream) {
    let token = Token::new().unwrap();
    token.invite().unwrap().send(to).unwrap();
    std::mem::forget(token);
}

fn keep_thread_token(to: &UnixStream) {
    let token = ThreadToken::new().unwrap();
    token.invite().unwrap().send(to).unwrap();
    std::mem::forget(token);
}

const KINDS: [fn(&UnixStream); 2] = [keep_token, keep_thread_token];

alone! {
    fn whoever_has_the_cells_can_change_nothing() {
        for keep in KINDS {
            let (pid, ours, theirs) = fork_holder(keep);
            let monitor = Monitor::accept(ours).unwrap();
            let fd = theirs.files()[0].as_raw_fd();
            let before = content(&theirs);
            for (what, attack) in FORBIDDEN {
                assert!(attack(fd).is_err(), "{what} was allowed");
                assert_eq!(content(&theirs), before, "{what} did something");
                assert!(monitor.alive(), "{what}");
            }
            for (what, attack) in HARMLESS {
                if let Err(error) = attack(fd) {
                    panic!("{what}: {error}");
                }
                assert_eq!(content(&theirs), before, "{what} did something");
                assert!(monitor.alive(), "{what}");
            }
            // A watcher that comes after all that finds the true state.
            let late = Monitor::accept(theirs).unwrap();
            sys::kill(pid, libc::SIGKILL);
            assert_eq!(late.wait(Duration::MAX), Some(State::Died));
            assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
            sys::reap(pid);
        }
    }
}

fn content(invitation: &Invitation) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::from(invitation.files()[0].try_clone_to_owned().unwrap());
    let mut all = vec![0; page()];
    file.read_exact_at(&mut all, 0).unwrap();
    all
}

alone! {
    fn a_watcher_looks_on_while_others_try_everything() {
        for keep in KINDS {
            let (pid, ours, theirs) = fork_holder(keep);
            let monitor = Monitor::accept(ours).unwrap();
            let hostile = sys::fork_pausing_after(|| {
                let fd = theirs.files()[0].as_raw_fd();
                loop {
                    for (what, attack) in FORBIDDEN {
                        assert!(attack(fd).is_err(), "{what} was allowed");
                    }
                    for (_, attack) in HARMLESS {
                        let _ = attack(fd);
                    }
                }
            });
            for _ in 0..test_support::scaled(200, 20_000) {
                for _ in 0..1000 {
                    assert!(monitor.alive());
                }
                // A wake-up without a cause does not end the sleep.
                let time = Duration::from_millis(1);
                let (woken, took) = test_support::timed(|| monitor.wait(time));
                assert!(woken.is_none() && took >= time);
            }
            sys::kill(pid, libc::SIGKILL);
            assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
            sys::reap(pid);
            sys::kill(hostile, libc::SIGKILL);
            let status = sys::reap(hostile);
            assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL);
        }
    }
}

alone! {
    fn a_sleeper_who_wakes_nobody_hides_no_death() {
        for keep in KINDS {
            let (pid, ours, theirs) = fork_holder(keep);
            let monitor = Monitor::accept(ours).unwrap();
            let at = offset_of_word(&theirs);
            // The first sleeper in the queue: the kernel wakes it alone.
            let sleeper = sys::fork_pausing_after(|| sys::sleep_on_a_word(theirs.files()[0], at));
            test_support::eventually(|| sys::sleeps_on_a_word(sleeper));
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| monitor.wait(Duration::from_secs(1)));
                sys::kill(pid, libc::SIGKILL);
                // A look tells the state, whoever sleeps.
                test_support::eventually(|| !monitor.alive());
                assert_eq!(monitor.state(), State::Died);
                // The waiter knows too, at the latest when its time is over.
                assert_eq!(waiter.join().unwrap(), Some(State::Died));
            });
            sys::reap(pid);
            sys::end(sleeper);
            sys::reap(sleeper);
        }
    }
}

/// The offset of an invitation's word, from its ticket: in the cell, or for a thread's
/// token behind the cells.
fn offset_of_word(invitation: &Invitation) -> usize {
    let cell = usize::from_str_radix(&invitation.ticket()[..8], 16).unwrap();
    match cell.checked_sub(page() / 64) {
        None => 64 * cell,
        Some(word) => 4 * word,
    }
}

/// The numbers of a file of cells.
type CellNumbers = Vec<u32>;

/// The numbers and the ticket of a genuine token, the first of this process.
fn genuine_cells() -> (CellNumbers, String) {
    static ONE: OnceBox<(CellNumbers, String)> = OnceBox::new();
    let read = || {
        let token = Token::new().unwrap();
        let invitation = token.invite().unwrap();
        std::mem::forget(token);
        let numbers = content(&invitation)
            .chunks(4)
            .map(|four| u32::from_ne_bytes(four.try_into().unwrap()))
            .collect();
        assert!(invitation.ticket().starts_with("00000000"));
        (numbers, invitation.ticket())
    };
    ONE.get_or_init(read).clone()
}

const SIZE_SEALED: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
const SEALED: i32 = SIZE_SEALED | libc::F_SEAL_FUTURE_WRITE;

/// The monitor of a forged file, or the error that refuses it.
fn accept_cells(cells: OwnedFd, ticket: &str) -> Result<Monitor, Error> {
    let rights = attacks::forged(&[], page(), 0, SIZE_SEALED);
    let invitation = Invitation::from_parts([cells, rights], ticket)?;
    // An invitation that came over a socket is judged alike.
    let (ours, theirs) = UnixStream::pair().unwrap();
    invitation.send(&ours).unwrap();
    let of_received = Monitor::accept(Invitation::receive(&theirs).unwrap());
    let of_this = Monitor::accept(invitation);
    assert_eq!(of_received.is_ok(), of_this.is_ok());
    of_this
}

#[track_caller]
fn assert_refused(result: Result<Monitor, Error>, why: &str) {
    match result {
        Ok(monitor) => panic!("it was accepted: {monitor:?}"),
        Err(error) => assert!(error.to_string().contains(why), "{error}"),
    }
}

alone! {
    fn files_that_are_no_cells_are_refused() {
        let (numbers, ticket) = genuine_cells();
        let sealed = |content: &[u32], bytes, flags, seals| {
            accept_cells(attacks::forged(content, bytes, flags, seals), &ticket)
        };
        // One acceptance first, so that everything started at first use is there.
        assert!(sealed(&numbers, page(), 0, SEALED).is_ok());
        let before = Census::now();

        let no_memory = "no file in memory";
        assert_refused(accept_cells(tempfile::tempfile().unwrap().into(), &ticket), no_memory);
        let (read, write) = std::io::pipe().unwrap();
        assert_refused(accept_cells(read.into(), &ticket), no_memory);
        assert_refused(accept_cells(write.into(), &ticket), no_memory);
        let (one, _) = UnixStream::pair().unwrap();
        assert_refused(accept_cells(one.into(), &ticket), no_memory);
        let directory = std::fs::File::open("/").unwrap();
        assert_refused(accept_cells(directory.into(), &ticket), no_memory);
        let zero = std::fs::File::open("/dev/zero").unwrap();
        assert_refused(accept_cells(zero.into(), &ticket), no_memory);

        for seals in [
            0,
            libc::F_SEAL_FUTURE_WRITE,
            SEALED & !libc::F_SEAL_SHRINK,
            SEALED & !libc::F_SEAL_GROW,
            SEALED & !libc::F_SEAL_SEAL,
        ] {
            assert_refused(sealed(&numbers, page(), 0, seals), "its size is not sealed");
        }
        assert_refused(sealed(&numbers, page(), 0, SIZE_SEALED), "not sealed against writing");
        for size in [0, 64, page() - 1, page() + 1, 2 * page(), 1 << 40] {
            let fitting = &numbers[..numbers.len().min(size / 4)];
            assert_refused(sealed(fitting, size, 0, SEALED), "another size");
        }
        match attacks::has_huge_files() {
            true => assert_refused(sealed(&[], 2 << 20, libc::MFD_HUGETLB, SEALED), "another size"),
            false => test_support::skip("a file of huge pages", "this kernel has none"),
        }
        before.unchanged();
    }
}

alone! {
    fn files_that_are_no_rights_are_refused() {
        let token = Token::new().unwrap();
        let invitation = token.invite().unwrap();
        let with = |rights: OwnedFd| {
            let [cells, _] = <[_; 2]>::from(invitation.try_clone().unwrap());
            let invitation = Invitation::from_parts([cells, rights], &invitation.ticket());
            Monitor::accept(invitation.unwrap())
        };
        let sealed = |bytes, seals| with(attacks::forged(&[], bytes, 0, seals));
        assert!(sealed(page(), SIZE_SEALED).is_ok());
        let before = Census::now();
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_refused(with(null.into()), "the second is no file in memory");
        for missing in [libc::F_SEAL_SHRINK, libc::F_SEAL_GROW, libc::F_SEAL_SEAL] {
            let cut_short = sealed(page(), SIZE_SEALED & !missing);
            assert_refused(cut_short, "the size of the second file is not sealed");
        }
        for more in [libc::F_SEAL_WRITE, libc::F_SEAL_FUTURE_WRITE] {
            assert_refused(sealed(page(), SIZE_SEALED | more), "sealed against writing");
        }
        for size in [0, page() - 1, 2 * page()] {
            assert_refused(sealed(size, SIZE_SEALED), "the second file has another size");
        }
        let rights = attacks::forged(&[], page(), 0, SIZE_SEALED);
        let path = format!("/proc/self/fd/{}", rights.as_raw_fd());
        let to_read = std::fs::File::open(path).unwrap();
        drop(rights);
        assert_refused(with(to_read.into()), "cannot be written to");
        before.unchanged();
    }
}

alone! {
    fn a_size_that_is_sealed_later_is_no_way_around() {
        let (numbers, ticket) = genuine_cells();
        // Mapped for writing, then sealed against new mappings: a genuine holder does
        // this, so the file is accepted, and its content is the holder's claim.
        let cells = attacks::forged(&numbers, page(), 0, 0);
        assert_refused(accept_cells(cells.try_clone().unwrap(), &ticket), "its size is not sealed");
        attacks::add_seals(&cells, SEALED).unwrap();
        let monitor = accept_cells(cells.try_clone().unwrap(), &ticket).unwrap();
        assert!(monitor.alive());
        for (what, attack) in FORBIDDEN {
            assert!(attack(cells.as_raw_fd()).is_err(), "{what} was allowed");
        }
        assert!(monitor.alive());
    }
}

/// A file of cells like a genuine one, with its numbers changed by `change`.
fn accept_changed(change: impl FnOnce(&mut CellNumbers)) -> Result<Monitor, Error> {
    let (mut numbers, ticket) = genuine_cells();
    change(&mut numbers);
    accept_cells(attacks::forged(&numbers, page(), 0, SEALED), &ticket)
}

alone! {
    fn what_stands_beside_a_word_is_not_believed() {
        assert!(accept_changed(|_| ()).unwrap().alive());
        let before = Census::now();
        assert_refused(accept_changed(|numbers| numbers[1] += 1), "no token in that place");
        assert_refused(accept_changed(|numbers| numbers.fill(0)), "no token in that place");
        assert_refused(accept_changed(|numbers| numbers.fill(u32::MAX)), "no token in that place");
        assert_refused(accept_changed(|numbers| numbers[13] = 1), "another kind");
        assert_refused(accept_changed(|numbers| numbers[13] = 77), "no token in that place");
        let stale = |result| match result {
            Err(Error::Stale(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            stale(accept_changed(|numbers| numbers[4] ^= 1)),
            "its place is that of another token"
        );
        for half in 9..13 {
            assert_eq!(
                stale(accept_changed(|numbers| numbers[half] ^= 1 << 31)),
                "it was made before the machine was started"
            );
        }
        // Words without a holder, and words that only a forger writes.
        for (word, state) in [
            (0, State::Released),
            (0x4000_0000, State::Died),
            (0xc000_0000, State::Died),
            (u32::MAX, State::Died),
            (1, State::Alive),
        ] {
            let monitor = accept_changed(|numbers| numbers[0] = word).unwrap();
            assert_eq!(monitor.state(), state, "{word:x}");
        }
        before.unchanged();
    }
}

alone! {
    fn who_is_named_falsely_is_taken_for_nobody() {
        let innocent = sys::fork_pausing();
        let process = Process::open(innocent).unwrap();
        let inode = process.id().inode();
        // The innocent process's number without its inode.
        let monitor = accept_changed(|numbers| numbers[2] = innocent as u32).unwrap();
        assert!(monitor.alive() && monitor.process().is_none());
        assert_eq!(monitor.wait_gone(Duration::ZERO), None);
        for pid in [0, 1, -1, i32::MAX, i32::MIN] {
            let monitor = accept_changed(|numbers| numbers[2] = pid as u32).unwrap();
            assert!(monitor.process().is_none(), "{pid}");
        }
        // A forger that knows both can name any process: what a token says of its
        // holder is the holder's word.
        if let Some(inode) = inode {
            let named = |numbers: &mut CellNumbers| {
                numbers[2] = innocent as u32;
                numbers[5] = inode as u32;
                numbers[6] = (inode >> 32) as u32;
            };
            let monitor = accept_changed(named).unwrap();
            assert_eq!(monitor.process().unwrap().pid(), innocent);
            assert_eq!(monitor.wait_gone(Duration::ZERO), Some(false));
        }
        sys::kill(innocent, libc::SIGKILL);
        sys::reap(innocent);
    }
}

alone! {
    fn a_word_that_outlives_its_holder_keeps_nobody_waiting() {
        let holder = sys::fork_pausing();
        let Some(inode) = Process::open(holder).unwrap().id().inode() else {
            return;
        };
        // A holder that took care not to have its word marked.
        let named = |numbers: &mut CellNumbers| {
            numbers[2] = holder as u32;
            numbers[5] = inode as u32;
            numbers[6] = (inode >> 32) as u32;
        };
        let monitor = accept_changed(named).unwrap();
        let ready = accept_changed(named).unwrap();
        assert!(!sys::readable(ready.readiness_fd().unwrap()));
        assert_eq!(monitor.wait(Duration::from_millis(10)), None);
        std::thread::scope(|scope| {
            let waits = [(); 2].map(|()| scope.spawn(|| monitor.wait(Duration::MAX)));
            sys::kill(holder, libc::SIGKILL);
            for one in waits {
                assert_eq!(one.join().unwrap(), Some(State::Died));
            }
        });
        sys::wait_for_end(ready.readiness_fd().unwrap());
        assert_eq!(ready.confirm(), State::Died);
        sys::reap(holder);
        assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
    }
}

alone! {
    fn tickets_that_are_none() {
        let (numbers, ticket) = genuine_cells();
        let with = |ticket: &str| {
            accept_cells(attacks::forged(&numbers, page(), 0, SEALED), ticket)
        };
        assert!(with(&ticket).is_ok());
        let before = Census::now();
        let nonce = &ticket[8..];
        let cells = page() / 64;
        // A cell that was never used, one beyond the last, words inside of the first
        // cell, one behind the end.
        for cell in [1, cells - 1, cells, cells + 1, cells + 15, cells + page() / 4] {
            assert_refused(with(&format!("{cell:08x}{nonce}")), "no token in that place");
        }
        // A thread's word in a file that has none.
        assert_refused(with(&format!("{:08x}{nonce}", cells + 1018)), "another kind");
        for cell in [i32::MAX as u32, u32::MAX - 15, u32::MAX] {
            assert_refused(with(&format!("{cell:08x}{nonce}")), "no token in that place");
        }
        for text in [
            "",
            "0",
            nonce,
            &format!("{ticket}0"),
            &format!("+{}", &ticket[1..]),
            &format!(" {}", &ticket[1..]),
            &format!("{}\0", &ticket[1..]),
            &format!("{}é", &ticket[2..]),
            &"g".repeat(24),
        ] {
            assert_refused(with(text), "is no ticket of 24 digits");
        }
        assert_refused(
            with(&format!("{}{:016x}", &ticket[..8], 7)),
            "its place is that of another token",
        );
        before.unchanged();
    }
}

alone! {
    fn a_thread_is_not_named_in_the_place_of_another() {
        let code = sys::fork_running(|| {
            let token = ThreadToken::new().unwrap();
            let invitation = token.invite().unwrap();
            let ticket = invitation.ticket();
            let with = |cell: usize| {
                let files = invitation.try_clone().unwrap().into();
                let ticket = format!("{cell:08x}{}", &ticket[8..]);
                Monitor::accept(Invitation::from_parts(files, &ticket).unwrap())
            };
            let cell = usize::from_str_radix(&ticket[..8], 16).unwrap();
            assert!(with(cell).unwrap().alive());
            // The facts are the first cell's, and no token has that cell's own word.
            assert_refused(with(0), "another kind");
            assert_refused(with(1), "no token in that place");
            // Another number of this file: a word without a holder, or no word at all.
            // The file is the holder's, so it is the holder's word.
            assert_eq!(with(cell - 8).unwrap().state(), State::Released);
            0
        });
        assert_eq!(code, 0);
    }
}

/// The result of `receive` for a message.
fn receive_message(
    bytes: &[u8],
    files: &[std::os::fd::BorrowedFd<'_>],
) -> Result<Invitation, Error> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    sys::send_with_files(ours.as_fd(), bytes, files);
    drop(ours);
    Invitation::receive(&theirs)
}

alone! {
    fn messages_that_are_no_invitations_leave_nothing_open() {
        let token = Token::new().unwrap();
        let invitation = token.invite().unwrap();
        let [cells, rights] = invitation.files();
        let message = message_of(&invitation);
        assert!(receive_message(&message, &[cells, rights]).is_ok());
        let before = Census::now();
        let many = vec![cells; 200];
        let wrong: [(&[u8], &[_]); 12] = [
            (&message, &[]),
            (&message, &[cells]),
            (&message, &[cells, rights, cells]),
            (&message, &[cells, rights, cells, rights]),
            (&message, &many),
            (&message[..1], &[cells, rights]),
            (&message[..15], &[cells, rights]),
            (&message[..15], &many),
            (b"GET / HTTP/1.1\r\n", &[cells, rights]),
            (b"pwl1............", &[cells]),
            (b"pwl9............", &[cells, rights]),
            (&[0; 16], &many),
        ];
        for (bytes, files) in wrong {
            let error = receive_message(bytes, files).unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{error}");
            before.unchanged();
        }
        let error = receive_message(&[], &[]).unwrap_err();
        assert!(error.to_string().contains("has closed the socket"), "{error}");
        before.unchanged();
    }
}

alone! {
    fn over_no_other_kind_of_socket() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = std::net::TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let (mut theirs, _) = server.accept().unwrap();
        let token = Token::new().unwrap();
        // The kernel would deliver the bytes and drop the descriptors.
        let error = token.invite().unwrap().send(&ours).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
        ours.write_all(b"not for us").unwrap();
        let error = Invitation::receive(&theirs).unwrap_err();
        assert!(error.to_string().contains("Unix socket"), "{error}");
        let mut whole = [0; 10];
        theirs.read_exact(&mut whole).unwrap();
        assert_eq!(&whole, b"not for us");
    }
}

fn message_of(invitation: &Invitation) -> Vec<u8> {
    use std::io::Read;
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    invitation.send(&ours).unwrap();
    drop(ours);
    let mut bytes = Vec::new();
    theirs.read_to_end(&mut bytes).unwrap();
    bytes
}

alone! {
    fn a_message_that_is_longer_is_another() {
        let token = Token::new().unwrap();
        let invitation = token.invite().unwrap();
        let mut message = message_of(&invitation);
        let (ours, theirs) = attacks::message_pair();
        sys::send_with_files(ours.as_fd(), &message, &invitation.files());
        assert!(Invitation::receive(&theirs).is_ok());
        message.push(0);
        sys::send_with_files(ours.as_fd(), &message, &invitation.files());
        let before = Census::now();
        let error = Invitation::receive(&theirs).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        before.unchanged();
    }
}

alone! {
    fn a_socket_that_says_who_sends_brings_invitations_too() {
        let token = Token::new().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        attacks::ask_who_sends(&theirs);
        token.invite().unwrap().send(&ours).unwrap();
        let monitor = Monitor::accept(Invitation::receive(&theirs).unwrap()).unwrap();
        assert!(monitor.alive());
    }
}

alone! {
    fn without_a_descriptor_left_it_is_said_so_and_can_be_tried_again() {
        let token = Token::new().unwrap();
        let invitation = token.invite().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        invitation.send(&ours).unwrap();
        let limit = sys::nofile();
        for left in [0, 1] {
            invitation.send(&ours).unwrap();
            let full = take_all_but(left);
            let error = Invitation::receive(&theirs).unwrap_err();
            drop(full);
            sys::set_nofile(limit);
            assert!(error.to_string().contains("no descriptor is left"), "{error}");
        }
        (&ours).flush().unwrap();
        let monitor = Monitor::accept(Invitation::receive(&theirs).unwrap()).unwrap();
        assert!(monitor.alive());
    }
}

/// Takes all descriptors but `left`.
fn take_all_but(left: usize) -> Vec<std::fs::File> {
    sys::set_nofile(64);
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    taken.truncate(taken.len() - left);
    taken
}
