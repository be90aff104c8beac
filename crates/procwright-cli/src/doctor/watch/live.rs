//! A watch on the screen of a terminal, with keys.
//!
//! Looks are made by a thread of their own, so that a key and a signal have an answer at once.
//! Between two of them nothing wakes this process but a key, a signal, or the end of a process
//! that was asked about.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use procwright::process::{Signal, job};
use rustix::event::{PollFd, PollFlags};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGTSTP, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::exit::{TERMINATION_SIGNALS, Termination};
use crate::{poll, stdout, tty};

use super::asked::Asked;
use super::keys::{Key, Keys};
use super::look::Looker;
use super::pace::Pace;
use super::screen::{Screen, Size};
use super::view::View;
use super::{Begun, cannot_examine, clock};

/// Time in which the rest of a key follows its first byte, over a slow line too. Esc is such a
/// byte, and a key if nothing follows.
const REST_OF_KEY: Duration = Duration::from_millis(50);

/// Why a watch is over.
enum End {
    /// A person has left it.
    Left,
    /// Those who were asked about have ended.
    Ended,
    /// A signal that ends this process.
    Signal(i32),
    /// They could not be examined.
    Unexaminable(io::Error),
}

/// Shows what is seen until a person leaves or those who were asked about have ended. The last
/// report stays on the terminal.
///
/// # Errors
/// No thread, no descriptor or no modes of the terminal are to be had; they could not be
/// examined; or a signal ended the watch.
pub(super) fn live(
    begun: Begun,
    screen: Screen,
    colours: bool,
) -> Result<Termination, Termination> {
    let no_screen =
        |error| Termination::trouble(format_args!("cannot watch on this terminal: {error}"));
    let screen = Arc::new(screen);
    let mut live = Live::begin(begun, Arc::clone(&screen), colours).map_err(no_screen)?;
    restore_at_panic(Arc::clone(&screen));
    let entered = Entered(&screen);
    if let Some(signal) = live.take_screen().map_err(no_screen)? {
        return Err(Termination::Signal(signal));
    }
    // What cannot be drawn on or read from any more has hung up.
    let end = live.run().unwrap_or(End::Signal(SIGHUP));
    drop(entered);
    let columns = screen.size().columns;
    match end {
        End::Left => {
            stdout::print(live.view.report(columns).as_bytes())?;
            let verdict = live.view.diagnosis().verdict;
            Ok(Termination::Code(verdict.exit_code()))
        }
        End::Ended => {
            let report = live.view.report(columns) + &clock::mark("ended");
            stdout::print(report.as_bytes())?;
            Ok(Termination::OK)
        }
        End::Signal(signal) => Err(Termination::Signal(signal)),
        End::Unexaminable(error) => Err(cannot_examine(&error)),
    }
}

/// A screen that is given back by the drop.
struct Entered<'a>(&'a Screen);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Has a panic, of whatever thread, give the screen back before it says what it is: on the
/// screen of the watch its words would be gone with it.
fn restore_at_panic(screen: Arc<Screen>) {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        screen.leave();
        say(panic);
    }));
}

/// A watch under way.
struct Live {
    screen: Arc<Screen>,
    signals: SignalDelivery<UnixStream, SignalOnly>,
    looker: Looker,
    asked: Asked,
    pace: Pace,
    view: View,
    keys: Keys,
    /// When the first byte of a key came whose rest is missing.
    key_began: Option<Instant>,
    /// What stands on the screen; `None` if that is not known.
    shown: Option<(Size, Vec<String>)>,
    is_looking: bool,
    is_paused: bool,
    /// When the next look begins; `None` for never.
    due: Option<Instant>,
}

