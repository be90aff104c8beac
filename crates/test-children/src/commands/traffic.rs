//! `traffic N [--lose]`: N places in each of which processes exchange bytes over pipes, round
//! after round, and never hang.
//!
//! A round is one of three games, each with processes of its own that end with it:
//!
//! - *a ring*: a word goes round, so that at any moment all but one wait for each other. Each two
//!   neighbours have eight pipes, which they use by turns.
//! - *a chain*: bytes from a source through filters to a sink, in bursts that are larger than a
//!   pipe.
//! - *questions*: one asks, the other answers.
//!
//! Whoever has the word, or bytes, may sleep for some milliseconds first, and may fork a process
//! that holds copies of its pipes and ends soon. With `--lose` there are rings alone, and each
//! loses its word in the end: a deadlock.
//!
//! All die with the process that is announced.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::pipe::pipe;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, set_child_subreaper, set_parent_process_death_signal, waitpid,
};

use crate::args::{Failure, Waiting};
use crate::process::{Limit, ignore, leave, pause_forever, read, restore, sleep, spawn, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "traffic",
    usage: "N [--lose] [--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "in N places processes come, exchange bytes over pipes, stall and go",
    run,
};

/// Pipes between two neighbours of a ring.
const LANES: usize = 8;

type Ends = (OwnedFd, OwnedFd);

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    let lose = args.flag("--lose");
    let places = args.next_number("N")?;
    args.finish()?;
    if !(1..=1000).contains(&places) {
        return Err(Failure::usage("N is 1 to 1000"));
    }
    waiting.limit.arm();
    // Orphans stay within the tree, and nobody has to take their status.
    set_child_subreaper(Some(getpid()))?;
    ignore(libc::SIGCHLD)?;
    for _ in 0..places {
        member(waiting.limit, || {
            restore(libc::SIGCHLD)?;
            let mut place = Place::new(waiting.limit, lose);
            loop {
                place.round()?;
            }
        })?;
    }
    waiting.announce(&[getpid()])?;
    pause_forever()
}

/// Forks a process that dies with this one.
fn member(limit: Limit, body: impl FnOnce() -> Outcome) -> Result<Pid, Failure> {
    let parent = getpid();
    let pid = spawn(limit, || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Its parent may have died before.
        if rustix::process::getppid() != Some(parent) {
            leave(1);
        }
        body()
    })?;
    Ok(pid)
}

struct Place {
    limit: Limit,
    lose: bool,
    /// State of a xorshift generator, never 0.
    random: u64,
}

impl Place {
    fn new(limit: Limit, lose: bool) -> Place {
        let random = u64::from(getpid().as_raw_pid().unsigned_abs()) | 1 << 40;
        Place {
            limit,
            lose,
            random,
        }
    }

