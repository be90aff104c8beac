//! The thread that calls a hook for events: a hook that never returns holds up neither a
//! deadline nor the pipes, and events reach it one after another, in their order.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;

use super::event::Event;
use super::hooks::EventHook;
use crate::error::BoxError;
use procwright_os::fork::ProcessOwned;
use procwright_os::sync::{Condvar, Mutex};
use procwright_os::wake::Wake;

/// The number of events that wait for a hook. A run has one event to tell, and each stream of
/// a child a few; only a disk that fails again and again tells of that for as long as the
/// child lives.
const BOUND: usize = 64;

/// A hook for events, and its thread, which starts with the first event: most runs and
/// children tell nothing.
pub(crate) struct EventThread(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Wakes the thread.
    changed: Condvar,
    /// The command, for the event that tells of others which are missing.
    command: String,
}

struct State {
    hook: HookPlace,
    waiting: VecDeque<Event>,
    /// Events for which there was no room since one was last added.
    missed: u64,
    /// No more events come.
    ended: bool,
    /// Nobody waits for the hook any more: what waits is not told.
    left: bool,
    error: Option<BoxError>,
    /// Rung when the hook has been dropped.
    wake: Option<Arc<Wake>>,
}

/// The place of the hook.
enum HookPlace {
    /// Nothing has been told yet, and there is no thread.
    Here(EventHook),
    OnThread,
    /// The thread has dropped it, and calls it no more.
    Gone,
}

impl EventThread {
    pub(crate) fn new(command: String, hook: EventHook) -> EventThread {
        EventThread(Arc::new(Shared {
            state: Mutex::new(State {
                hook: HookPlace::Here(hook),
                waiting: VecDeque::new(),
                missed: 0,
                ended: false,
                left: false,
                error: None,
                wake: None,
            }),
            changed: Condvar::new(),
            command,
        }))
    }

    /// Has the hook called with `event`, and does not wait for that. `wake` is rung once the
    /// hook has been dropped: after [`end`](EventThread::end), or after an error of its own.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn tell(&self, event: Event, wake: Option<&Arc<Wake>>) -> io::Result<()> {
        let mut state = self.0.state.lock();
        if let HookPlace::Here(_) = state.hook {
            state.wake = wake.cloned();
            // The thread takes the hook out, so that it stays here when there is no thread.
            let shared = Arc::clone(&self.0);
            let thread = thread::Builder::new().name("procwright-events".into());
            thread.spawn(move || call_back(&shared))?;
        }
        state.add(event, &self.0.command);
        drop(state);
        self.0.changed.notify_one();
        Ok(())
    }

    /// Lets the thread end when it has told what waits: no more events come.
    pub(crate) fn end(&self) {
        self.0.state.lock().ended = true;
        self.0.changed.notify_one();
    }

    /// Lets the thread end without telling what waits: nobody waits for the hook any more.
    pub(crate) fn leave(&self) {
        let mut state = self.0.state.lock();
        state.left = true;
        state.waiting.clear();
        drop(state);
        self.0.changed.notify_one();
    }

    /// False while the hook is at work, or waits for more, or has left an error that nobody
    /// has taken: a run that was over in the moment of the error would return without it.
    pub(crate) fn has_finished(&self) -> bool {
        let state = self.0.state.lock();
        match state.hook {
            HookPlace::Here(_) => state.waiting.is_empty(),
            HookPlace::OnThread => false,
            HookPlace::Gone => state.error.is_none(),
        }
    }

    /// The error of the hook, once.
    pub(crate) fn take_error(&self) -> Option<BoxError> {
        self.0.state.lock().error.take()
    }
}

impl Drop for EventThread {
    fn drop(&mut self) {
        self.end();
    }
}

impl State {
    /// Adds an event, and before it one that tells of those that found no room.
    fn add(&mut self, event: Event, command: &str) {
        if self.left || matches!(self.hook, HookPlace::Gone) {
            return;
        }
        let needed = if self.missed > 0 { 2 } else { 1 };
        if self.waiting.len() + needed > BOUND {
            self.missed += 1;
            return;
        }
        if self.missed > 0 {
            let command = command.to_owned();
            let count = std::mem::take(&mut self.missed);
            self.waiting.push_back(Event::Missed { command, count });
        }
        self.waiting.push_back(event);
    }

    /// The next event to tell.
    fn take(&mut self, command: &str) -> Option<Event> {
        if self.left {
            return None;
        }
        let next = self.waiting.pop_front();
        if next.is_none() && self.missed > 0 {
            let command = command.to_owned();
            let count = std::mem::take(&mut self.missed);
            return Some(Event::Missed { command, count });
        }
        next
    }
}