impl Live {
    /// Catches signals: from here on they have to be looked at.
    fn begin(begun: Begun, screen: Arc<Screen>, colours: bool) -> io::Result<Live> {
        let looker = Looker::start(begun.between)?;
        let (read, write) = UnixStream::pair()?;
        let mut signals = vec![SIGCONT, SIGWINCH];
        // What nohup ignores, or a shell without job control, stays ignored.
        let ours = TERMINATION_SIGNALS.into_iter().chain([Signal::TSTP]);
        signals.extend(ours.filter(|one| !one.is_ignored()).map(Signal::number));
        Ok(Live {
            screen,
            signals: SignalDelivery::with_pipe(read, write, SignalOnly, signals)?,
            looker,
            asked: begun.asked,
            due: Instant::now().checked_add(begun.pace.pause()),
            pace: begun.pace,
            view: View::new(begun.first, colours),
            keys: Keys::default(),
            key_began: None,
            shown: None,
            is_looking: false,
            is_paused: false,
        })
    }

    /// Takes the screen once this process group has the terminal. In the background it stops, as
    /// the system has it stop, until the shell's `fg`. Returns the signal that ends this process,
    /// if one comes first.
    ///
    /// # Errors
    /// Those of the terminal; or nobody can type there.
    ///
    /// # Blocking
    /// In the background until SIGCONT.
    fn take_screen(&mut self) -> io::Result<Option<i32>> {
        for _ in 0..tty::MOST_STOPS {
            if self.screen.enter()? {
                return Ok(None);
            }
            if !tty::stop_in_background() {
                break;
            }
            let come: Vec<i32> = self.signals.pending().collect();
            if let Some(signal) = ending(&come) {
                return Ok(Some(signal));
            }
        }
        Err(io::Error::other(
            "in the background nobody can type there\n  \
             hint: bring it to the foreground, or have it write to a file",
        ))
    }

    /// # Errors
    /// The terminal is gone.
    fn run(&mut self) -> io::Result<End> {
        loop {
            if let Some(signal) = self.take_signals()? {
                return Ok(End::Signal(signal));
            }
            for key in self.take_keys()? {
                if key == Key::Leave {
                    return Ok(End::Left);
                }
                self.press(key);
            }
            if let Some(end) = self.take_look().or_else(|| self.begin_look()) {
                return Ok(end);
            }
            if self.draw()? {
                self.sleep()?;
            }
        }
    }

    /// Does what the signals that have come ask for. Returns the one that ends this process.
    fn take_signals(&mut self) -> io::Result<Option<i32>> {
        let mut come: Vec<i32> = self.signals.pending().collect();
        if let Some(signal) = ending(&come) {
            return Ok(Some(signal));
        }
        let has_to_stop = come.contains(&SIGTSTP);
        if has_to_stop {
            self.screen.leave();
            // Where no shell could let this process go on, it is SIGTSTP once more, which is caught.
            job::stop_self(Signal::STOP)?;
            come.extend(self.signals.pending());
        }
        if let Some(signal) = ending(&come) {
            return Ok(Some(signal));
        }
        if !come.is_empty() {
            self.shown = None;
        }
        match has_to_stop || come.contains(&SIGCONT) {
            true => self.take_screen(),
            false => Ok(None),
        }
    }

    fn take_keys(&mut self) -> io::Result<Vec<Key>> {
        let mut buffer = [0; 256];
        let read = self.screen.read(&mut buffer)?;
        let mut keys = self.keys.feed(&buffer[..read]);
        if read > 0 {
            self.key_began = self.keys.is_unfinished().then(Instant::now);
        } else if self
            .key_began
            .is_some_and(|began| began.elapsed() >= REST_OF_KEY)
        {
            self.key_began = None;
            keys.extend(self.keys.finish());
        }
        Ok(keys)
    }

    fn press(&mut self, key: Key) {
        // Whoever presses a key reads.
        self.pace.hasten();
        let soon = Instant::now().checked_add(self.pace.pause());
        self.due = self.due.min(soon);
        match key {
            Key::Pause => {
                self.is_paused = !self.is_paused;
                self.due = Some(Instant::now());
            }
            Key::LookNow => {
                self.is_paused = false;
                self.due = Some(Instant::now());
            }
            Key::Redraw => self.shown = None,
            key => self.view.scroll(key, self.screen.size()),
        }
    }