    /// A number from 0 up to and without `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) % sides
    }

    fn round(&mut self) -> Result<(), Failure> {
        match self.roll(4) {
            0 if !self.lose => self.chain(),
            1 if !self.lose => self.questions(),
            _ => self.ring(),
        }
    }

    /// Sleeps for a moment, or not; may leave somebody who holds the pipes for another.
    fn stall(&mut self) -> Result<(), Failure> {
        if self.roll(64) == 0 {
            let life = Duration::from_millis(self.roll(30));
            member(self.limit, || {
                sleep(life);
                Ok(0)
            })?;
        }
        if self.roll(2) == 0 {
            sleep(Duration::from_millis(self.roll(16)));
        }
        Ok(())
    }

    /// What is random differs from one process of a game to the other.
    fn becomes(&mut self) -> Result<(), Failure> {
        self.random = Place::new(self.limit, self.lose).random;
        Ok(ignore(libc::SIGCHLD)?)
    }

    fn ring(&mut self) -> Result<(), Failure> {
        let length = 2 + self.roll(5) as usize;
        let hops = 20 + self.roll(300) as u32;
        let lanes = |_| (0..LANES).map(|_| pipe()).collect::<Result<Vec<Ends>, _>>();
        let mut pipes = (0..length).map(lanes).collect::<Result<Vec<_>, _>>()?;
        let limit = self.limit;
        let mut pids = Vec::new();
        for own in 0..length {
            pids.push(member(limit, || {
                self.becomes()?;
                self.pass_on(std::mem::take(&mut pipes), own, hops)
            })?);
        }
        drop(pipes);
        wait_for(&pids)
    }

    /// A process of a ring: takes the word and gives it on, until somebody has ended.
    fn pass_on(&mut self, pipes: Vec<Vec<Ends>>, own: usize, hops: u32) -> Outcome {
        let next = (own + 1) % pipes.len();
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        // What is neither is closed.
        for (index, lanes) in pipes.into_iter().enumerate() {
            for (read, write) in lanes {
                if index == own {
                    reads.push(read);
                }
                if index == next {
                    writes.push(write);
                }
            }
        }
        // Who has begun is one word ahead.
        let ahead = usize::from(own == 0);
        if own == 0 {
            write_all(writes[0].as_fd(), &hops.to_ne_bytes())?;
        }
        for turn in 0.. {
            let mut word = [0; 4];
            if read(reads[turn % LANES].as_fd(), &mut word)? == 0 {
                break;
            }
            self.stall()?;
            match u32::from_ne_bytes(word).checked_sub(1) {
                Some(left) => {
                    let lane = writes[(turn + ahead) % LANES].as_fd();
                    write_all(lane, &left.to_ne_bytes())?;
                }
                None if self.lose => {}
                None => break,
            }
        }
        Ok(0)
    }

    fn chain(&mut self) -> Result<(), Failure> {
        let length = 2 + self.roll(5) as usize;
        let between = (1..length)
            .map(|_| pipe())
            .collect::<Result<Vec<Ends>, _>>()?;
        let mut ends = Vec::from([(None, None)]);
        for (read, write) in between {
            if let Some(last) = ends.last_mut() {
                last.1 = Some(write);
            }
            ends.push((Some(read), None));
        }
        let limit = self.limit;
        let mut pids = Vec::new();
        for own in 0..length {
            pids.push(member(limit, || {
                self.becomes()?;
                let (input, output) = std::mem::take(&mut ends).swap_remove(own);
                self.stage(input, output)
            })?);
        }
        drop(ends);
        wait_for(&pids)
    }

    /// A process of a chain.
    fn stage(&mut self, input: Option<OwnedFd>, output: Option<OwnedFd>) -> Outcome {
        let mut bytes = vec![0; 150 << 10];
        let mut bursts = 1 + self.roll(10);
        loop {
            let count = match &input {
                Some(input) => read(input.as_fd(), &mut bytes)?,
                None if bursts == 0 => 0,
                None => 1 + self.roll(bytes.len() as u64) as usize,
            };
            if count == 0 {
                return Ok(0);
            }
            bursts = bursts.saturating_sub(1);
            self.stall()?;
            if let Some(output) = &output {
                write_all(output.as_fd(), &bytes[..count])?;
            }
        }
    }

    fn questions(&mut self) -> Result<(), Failure> {
        let (questions, answers) = (pipe()?, pipe()?);
        let mut ends = Some((questions, answers));
        let limit = self.limit;
        let other = member(limit, || {
            self.becomes()?;
            let Some(((questions, _), (_, answers))) = ends.take() else {
                return Ok(1);
            };
            let mut word = [0; 8];
            while read(questions.as_fd(), &mut word)? > 0 {
                self.stall()?;
                write_all(answers.as_fd(), &word)?;
            }
            Ok(0)
        })?;
        let Some(((_, questions), (answers, _))) = ends.take() else {
            return Ok(());
        };
        for _ in 0..10 + self.roll(100) {
            write_all(questions.as_fd(), b"question")?;
            let mut word = [0; 8];
            read(answers.as_fd(), &mut word)?;
        }
        drop(questions);
        // Whoever holds a copy ends soon.
        while read(answers.as_fd(), &mut [0; 8])? > 0 {}
        wait_for(&[other])
    }
}

fn wait_for(pids: &[Pid]) -> Result<(), Failure> {
    for pid in pids {
        waitpid(Some(*pid), WaitOptions::empty())?;
    }
    Ok(())
}
