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

use crate::args::{BufferArgs, BufferOverflowArg};
use crate::exit::Termination;
use crate::human::{HumanBytes, HumanDuration};
use crate::{message, tty};

/// Time from one drawing of the progress to the next.
const PROGRESS_PERIOD: Duration = Duration::from_secs(1);

/// Passes stdin on to stdout.
///
/// # Errors
/// The buffer could not be made, or not all bytes were passed on.
pub(crate) fn buffer(args: &BufferArgs) -> Result<Termination, Termination> {
    if args.disk.is_some() && args.overflow != BufferOverflowArg::Spill {
        return Err(Termination::trouble(
            "only --overflow spill uses a disk\n  hint: leave --disk or --overflow away",
        ));
    }
    let started = Instant::now();
    let policy = args.policy();
    let buffer = Buffer::new(policy).map_err(Termination::trouble)?;
    let buffer = buffer.on_event(event_printer(policy, args.quiet));
    let monitor = buffer.monitor();
    print_figures_on_signal(monitor.clone(), started)
        .map_err(|error| Termination::trouble(format_args!("cannot catch SIGUSR1: {error}")))?;
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
        // Figures that nobody takes are dropped: there is no other place for them.
        let _ = message::print_text(stats(&figures, started.elapsed()));
    }
    match result {
        Ok(outcome) if outcome.reader_gone => Ok(Termination::BROKEN_PIPE),
        Ok(_) => Ok(Termination::OK),
        // The event has printed the message.
        Err(Error::Overflowed { .. }) => Err(Termination::TROUBLE),
        Err(error) => Err(Termination::trouble(error)),
    }
}

/// A listener that prints events, each kind once.
fn event_printer(policy: Overflow, quiet: bool) -> impl Fn(&Event) + Send + Sync + 'static {
    let degraded = AtomicBool::new(false);
    move |event| match event {
        Event::Overflowed { offset } => message::post(format_args!(
            "the reader is too slow: {} were waiting when byte {offset} came\n  \
             hint: --memory keeps more, --overflow spill uses the disk",
            HumanBytes(policy.memory()),
        )),
        _ if quiet => {}
        Event::Dropping { offset } => message::post(format_args!(
            "the reader is too slow: dropping bytes from offset {offset} on"
        )),
        Event::Degraded { what, error } if !degraded.swap(true, Ordering::Relaxed) => {
            message::post(format_args!(
                "cannot {what} to spill to: {error}\n  \
                 nothing is lost, but the writer waits when the memory is full"
            ));
        }
        _ => {}
    }
}

/// Prints the figures whenever SIGUSR1 comes, on a thread that sleeps until then.
fn print_figures_on_signal(monitor: Monitor, started: Instant) -> io::Result<()> {
    let mut signals = Signals::new([SIGUSR1])?;
    std::thread::Builder::new().spawn(move || {
        for _ in signals.forever() {
            eprint(&stats(&monitor.figures(), started.elapsed()));
        }
    })?;
    Ok(())
}

/// Draws a line on the terminal while bytes move. Wakes up for nothing else.
fn show_progress(monitor: &Monitor, started: Instant) {
    let mut seen = Figures::default();
    while monitor.wait_moved(&seen, Deadline::NEVER) {
        seen = monitor.figures();
        eprint(&tty::drawn(&line(&seen, started.elapsed())));
        if !monitor.wait_ended(Deadline::at(Instant::now() + PROGRESS_PERIOD)) {
            break;
        }
    }
    eprint(tty::ERASE_LINE);
}

fn line(figures: &Figures, elapsed: Duration) -> String {
    let mut text = format!(
        "{} in, {} out, {} waiting",
        HumanBytes(figures.bytes_in),
        HumanBytes(figures.bytes_out),
        HumanBytes(figures.lag_bytes)
    );
    if figures.disk_bytes > 0 {
        let _ = write!(text, " ({} on disk)", HumanBytes(figures.disk_bytes));
    }
    let _ = write!(text, ", {} s", elapsed.as_secs());
    text
}

/// The figures, a line for each.
fn stats(figures: &Figures, elapsed: Duration) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<10} {value}");
    };
    line(
        "bytes",
        format!("{} in, {} out", figures.bytes_in, figures.bytes_out),
    );
    line("time", HumanDuration(elapsed).to_string());
    if figures.lag_bytes > 0 {
        let (bytes, lag) = (HumanBytes(figures.lag_bytes), HumanDuration(figures.lag));
        line("waiting", format!("{bytes}, the oldest for {lag}"));
    }
    line(
        "peak",
        format!(
            "{} waiting, {} of memory, {} on disk",
            HumanBytes(figures.peak_bytes),
            HumanBytes(figures.memory_peak_bytes),
            HumanBytes(figures.disk_peak_bytes),
        ),
    );
    line("spilled", HumanBytes(figures.spilled_bytes).to_string());
    line("dropped", format!("{} bytes", figures.dropped_bytes));
    if figures.lost_bytes > 0 {
        line("lost", format!("{} bytes", figures.lost_bytes));
    }
    line("held up", HumanDuration(figures.refused).to_string());
    text
}

fn eprint(text: &str) {
    // Figures that cannot be printed are dropped: there is no other place for them.
    let _ = io::stderr().write_all(text.as_bytes());
}
