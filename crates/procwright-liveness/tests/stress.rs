//! Tokens made, given back, forked, replaced by exec and killed, all at once, while
//! threads and processes watch. The threads that give the orders know what must be
//! seen, and every answer is compared with that.

use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use test_support::alone;

use procwright_liveness::{Invitation, Monitor, State, ThreadToken, Token};
use procwright_process::Process;
use test_support::{Dice, sys};

/// Number of threads that give orders, each to one peer after the other.
const COMMANDERS: u64 = 3;
/// Number of threads that look, all the time.
const LOOKERS: u64 = 2;

/// An order to a peer; in a message, the number of a token follows.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Order {
    Make,
    /// Makes a token on a thread that ends.
    MakeOnAnother,
    MakeOfThread,
    Drop,
    /// Forks a child that drops the tokens, makes some of its own, and ends.
    Fork,
    /// Forks a child that outlives the peer.
    ForkOn,
    Exec,
    ExecOnAnother,
    Exit,
    Abort,
}

use Order::{
    Abort, Drop, Exec, ExecOnAnother, Exit, Fork, ForkOn, Make, MakeOfThread, MakeOnAnother,
};

const ORDERS: [Order; 10] = [
    Make,
    MakeOnAnother,
    MakeOfThread,
    Drop,
    Fork,
    ForkOn,
    Exec,
    ExecOnAnother,
    Exit,
    Abort,
];

/// Number of orders that a peer survives: the first ones.
const HARMLESS: usize = 6;

#[expect(dead_code, reason = "held for what they say")]
enum AnyToken {
    Of(Token),
    OfThread(ThreadToken),
}

/// Runs in the peer: obeys, while threads of the peer make and drop tokens and fork.
fn obey(mut socket: UnixStream) {
    for _ in 0..2 {
        std::thread::spawn(|| {
            let mut kept = Vec::new();
            for i in 0_usize.. {
                kept.push(Token::new().unwrap());
                // Tokens are dropped in the middle of the list, at its ends, and all at
                // once.
                match i % 32 {
                    31 => kept.clear(),
                    _ if kept.len() > 4 => drop(kept.swap_remove(i % 5)),
                    _ => {}
                }
            }
        });
    }
    std::thread::spawn(|| {
        loop {
            sys::reap(sys::fork_that(|| ()));
        }
    });
    let mut tokens: Vec<Option<AnyToken>> = Vec::new();
    loop {
        let mut order = [0; 2];
        socket.read_exact(&mut order).unwrap();
        let mut made = |invitation: Invitation, token| {
            tokens.push(Some(token));
            invitation.send(&socket).unwrap();
        };
        match ORDERS[usize::from(order[0])] {
            Make => {
                let token = Token::new().unwrap();
                made(token.invite().unwrap(), AnyToken::Of(token));
                continue;
            }
            MakeOnAnother => {
                let token = std::thread::spawn(Token::new).join().unwrap().unwrap();
                made(token.invite().unwrap(), AnyToken::Of(token));
                continue;
            }
            MakeOfThread => {
                let token = ThreadToken::new().unwrap();
                made(token.invite().unwrap(), AnyToken::OfThread(token));
                continue;
            }
            Drop => tokens[usize::from(order[1])] = None,
            Fork => {
                let status = sys::reap(sys::fork_that(|| {
                    tokens.clear();
                    let own = Token::new().unwrap();
                    let own_of_thread = ThreadToken::new().unwrap();
                    let monitors = [own.invite().unwrap(), own_of_thread.invite().unwrap()]
                        .map(|invitation| Monitor::accept(invitation).unwrap());
                    assert!(monitors.iter().all(Monitor::alive));
                    drop((own, own_of_thread));
                    assert!(monitors.iter().all(|one| one.state() == State::Released));
                }));
                assert_eq!(status, 0);
            }
            ForkOn => {
                let parent = std::process::id().cast_signed();
                sys::fork_that_outlives(parent, || tokens.clear());
            }
            Exec => exec(),
            ExecOnAnother => drop(std::thread::spawn(exec).join()),
            Exit => sys::exit_now(),
            Abort => sys::abort_without_a_core(),
        }
        socket.write_all(b"d").unwrap();
    }
}

fn exec() {
    let program = test_children::path();
    let words = [program.as_os_str().as_bytes(), b"sleep-forever"];
    sys::exec(&words.map(|word| std::ffi::CString::new(word).unwrap()));
}