    /// Shows what the look has seen that is over, if one is.
    fn take_look(&mut self) -> Option<End> {
        let look = match self.looker.take() {
            Ok(look) => look?,
            Err(error) => return Some(End::Unexaminable(error)),
        };
        self.is_looking = false;
        let is_new = match look.examined {
            // One that had begun before the pause. Who pauses wants to read what is there.
            Ok(_) if self.is_paused => false,
            Ok(diagnosis) => self.view.update(diagnosis),
            // Somebody has ended meanwhile: the next look is at the others.
            Err(_) if self.asked.has_changed() => true,
            Err(error) => return Some(End::Unexaminable(error)),
        };
        self.pace.add_cost(look.cost);
        self.pace.add_news(is_new);
        self.due = Instant::now().checked_add(self.pace.pause());
        None
    }

    /// Begins the next look, if it is time, or if somebody has ended.
    fn begin_look(&mut self) -> Option<End> {
        let is_due = self.due.is_some_and(|due| due <= Instant::now());
        if self.is_looking || self.is_paused || !(is_due || self.asked.has_changed()) {
            return None;
        }
        let Some(pids) = self.asked.alive() else {
            return Some(End::Ended);
        };
        self.is_looking = true;
        self.looker.begin(pids);
        None
    }

    /// Draws the lines that have changed. False if something has come before all were drawn.
    fn draw(&mut self) -> io::Result<bool> {
        let size = self.screen.size();
        let rhythm = match self.is_paused {
            true => "paused".to_owned(),
            false => format!("next in {}", clock::span(self.pace.pause())),
        };
        let frame = self.view.frame(size, &rhythm);
        let mut text = String::new();
        let known = self.shown.take().filter(|(shown, _)| *shown == size);
        if known.is_none() {
            text += "\x1b[2J";
        }
        for (row, line) in frame.iter().enumerate() {
            let is_shown = match &known {
                Some((_, lines)) => lines.get(row) == Some(line),
                None => line.is_empty(),
            };
            if !is_shown {
                // Erased before: behind a line as wide as the screen its last letter would go.
                text += &format!("\x1b[{};1H\x1b[2K{line}", row + 1);
            }
        }
        // A thread that panics has given the screen back.
        if !self.screen.is_entered() {
            return Ok(true);
        }
        let is_drawn = self.screen.put(&text, self.signals.get_read().as_fd())?;
        self.shown = is_drawn.then_some((size, frame));
        Ok(is_drawn)
    }

    /// Sleeps until there is something to do.
    fn sleep(&mut self) -> io::Result<()> {
        let waits_for_look = !self.is_looking && !self.is_paused;
        let due = self.due.filter(|_| waits_for_look);
        let key = self.key_began.map(|began| began + REST_OF_KEY);
        let until = due.into_iter().chain(key).min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.screen.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.get_read().as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.looker.fd(), PollFlags::IN),
        ];
        if waits_for_look {
            let ends = self.asked.ends();
            fds.extend(ends.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        }
        poll::wait_ready(&mut fds, left)
    }
}

/// The first of these signals that ends this process.
fn ending(come: &[i32]) -> Option<i32> {
    let others = [SIGTSTP, SIGCONT, SIGWINCH];
    come.iter().copied().find(|one| !others.contains(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};

    #[test]
    fn a_panic_gives_the_screen_back() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let slave = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let is_canonical = || {
            let modes = tcgetattr(&slave).unwrap();
            modes.local_modes.contains(LocalModes::ICANON)
        };
        assert!(is_canonical());
        let screen = Arc::new(Screen::of(slave.try_clone().unwrap().into()));
        restore_at_panic(Arc::clone(&screen));
        assert!(screen.enter().unwrap());
        assert!(!is_canonical());
        // Whatever thread it is.
        let panicked = std::thread::spawn(|| panic!("a fault that the test wants"));
        assert!(panicked.join().is_err());
        let _ = std::panic::take_hook();
        assert!(is_canonical() && !screen.is_entered());
    }
}