fn call_back(shared: &Shared) {
    let mut state = shared.state.lock();
    let HookPlace::Here(mut hook) = std::mem::replace(&mut state.hook, HookPlace::OnThread) else {
        return;
    };
    // Also when the hook panics: a run that waits for it must learn.
    let finishing = ProcessOwned::new(FinishOnDrop(shared));
    let error = loop {
        match state.take(&shared.command) {
            Some(event) => {
                drop(state);
                let told = hook(&event);
                if !finishing.is_ours() {
                    // The hook has forked. What is left is the parent's, its lock as well.
                    return;
                }
                if let Err(error) = told {
                    break Some(error);
                }
                state = shared.state.lock();
            }
            None if state.ended || state.left => {
                drop(state);
                break None;
            }
            None => state = shared.changed.wait(state),
        }
    };
    // What the hook holds is free when a run that waits for it returns.
    drop(hook);
    std::mem::forget(finishing);
    shared.finish(error);
}

impl Shared {
    fn finish(&self, error: Option<BoxError>) {
        let mut state = self.state.lock();
        state.hook = HookPlace::Gone;
        state.error = error;
        state.waiting.clear();
        let wake = state.wake.take();
        drop(state);
        if let Some(wake) = wake {
            wake.ring();
        }
    }
}

struct FinishOnDrop<'a>(&'a Shared);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish(Some("the hook panicked".into()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use test_support::forked::panic_in_fork;

    fn event(offset: u64) -> Event {
        Event::Dropping {
            command: String::new(),
            stream: "stdout",
            offset,
        }
    }

    #[test]
    fn what_a_hook_is_too_slow_for_is_counted_and_told_in_its_place() {
        let (tell, told) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let hook = Box::new(move |event: &Event| {
            tell.send(event.clone())?;
            // It goes on when the sender is gone.
            let _ = gate.recv();
            Ok(())
        });
        let thread = EventThread::new("cat".into(), hook);
        thread.tell(event(0), None).unwrap();
        assert!(matches!(told.recv(), Ok(Event::Dropping { offset: 0, .. })));
        // The hook is at work, so these wait, and ten find no room.
        for offset in 1..=BOUND as u64 + 10 {
            thread.tell(event(offset), None).unwrap();
        }
        assert!(!thread.has_finished());
        drop(open);
        for wanted in 1..=BOUND as u64 {
            let Ok(Event::Dropping { offset, .. }) = told.recv() else {
                panic!()
            };
            assert_eq!(offset, wanted);
        }
        let Ok(Event::Missed { count, .. }) = told.recv() else {
            panic!()
        };
        assert_eq!(count, 10);
        thread.end();
        // The hook is dropped, and its end of the channel with it.
        assert!(told.recv().is_err());
    }

    #[test]
    fn an_error_that_nobody_has_taken_keeps_it_from_having_finished() {
        let (tell, told) = mpsc::channel::<()>();
        let hook = Box::new(move |_: &Event| {
            let _ = &tell;
            Err("it failed".into())
        });
        let thread = EventThread::new("cat".into(), hook);
        thread.tell(event(0), None).unwrap();
        // The hook is dropped, with its end of the channel.
        assert!(told.recv().is_err());
        while !matches!(thread.0.state.lock().hook, HookPlace::Gone) {
            thread::yield_now();
        }
        assert!(!thread.has_finished());
        assert!(thread.take_error().is_some());
        assert!(thread.has_finished());
    }

    #[test]
    fn a_panic_in_a_fork_of_the_hook_waits_for_no_lock() {
        let (give, given) = mpsc::channel::<Arc<Shared>>();
        let (tell, told) = mpsc::channel();
        let hook = Box::new(move |_: &Event| {
            let shared = given.recv()?;
            tell.send(panic_in_fork(shared.state.lock()))?;
            Ok(())
        });
        let thread = EventThread::new("cat".into(), hook);
        thread.tell(event(0), None).unwrap();
        give.send(Arc::clone(&thread.0)).unwrap();
        assert_eq!(told.recv(), Ok(0));
    }

    #[test]
    fn who_leaves_is_told_nothing_more() {
        let (tell, told) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let hook = Box::new(move |event: &Event| {
            tell.send(event.clone())?;
            let _ = gate.recv();
            Ok(())
        });
        let thread = EventThread::new("cat".into(), hook);
        thread.tell(event(0), None).unwrap();
        thread.tell(event(1), None).unwrap();
        told.recv().unwrap();
        thread.leave();
        drop(open);
        assert!(told.recv().is_err());
    }
}
