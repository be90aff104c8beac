//! The program's output: whether it goes through this command at all, and what is
//! made of it on its way.

mod log;
mod log_file;
mod quiet;
mod tag;
mod timestamp;

use std::ffi::OsString;
use std::sync::Arc;

use procwright::{BoxError, Command, Error, Output, Overflow, Piece, Sink, Spec, Tap};

use super::progress::RunProgress;
use crate::args::RunArgs;
use crate::exit::Termination;
use crate::message;
use crate::own_signals;
use crate::progress::PERIOD;
use crate::stdio::{self, StandardStreams};
use log::Log;
pub(super) use log::LogFigures;
use log_file::Rotation;
use quiet::QuietOutput;
use tag::Tagger;

/// Receivers of the output, of one run or of several in turn.
#[derive(Debug)]
pub(super) struct Outputs {
    streams: StandardStreams,
    has_pipes: bool,
    /// The name in front of each line, which may be empty; none without `--tag`.
    tag: Option<OsString>,
    log: Option<Arc<Log>>,
    log_is_strict: bool,
    quiet: Option<Arc<QuietOutput>>,
    progress: Option<Arc<RunProgress>>,
}

impl Outputs {
    /// Opens what has to be open before the program starts. `knows_orphans` says that
    /// all processes below this one will be the program's.
    ///
    /// # Errors
    /// In words, with a hint.
    pub(super) fn open(
        args: &RunArgs,
        spec: &Spec,
        knows_orphans: bool,
    ) -> Result<Outputs, String> {
        let streams = StandardStreams::inspect();
        let progress = match args.progress {
            true => RunProgress::on_terminal(streams, args.expect, knows_orphans),
            false => None,
        };
        let has_pipes = [&spec.stdout, &spec.stderr]
            .iter()
            .any(|sink| matches!(sink, Sink::Relay));
        if has_pipes {
            own_signals::survive_size_limits()?;
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
        let quiet = match args.quiet {
            true => {
                let directory = Overflow::directory().map_err(|error| error.to_string())?;
                Some(Arc::new(QuietOutput::new(directory.as_deref())))
            }
            false => None,
        };
        Ok(Outputs {
            streams,
            has_pipes,
            tag: args.tag.clone(),
            log,
            log_is_strict: args.log_strict,
            quiet,
            progress,
        })
    }

    /// Attaches everything to a command. Its streams are relayed if
    /// [`has_pipes`](Outputs::has_pipes).
    pub(super) fn attach<'a>(&self, mut command: Command<'a>) -> Command<'a> {
        if let Some(log) = &self.log {
            command = command.tap_both(Box::new(log.tap()));
        }
        if let Some(progress) = &self.progress {
            progress.begin();
            let progress = Arc::clone(progress);
            command = command.every(PERIOD, move |moment| progress.update(moment));
        }
        // One relay for both streams keeps their order. Streams that go to different
        // places need none, and are relayed each on its own.
        let in_order = self.streams.is_shared() || self.tag.is_some();
        if self.has_pipes && (in_order || self.quiet.is_some() || self.progress.is_some()) {
            let tag = self.tag.as_deref();
            command = command.relay_with(Box::new(RelayTap {
                tagger: tag.map(|name| Tagger::new(&self.streams, name)),
                quiet: self.quiet.clone(),
                progress: self.progress.clone(),
            }));
        }
        command
    }

    /// Ends a run: shows the output that was kept back, before any message about the
    /// run. `again` says that another run follows, so that this output is no result.
    pub(super) fn finish_run(&self, result: &Result<Output, Error>, again: bool) {
        if let Some(progress) = &self.progress {
            progress.end();
        }
        let report = match result {
            Ok(output) => Some(&output.report),
            Err(error) => error.output().map(|output| &output.report),
        };
        if let Some(quiet) = &self.quiet {
            match result {
                Ok(output) if again || output.success() => quiet.discard(),
                _ => quiet.show(),
            }
        }
        let Some(report) = report else { return };
        let infos = [&report.stdout_info, &report.stderr_info];
        if let Some(log) = &self.log {
            let read = infos.iter().filter_map(|info| info.as_ref());
            log.end_run(read.map(|info| info.bytes - info.dropped_bytes).sum());
        }
        for info in infos.into_iter().flatten() {
            if let (Some(path), Some(error)) = (&info.kept_at, &info.kept_error) {
                message::print(format_args!("{:?} is not whole: {error}", path.display()));
            }
        }
    }

    /// Prints how much is missing in the log, and returns how the command
    /// terminates: under `--log-strict` that is trouble.
    pub(super) fn finish(&self, termination: Termination) -> Termination {
        let Some(log) = self.log_figures().filter(|log| log.lost_bytes > 0) else {
            return termination;
        };
        message::print(format_args!(
            "{} bytes are missing in the log {:?}",
            log.lost_bytes,
            log.path.display()
        ));
        match termination {
            Termination::Code(_) if self.log_is_strict => Termination::TROUBLE,
            _ => termination,
        }
    }

    /// Figures of the log, if there is one.
    pub(super) fn log_figures(&self) -> Option<LogFigures> {
        self.log.as_ref().map(|log| log.figures())
    }
}

/// Takes both streams, and passes them on to those of this command.
#[derive(Debug)]
struct RelayTap {
    tagger: Option<Tagger>,
    quiet: Option<Arc<QuietOutput>>,
    progress: Option<Arc<RunProgress>>,
}

impl Tap for RelayTap {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        let stream = piece.stream;
        if let Some(progress) = &self.progress {
            progress.count_lines(stream, piece.bytes);
        }
        let tagged;
        let bytes = match &mut self.tagger {
            Some(tagger) => {
                tagged = tagger.tagged(stream, piece.bytes, piece.read_at);
                &tagged[..]
            }
            None => piece.bytes,
        };
        match (&self.quiet, &self.progress) {
            (Some(quiet), _) => quiet.keep(stream, bytes),
            (None, Some(progress)) => progress.write_output(stream, bytes)?,
            (None, None) => stdio::write_all(stream, bytes)?,
        }
        Ok(())
    }
}
