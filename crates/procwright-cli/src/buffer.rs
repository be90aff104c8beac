//! `procwright buffer`: an elastic stage of a pipeline.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use procwright::Overflow;
use procwright::buffer::{Buffer, Error, Event, Figures, Monitor};
use procwright::time::Deadline;
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

use crate::args::{BufferArgs, OverflowArg};
use crate::exit::End;
use crate::figures::{Seconds, Size};
use crate::message::say;

/// From one line of progress to the next.
const PROGRESS: Duration = Duration::from_secs(1);

pub(crate) fn buffer(args: &BufferArgs) -> End {
    if args.disk.is_some() && args.overflow != OverflowArg::Spill {
        say("only --overflow spill uses a disk\n  hint: leave --disk or --overflow away");
        return End::TROUBLE;
    }
    let started = Instant::now();
    let policy = args.policy();
    let buffer = match Buffer::new(policy) {
        Ok(buffer) => buffer.on_event(listener(policy, args.quiet)),
        Err(error) => {
            say(error);
            return End::TROUBLE;
        }
    };
    let monitor = buffer.monitor();
    if let Err(error) = answer_signals(monitor.clone(), started) {
        say(format_args!("cannot catch SIGUSR1: {error}"));
        return End::TROUBLE;
    }
    let progress = (!args.quiet && io::stderr().is_terminal()).then(|| {
        let monitor = monitor.clone();
        std::thread::spawn(move || show_progress(&monitor, started))
    });
    let result = buffer.run_stdio();
    if let Some(progress) = progress {
        let _ = progress.join();
    }
    if args.stats {
        let figures = match &result {
            Ok(outcome) => outcome.figures,
            Err(_) => monitor.figures(),
        };
        print(&stats(&figures, started.elapsed()));
    }
    match result {
        Ok(outcome) if outcome.reader_gone => End::BROKEN_PIPE,
        Ok(_) => End::OK,
        // Told when it happened.
        Err(Error::Overflowed { .. }) => End::TROUBLE,
        Err(error) => {
            say(error);
            End::TROUBLE
        }
    }
}

/// Says what happens on the way, each thing once.
fn listener(policy: Overflow, quiet: bool) -> impl Fn(&Event) + Send + Sync + 'static {
    let degraded = AtomicBool::new(false);
    move |event| match event {
        Event::Overflowed { offset } => say(format_args!(
            "the reader is too slow: {} were waiting when byte {offset} came\n  \
             hint: --memory keeps more, --overflow spill uses the disk",
            Size(policy.memory()),
        )),
        _ if quiet => {}
        Event::Dropping { offset } => say(format_args!(
            "the reader is too slow: dropping bytes from offset {offset} on"
        )),
        Event::Degraded { what, error } if !degraded.swap(true, Ordering::Relaxed) => {
            say(format_args!(
                "cannot {what} to spill to: {error}\n  \
                 nothing is lost, but the writer waits when the memory is full"
            ));
        }
        _ => {}
    }
}

/// Prints the figures whenever SIGUSR1 comes, on a thread that sleeps until then.
fn answer_signals(monitor: Monitor, started: Instant) -> io::Result<()> {
    let mut signals = Signals::new([SIGUSR1])?;
    std::thread::Builder::new().spawn(move || {
        for _ in signals.forever() {
            print(&stats(&monitor.figures(), started.elapsed()));
        }
    })?;
    Ok(())
}

/// A line on the terminal while something moves, and no wake-up while nothing
/// does.
fn show_progress(monitor: &Monitor, started: Instant) {
    let mut seen = Figures::default();
    while monitor.wait_moved(&seen, Deadline::NEVER) {
        seen = monitor.figures();
        print(&format!("\r{}\x1b[K", line(&seen, started.elapsed())));
        if !monitor.wait_ended(Deadline::at(Instant::now() + PROGRESS)) {
            break;
        }
    }
    print("\r\x1b[K");
}

fn line(figures: &Figures, elapsed: Duration) -> String {
    let mut text = format!(
        "{} in, {} out, {} waiting",
        Size(figures.bytes_in),
        Size(figures.bytes_out),
        Size(figures.lag_bytes)
    );
    if figures.disk_bytes > 0 {
        let _ = write!(text, " ({} on disk)", Size(figures.disk_bytes));
    }
    let _ = write!(text, ", {} s", elapsed.as_secs());
    text
}

/// A line for each thing worth knowing.
fn stats(figures: &Figures, elapsed: Duration) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<10} {value}");
    };
    line(
        "bytes",
        format!("{} in, {} out", figures.bytes_in, figures.bytes_out),
    );
    line("time", Seconds(elapsed).to_string());
    if figures.lag_bytes > 0 {
        let (bytes, lag) = (Size(figures.lag_bytes), Seconds(figures.lag));
        line("waiting", format!("{bytes}, the oldest for {lag}"));
    }
    line(
        "peak",
        format!(
            "{} waiting, {} of memory, {} on disk",
            Size(figures.peak_bytes),
            Size(figures.memory_peak_bytes),
            Size(figures.disk_peak_bytes),
        ),
    );
    line("spilled", Size(figures.spilled_bytes).to_string());
    line("dropped", format!("{} bytes", figures.dropped_bytes));
    if figures.lost_bytes > 0 {
        line("lost", format!("{} bytes", figures.lost_bytes));
    }
    line("held up", Seconds(figures.refused).to_string());
    text
}

fn print(text: &str) {
    // What cannot be shown is not: there is no other place for it.
    let _ = io::stderr().write_all(text.as_bytes());
}