/// A monitor of a peer's token, and what is known of the token.
struct WatchedToken {
    monitor: Monitor,
    /// Whether something was begun that may end the token.
    may_end: AtomicBool,
    /// How the token has ended, once that is certain.
    over: Mutex<Option<State>>,
}

impl WatchedToken {
    /// Compares what the monitor says with what is known.
    fn look(&self) {
        let over = *self.over.lock().unwrap();
        let alive = self.monitor.alive();
        let state = self.monitor.state();
        let may_end = self.may_end.load(Ordering::SeqCst);
        match over {
            Some(how) => {
                assert!(!alive, "alive though {how:?}");
                assert_eq!(state, how);
            }
            None => {
                assert!(alive || may_end, "not alive, for no reason");
                assert!(state == State::Alive || may_end, "{state:?}, for no reason");
            }
        }
    }

    /// Waits for the token's end, and notes it.
    fn wait_for_end(&self, as_one_of: &[State]) {
        let how = self.monitor.wait(Duration::MAX).unwrap();
        assert!(as_one_of.contains(&how), "{how:?} is none of {as_one_of:?}");
        assert_eq!(self.monitor.state(), how);
        *self.over.lock().unwrap() = Some(how);
    }
}

#[derive(Default)]
struct SharedStage {
    seen: Mutex<Vec<Arc<WatchedToken>>>,
    peers: AtomicU64,
    tokens: AtomicU64,
    looks: AtomicU64,
}

/// A peer, and a monitor of its process.
struct Peer {
    pid: i32,
    socket: UnixStream,
    process: Monitor,
    tokens: Vec<Arc<WatchedToken>>,
    /// Forks that sleep until a token ends, by pid and the token's index; the exit code
    /// says how it ended.
    sleepers: Vec<(i32, usize)>,
}

impl Peer {
    fn start() -> Peer {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| obey(theirs));
        Peer {
            pid,
            socket: ours,
            process: Monitor::of_process(&Process::open(pid).unwrap()).unwrap(),
            tokens: Vec::new(),
            sleepers: Vec::new(),
        }
    }

    fn tell(&self, order: Order, token: usize) {
        (&self.socket)
            .write_all(&[order as u8, token as u8])
            .unwrap();
    }

    fn wait_until_done(&self) {
        let mut done = [0];
        (&self.socket).read_exact(&mut done).unwrap();
    }

    /// Accepts the invitation that was asked for.
    fn accept_invitation(&mut self, stage: &SharedStage) {
        let invitation = Invitation::receive(&self.socket).unwrap();
        let watched = Arc::new(WatchedToken {
            monitor: Monitor::accept(invitation).unwrap(),
            may_end: AtomicBool::new(false),
            over: Mutex::new(None),
        });
        watched.look();
        stage.tokens.fetch_add(1, Ordering::Relaxed);
        stage.seen.lock().unwrap().push(Arc::clone(&watched));
        self.tokens.push(watched);
    }

    /// Indices of the tokens that have not ended.
    fn held(&self) -> Vec<usize> {
        let held = |i: &usize| self.tokens[*i].over.lock().unwrap().is_none();
        (0..self.tokens.len()).filter(held).collect()
    }

    /// Gives one order that the peer survives, and checks its effects.
    fn obey_and_live(&mut self, dice: &mut Dice, stage: &SharedStage) {
        let held = self.held();
        match ORDERS[dice.place(HARMLESS)] {
            Drop if held.is_empty() => {}
            Drop => {
                let one = held[dice.place(held.len())];
                self.tokens[one].may_end.store(true, Ordering::SeqCst);
                self.tell(Drop, one);
                self.tokens[one].wait_for_end(&[State::Released]);
                self.wait_until_done();
            }
            order @ (Fork | ForkOn) => {
                self.tell(order, 0);
                self.wait_until_done();
            }
            order => {
                self.tell(order, 0);
                self.accept_invitation(stage);
            }
        }
        if !held.is_empty() && dice.place(4) == 0 {
            let one = held[dice.place(held.len())];
            let watched = Arc::clone(&self.tokens[one]);
            let pid = sys::fork_running_aside(|| match watched.monitor.wait(Duration::MAX) {
                Some(State::Released) => 1,
                Some(State::Died) => 2,
                _ => 3,
            });
            self.sleepers.push((pid, one));
        }
        assert!(self.process.alive());
    }

    /// Ends the peer in one of many ways, and checks the effects.
    fn obey_and_end(mut self, dice: &mut Dice, stage: &SharedStage) {
        let held = self.held();
        for one in &held {
            self.tokens[*one].may_end.store(true, Ordering::SeqCst);
        }
        let by_itself = HARMLESS + dice.place(8);
        let mut released_perhaps = None;
        match ORDERS.get(by_itself) {
            Some(order) => self.tell(*order, 0),
            // Killed while it obeys an order.
            None => {
                match ORDERS[dice.place(HARMLESS)] {
                    Drop if held.is_empty() => {}
                    Drop => {
                        let one = held[dice.place(held.len())];
                        self.tell(Drop, one);
                        released_perhaps = Some(one);
                    }
                    order => self.tell(order, 0),
                }
                for _ in 0..dice.place(2000) {
                    std::hint::spin_loop();
                }
                sys::kill(self.pid, libc::SIGKILL);
            }
        }
        for one in held {
            let either = [State::Died, State::Released];
            match released_perhaps == Some(one) {
                true => self.tokens[one].wait_for_end(&either),
                false => self.tokens[one].wait_for_end(&either[..1]),
            }
        }
        // The program of an exec is left.
        sys::kill(self.pid, libc::SIGKILL);
        assert_eq!(self.process.wait(Duration::MAX), Some(State::Died));
        sys::reap(self.pid);
        if ORDERS.get(by_itself).is_none() {
            // A token that the peer may have made in its last moment.
            self.socket.set_nonblocking(true).unwrap();
            if let Ok(invitation) = Invitation::receive(&self.socket) {
                let late = Monitor::accept(invitation).unwrap();
                assert_eq!(late.state(), State::Died);
            }
        }
        for (pid, one) in self.sleepers.drain(..) {
            let code = libc::WEXITSTATUS(sys::reap(pid));
            let how = *self.tokens[one].over.lock().unwrap();
            assert_eq!(code, if how == Some(State::Released) { 1 } else { 2 });
        }
        for watched in &self.tokens {
            watched.look();
            assert_eq!(watched.monitor.wait_gone(Duration::MAX), Some(true));
        }
        let ours = |one: &Arc<WatchedToken>| self.tokens.iter().any(|own| Arc::ptr_eq(own, one));
        stage.seen.lock().unwrap().retain(|one| !ours(one));
        stage.peers.fetch_add(1, Ordering::Relaxed);
    }
}

