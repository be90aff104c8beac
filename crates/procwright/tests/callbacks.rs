//! Callbacks that take their time, or never return: no deadline waits for them, and they
//! have as much time as a stop gives the program.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use common::{child, shared, stopped, sys};
use procwright::process::Stop;
use procwright::{Command, Error, Foreign, Overflow, Reason};
use test_support::{Census, alone};

/// A gate that callbacks wait at until it is dropped, and whether one has passed it.
struct Gate {
    _keep: mpsc::Sender<()>,
    passed: Arc<AtomicBool>,
}

impl Gate {
    /// The gate, and what waits at it.
    fn new() -> (Gate, impl FnMut() + Send + 'static) {
        let (keep, closed) = mpsc::channel::<()>();
        let passed = Arc::new(AtomicBool::new(false));
        let through = Arc::clone(&passed);
        let wait = move || {
            let _ = closed.recv();
            through.store(true, Ordering::SeqCst);
        };
        let _keep = keep;
        (Gate { _keep, passed }, wait)
    }

    fn has_let_through(&self) -> bool {
        self.passed.load(Ordering::SeqCst)
    }
}

/// A pause of a known length: no message comes.
fn pause(milliseconds: u64) {
    let (_keep, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(Duration::from_millis(milliseconds));
}

fn holder() -> Command<'static> {
    child(&["fork-holder", "0", "--print-ready"])
}

fn soon() -> Stop {
    Stop::new().with_grace(Duration::from_millis(50))
}

alone! {
    fn an_event_hook_that_never_returns_holds_up_no_deadline() {
        let before = Census::now();
        let (gate, mut wait) = Gate::new();
        let (tell, told) = mpsc::channel();
        let result = holder()
            .timeout(Duration::from_millis(1300))
            .stop(soon())
            .on_event(move |event| {
                tell.send(event.to_string())?;
                wait();
                Ok(())
            })
            .run();
        // The gate is still closed: a run that waited for the hook would be waiting.
        assert!(!gate.has_let_through());
        let output = stopped(result);
        assert_eq!(output.report.reason, Reason::Timeout);
        let [holder] = common::ready_pids(&output.stdout)[..] else { panic!() };
        assert!(!common::lives(holder));
        assert!(told.recv().unwrap().contains("fork-holder"));
        drop(gate);
        before.comes_back();
    }
}

alone! {
    fn a_cancel_is_not_held_up_by_an_event_hook() {
        let before = Census::now();
        let (gate, mut wait) = Gate::new();
        let cancel = procwright::Cancel::new().unwrap();
        let from_hook = cancel.clone();
        let result = holder()
            .cancel_on(&cancel)
            .stop(soon())
            .on_event(move |_| {
                from_hook.cancel();
                wait();
                Ok(())
            })
            .run();
        assert!(!gate.has_let_through());
        assert_eq!(stopped(result).report.reason, Reason::Cancelled);
        drop((gate, cancel));
        before.comes_back();
    }
}

alone! {
    fn a_run_that_is_not_stopped_waits_for_its_event_hook() {
        let before = Census::now();
        let returned = shared(false);
        let done = returned.clone();
        let output = holder()
            .on_event(move |event| {
                let procwright::Event::Held { holders, .. } = event else { panic!("{event:?}") };
                holders.iter().for_each(|holder| sys::end(holder.pid));
                common::eventually(|| holders.iter().all(|holder| !common::lives(holder.pid)));
                // The pipes have ended meanwhile, and only the hook is left.
                pause(100);
                *done.lock().unwrap() = true;
                Ok(())
            })
            .run()
            .unwrap();
        assert!(*returned.lock().unwrap() && output.success());
        before.comes_back();
    }
}

alone! {
    fn an_error_or_a_panic_of_an_event_hook_comes_through() {
        let before = Census::now();
        let result = holder().stop(soon()).on_event(|_| Err("enough".into())).run();
        let Err(Error::Foreign { what: Foreign::Event, source, output, .. }) = result else { panic!("{result:?}") };
        assert_eq!((source.to_string().as_str(), output.report.reason), ("enough", Reason::Cancelled));
        let result = holder().stop(soon()).on_event(|_| panic!("on purpose")).run();
        assert!(matches!(&result, Err(Error::Foreign { what: Foreign::Event, .. })), "{result:?}");
        before.comes_back();
    }
}

/// A callback that needs well over half a second for all lines, counted from the stop.
fn slow_lines(command: Command<'_>) -> (Arc<AtomicU64>, Command<'_>) {
    let taken = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&taken);
    let command = command.on_stdout_line(move |_| {
        pause(15);
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    (taken, command)
}

alone! {
    fn a_callback_has_the_grace_of_the_stop() {
        let before = Census::now();
        // The program ends by the first signal; only the callback needs the grace.
        let line = "i=0; while [ $i -lt 100 ]; do echo line; i=$((i+1)); done; exec sleep 1000000";
        let (taken, command) = slow_lines(Command::shell(line));
        let result = command
            .timeout(Duration::from_millis(200))
            .stop(Stop::new().with_grace(Duration::from_secs(1_000_000)))
            .run();
        let output = stopped(result);
        assert_eq!(output.report.reason, Reason::Timeout);
        assert_eq!(taken.load(Ordering::SeqCst), 100);
        assert_eq!(output.report.stdout_info.unwrap().undelivered_bytes, 0);
        before.comes_back();
    }
}

alone! {
    fn who_ends_the_grace_ends_it_for_callbacks_too() {
        let before = Census::now();
        let (gate, mut wait) = Gate::new();
        let mut run = child(&["says", "out:a line\\n"])
            .stop(Stop::new().with_grace(Duration::MAX))
            .on_stdout_line(move |_| {
                wait();
                Ok(())
            })
            .begin_into::<Vec<u8>>()
            .unwrap();
        run.kill();
        let collected = run.finish();
        assert!(!gate.has_let_through());
        assert_eq!(collected.report.reason, Reason::Cancelled);
        drop(gate);
        before.comes_back();
    }
}

alone! {
    fn an_event_hook_of_a_child_holds_up_no_other_child() {
        let before = Census::now();
        let (gate, mut wait) = Gate::new();
        let (tell, told) = mpsc::channel();
        let drops = Overflow::DropOldest { memory: 65536 };
        let flood = child(&["flood", "--out", "1M"])
            .on_stream_event(move |_| {
                let _ = tell.send(());
                wait();
            })
            .spawn_with(drops)
            .unwrap();
        told.recv().unwrap();
        // The hook is at work for as long as the gate is closed, and the thread that empties
        // all pipes goes on.
        assert!(flood.wait(None).unwrap().is_some());
        let mut other = child(&["flood", "--out", "1M"]).spawn().unwrap();
        let mut all = Vec::new();
        std::io::Read::read_to_end(other.stdout.as_mut().unwrap(), &mut all).unwrap();
        assert_eq!(all.len(), 1 << 20);
        assert!(!gate.has_let_through());
        other.wait(None).unwrap();
        drop((gate, flood, other));
        before.comes_back();
    }
}
