//! What becomes of the program's output: whether it goes through us at all, and
//! what is made of it on its way.

mod held;
mod lines;
mod log;
mod log_file;
pub(crate) mod own;
mod stamp;
mod tag;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use procwright::process::{Exit, Signal};
use procwright::{
    BoxError, Command, Error, Output, Overflow, Piece, Reason, Report, Sink, Spec, Tap,
};

use super::live::Live;
use crate::args::RunArgs;
use crate::exit::End;
use crate::message::say;
use held::Held;
use log::Log;
pub(crate) use log::LogFigures;
use log_file::Rotation;
use own::Own;
use tag::Tag;

/// How often the line of progress is drawn anew.
const PERIOD: Duration = Duration::from_secs(1);

/// All that sees the output, for one run or for several in turn.
#[derive(Debug)]
pub(crate) struct Outputs {
    own: Own,
    pipes: bool,
    tags: bool,
    log: Option<Arc<Log>>,
    strict: bool,
    held: Option<Arc<Held>>,
    live: Option<Arc<Live>>,
}

impl Outputs {
    /// Opens what has to be there before anything starts.
    ///
    /// # Errors
    /// In words, with a hint.
    pub(crate) fn open(args: &RunArgs, spec: &Spec) -> Result<Outputs, String> {
        let own = Own::look();
        let live = match args.progress {
            true => Live::on_terminal(own, args.expect),
            false => None,
        };
        let pipes = [&spec.stdout, &spec.stderr]
            .iter()
            .any(|sink| matches!(sink, Sink::Relay));
        if pipes {
            survive_size_limits()?;
        }
        let rotation = args.log_size.map(|size| Rotation {
            size,
            keep: args.log_keep,
        });
        if args.log_size == Some(0) {
            return Err("--log-size 0 leaves no room for a log\n  hint: 10MiB is usual".into());
        }
        let log = match &args.log {
            Some(path) => Some(Log::open(path, rotation, args.log_times)?),
            None => None,
        };
        let held = match args.quiet {
            true => {
                let directory = Overflow::directory().map_err(|error| error.to_string())?;
                Some(Arc::new(Held::new(directory.as_deref())))
            }
            false => None,
        };
        Ok(Outputs {
            own,
            pipes,
            tags: args.tag,
            log,
            strict: args.log_strict,
            held,
            live,
        })
    }

    /// Puts everything to a command whose streams are relayed, if there are to be
    /// [`pipes`](Outputs::pipes) at all.
    pub(crate) fn attach<'a>(&self, mut command: Command<'a>) -> Command<'a> {
        if let Some(log) = &self.log {
            command = command.tap_both(Box::new(log.tap()));
        }
        if let Some(live) = &self.live {
            live.begin();
            let live = Arc::clone(live);
            command = command.every(PERIOD, move |moment| live.tick(moment));
        }
        // Otherwise each goes its own way. In one place, they are in order.
        let in_order = self.own.is_shared() || self.tags;
        if self.pipes && (in_order || self.held.is_some() || self.live.is_some()) {
            command = command.relay_with(Box::new(Front {
                tag: self.tags.then(|| Tag::new(&self.own)),
                held: self.held.clone(),
                live: self.live.clone(),
            }));
        }
        command
    }

    /// A run is over: shows what has to be shown, before anything is said of it.
    /// `again` says that it is not the last one: what it wrote is no result.
    pub(crate) fn finish(&self, result: &Result<Output, Error>, again: bool) {
        if let Some(live) = &self.live {
            live.end();
        }
        let report = match result {
            Ok(output) => Some(&output.report),
            Err(error) => error.output().map(|output| &output.report),
        };
        if let Some(held) = &self.held {
            match result {
                Ok(output) if again || succeeded(&output.report) => held.forget(),
                _ => held.show(),
            }
        }
        let Some(report) = report else { return };
        let infos = [&report.stdout_info, &report.stderr_info];
        if let Some(log) = &self.log {
            let read = infos.iter().filter_map(|info| info.as_ref());
            log.close(read.map(|info| info.bytes).sum());
        }
        for info in infos.into_iter().flatten() {
            if let (Some(path), Some(error)) = (&info.kept_at, &info.kept_error) {
                say(format_args!("{:?} is not whole: {error}", path.display()));
            }
        }
    }

    /// All is over: says what is missing in the log, and how to end.
    pub(crate) fn conclude(&self, end: End) -> End {
        let Some(log) = self.log_figures().filter(|log| log.lost_bytes > 0) else {
            return end;
        };
        say(format_args!(
            "{} bytes are missing in the log {:?}",
            log.lost_bytes,
            log.path.display()
        ));
        match end {
            End::Code(_) if self.strict => End::TROUBLE,
            _ => end,
        }
    }

    /// What became of the log, if there is one.
    pub(crate) fn log_figures(&self) -> Option<LogFigures> {
        self.log.as_ref().map(|log| log.figures())
    }
}

fn succeeded(report: &Report) -> bool {
    report.reason == Reason::Finished && report.status == Exit::Code(0)
}

/// A file that must not grow any more is a failed write, and not our end. The
/// program gets the default again.
fn survive_size_limits() -> Result<(), String> {
    let number = Signal::XFSZ.number();
    signal_hook::flag::register(number, Arc::new(AtomicBool::new(false)))
        .map(drop)
        .map_err(|error| format!("cannot catch signals: {error}"))
}

/// Stands where the streams would go without us.
#[derive(Debug)]
struct Front {
    tag: Option<Tag>,
    held: Option<Arc<Held>>,
    live: Option<Arc<Live>>,
}

impl Tap for Front {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        let index = usize::from(piece.stream == 2);
        if let Some(live) = &self.live {
            live.count(index, piece.bytes);
        }
        let tagged;
        let bytes = match &mut self.tag {
            Some(tag) => {
                tagged = tag.tagged(index, piece.bytes, piece.read_at);
                &tagged[..]
            }
            None => piece.bytes,
        };
        match (&self.held, &self.live) {
            (Some(held), _) => held.keep(index, bytes),
            (None, Some(live)) => live.pass(index, bytes)?,
            (None, None) => own::write_all(index, bytes)?,
        }
        Ok(())
    }
}