fn command(stage: &SharedStage, mut dice: Dice, until: Instant) {
    while Instant::now() < until {
        let mut peer = Peer::start();
        for _ in 0..dice.place(40) {
            peer.obey_and_live(&mut dice, stage);
        }
        peer.obey_and_end(&mut dice, stage);
    }
}

/// Looks at all tokens, in a random order.
fn look_at_all(stage: &SharedStage, mut dice: Dice, until: Instant) {
    while Instant::now() < until {
        let mut all = stage.seen.lock().unwrap().clone();
        while !all.is_empty() {
            all.swap_remove(dice.place(all.len())).look();
            stage.looks.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::yield_now();
    }
}

/// Reports that a thread is about to end.
struct EndNotice(mpsc::Sender<()>);

impl std::ops::Drop for EndNotice {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

alone! {
    fn no_answer_is_wrong() {
        // The first token starts what is started once.
        let own = Token::new().unwrap();
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(u64::from(std::process::id()));
        let stage = SharedStage::default();
        let until = Instant::now() + Duration::from_secs(test_support::scaled(2, 300));
        let dice = |i| Dice(seed << 8 | i);
        std::thread::scope(|scope| {
            let stage = &stage;
            let (tell, ended) = mpsc::channel();
            let mut all = Vec::new();
            for i in 0..COMMANDERS + LOOKERS {
                let work = match i < COMMANDERS {
                    true => command,
                    false => look_at_all,
                };
                let tell = EndNotice(tell.clone());
                all.push(scope.spawn(move || {
                    let _tell = tell;
                    work(stage, dice(i), until);
                }));
            }
            while !all.is_empty() {
                ended.recv().unwrap();
                test_support::eventually(|| all.iter().any(|one| one.is_finished()));
                let ended = all.iter().position(|one| one.is_finished()).unwrap();
                if all.swap_remove(ended).join().is_err() {
                    // The other threads may wait for peers that wait for them.
                    test_support::say(&format!("wrong with SEED={seed}"));
                    sys::exit_with(101);
                }
            }
        });
        drop(own);
        test_support::figure(&format!(
            "{} peers with {} tokens, {} looks, none wrong",
            stage.peers.into_inner(),
            stage.tokens.into_inner(),
            stage.looks.into_inner(),
        ));
    }
}
