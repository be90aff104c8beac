//! The result of a run: one shape for success and failure.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use super::event::UNTIL_EXIT;
use crate::drain::Segment;
use crate::quote::quote;
use crate::std_stream::StdStream;
use crate::taps::ConsumerRole;
use procwright_explain::Diagnosis;
use procwright_os::oom::OomKills;
use procwright_os::time::Seconds;
use procwright_process::holders::Holder;
use procwright_process::{Exit, Survivor};

/// Everything about a run but its data.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The program's process number while it ran.
    pub pid: i32,
    /// How it ended.
    pub status: Exit,
    /// Why the run is over.
    pub reason: Reason,
    /// The exit codes that mean success, besides 0.
    pub ok_codes: Vec<i32>,
    /// The limit that the run reached; none if it reached none, or the caller holds the
    /// child.
    pub limit: Option<ReachedLimit>,
    /// Time from the start of the program to the end of the run.
    pub duration: Duration,
    /// How long the stop took, which is a part of that; none if none was needed, or the
    /// caller holds the child.
    pub stop_duration: Option<Duration>,
    /// Processor time in user mode of the program and the children that it
    /// waited for; none if somebody else reaped it.
    #[doc(alias = "ru_utime")]
    pub cpu_user: Option<Duration>,
    /// Processor time in the kernel of the program and the children that it waited
    /// for; none if somebody else reaped it.
    #[doc(alias = "ru_stime")]
    pub cpu_system: Option<Duration>,
    /// Peak resident memory in bytes, of the largest of them. None if unknown:
    /// the kernel's figure starts with the memory of the process that called
    /// `run`, so that a smaller peak than that cannot be seen.
    #[doc(alias = "ru_maxrss")]
    pub max_rss_bytes: Option<u64>,
    /// The processes that the kernel has killed for want of memory while the program ran, in the
    /// cgroup that it was started in. Asked for if the program was killed by SIGKILL, or exited
    /// with 137, as a shell does whose command was. None if there was none, or it is not known.
    #[doc(alias = "out of memory")]
    pub oom_kills: Option<OomKills>,
    /// Processes of the run that are still there though they were to be
    /// stopped.
    pub survivors: Vec<Survivor>,
    /// The stream of which an [`explain`](Report::explain) quotes the end: stderr, or stdout
    /// where that has what is written to stderr, too, as of a [pty](crate::Command::pty) and
    /// with [`Sink::Merged`](crate::Sink::Merged).
    pub last_words_of: StdStream,
    /// About stdout; none where no pipe was put between.
    pub stdout_info: Option<StreamInfo>,
    /// About stderr; none where no pipe was put between.
    pub stderr_info: Option<StreamInfo>,
    /// Activity of each process of the run when it had to be stopped, a line each.
    pub processes: Vec<String>,
    /// What was found out, shortly before a timeout or an idle timeout, about why the program
    /// does not end; none if that limit is shorter than a second, if it could not be found out
    /// in time, or the caller holds the child.
    pub diagnosis: Option<Box<Diagnosis>>,
    /// True if the run had to be stopped though its program had exited: others held its
    /// pipes, for which [`Until::Exit`](crate::Until::Exit) does not wait.
    pub held_after_exit: bool,
}

/// The limit that a run was stopped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReachedLimit {
    /// That of a timeout or an idle timeout.
    Time(Duration),
    /// That of a stream's output.
    Bytes(u64),
}

impl fmt::Display for ReachedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReachedLimit::Time(time) => Seconds(*time).fmt(f),
            ReachedLimit::Bytes(1) => f.write_str("1 byte"),
            ReachedLimit::Bytes(bytes) => write!(f, "{bytes} bytes"),
        }
    }
}

/// Why a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The program ended by itself.
    Finished,
    /// The timeout came.
    Timeout,
    /// No output came for the idle timeout.
    IdleTimeout,
    /// The run was cancelled, or a callback or the producer of stdin failed.
    Cancelled,
    /// More output came than the limit allows.
    OutputLimit,
}

impl Reason {
    /// The name that stands in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Finished => "finished",
            Reason::Timeout => "timeout",
            Reason::IdleTimeout => "idle_timeout",
            Reason::Cancelled => "cancelled",
            Reason::OutputLimit => "output_limit",
        }
    }

    /// What a run, or a pipeline, says that was stopped for this: `timed out after 2 s (stopped
    /// in 0.011 s)`. None of one that was not.
    pub(crate) fn stopped_after(
        self,
        limit: Option<ReachedLimit>,
        duration: Duration,
        stop: Option<Duration>,
    ) -> Option<String> {
        let limit = |otherwise| match limit {
            Some(limit) => limit.to_string(),
            None => String::from(otherwise),
        };
        let mut text = match self {
            Reason::Finished => return None,
            Reason::Timeout => format!("timed out after {}", limit("its time")),
            Reason::IdleTimeout => format!("was silent for {}", limit("too long")),
            Reason::Cancelled => {
                let after = duration.saturating_sub(stop.unwrap_or_default());
                format!("was cancelled after {}", Seconds(after))
            }
            Reason::OutputLimit => format!("wrote more than {}", limit("the limit")),
        };
        if let Some(stop) = stop {
            let _ = write!(text, " (stopped in {})", Seconds(stop));
        }
        Some(text)
    }
}

/// Figures of one pipe.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StreamInfo {
    /// How many bytes were read.
    pub bytes: u64,
    /// How many of them are in the result.
    pub kept_bytes: u64,
    /// How many of them went nowhere: what a limit left out, of the result or, where nothing is
    /// kept, of what is passed on.
    pub dropped_bytes: u64,
    /// Offset in the kept bytes where the dropped ones would stand.
    pub dropped_at: Option<u64>,
    /// How long the program could not write because the pipe was full. An upper
    /// bound; zero if it never was. None of a [pty](crate::Command::pty): whether
    /// that is full cannot be told from the end where it is read.
    pub blocked: Option<Duration>,
    /// True if all is here that the program itself wrote; false when the run was
    /// stopped before the end of the stream.
    pub complete: bool,
    /// Processes that could still have written when the run was over.
    pub held_by: Vec<Holder>,
    /// True if every process could be asked. If not, there may be more holders.
    pub held_by_complete: bool,
    /// The file that has all bytes, if one was asked for.
    pub kept_at: Option<PathBuf>,
    /// Reason for which that file has not all bytes.
    pub kept_error: Option<String>,
    /// Bytes that a callback or a copy had not taken when the run was over.
    pub undelivered_bytes: u64,
}

/// The result of a run that ended by itself, or that was to be returned anyway.
#[doc(alias = "CompletedProcess")]
#[derive(Clone)]
#[non_exhaustive]
pub struct Output {
    /// Everything but the data.
    pub report: Report,
    /// The captured bytes; empty where nothing was captured.
    pub stdout: Vec<u8>,
    /// The captured bytes; empty where nothing was captured.
    pub stderr: Vec<u8>,
    /// The order in which both were read, if asked for.
    pub merged: Option<Vec<Segment>>,
}

/// The data only as far as a person reads: an `unwrap()` of an error should not
/// print a gigabyte.
impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Data<'a>(&'a [u8], Option<(u64, u64)>);
        impl fmt::Debug for Data<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let shown = &self.0[..self.0.len().min(200)];
                let more = self.0.len() - shown.len();
                let meeting = self.1.map(|(at, bytes)| (usize::try_from(at), bytes));
                match meeting {
                    Some((Ok(at), dropped)) if at <= shown.len() => {
                        let (head, tail) = (shown[..at].escape_ascii(), shown[at..].escape_ascii());
                        write!(f, "b\"{head}\" [… {dropped} bytes dropped …] b\"{tail}\"")?;
                    }
                    _ => write!(f, "b\"{}\"", shown.escape_ascii())?,
                }
                match more {
                    0 => Ok(()),
                    more => write!(f, " and {more} bytes more"),
                }
            }
        }
        let dropped = |info: &Option<StreamInfo>| info.as_ref().and_then(StreamInfo::dropped);
        f.debug_struct("Output")
            .field("report", &self.report)
            .field(
                "stdout",
                &Data(&self.stdout, dropped(&self.report.stdout_info)),
            )
            .field(
                "stderr",
                &Data(&self.stderr, dropped(&self.report.stderr_info)),
            )
            .field("merged", &self.merged.as_ref().map(Vec::len))
            .finish()
    }
}

impl Output {
    /// How the program ended.
    pub fn status(&self) -> Exit {
        self.report.status
    }

    /// True if the run ended by itself and its program with code 0, or one of the
    /// [`ok_codes`](crate::Command::ok_codes).
    pub fn success(&self) -> bool {
        self.report.success()
    }

    /// The text of an error: [`Report::explain`] with what was captured.
    pub fn explain(&self) -> String {
        let last_words = match self.report.last_words_of {
            StdStream::Stdout => &self.stdout,
            StdStream::Stderr => &self.stderr,
        };
        self.report.explain(last_words)
    }
}

impl Report {
    /// True if the run ended by itself and its program with code 0, or one of
    /// [`ok_codes`](Report::ok_codes).
    pub fn success(&self) -> bool {
        self.reason == Reason::Finished && self.exited_well()
    }

    /// True if the program exited with code 0 or one that is allowed, whatever ended the run.
    pub(crate) fn exited_well(&self) -> bool {
        let is_allowed = |code| code == 0 || self.ok_codes.contains(&code);
        self.status.code().is_some_and(is_allowed)
    }

    /// The command as a shell takes it; of a long one the beginning and the end.
    pub fn command(&self) -> String {
        quote(&self.argv)
    }

    /// How the run came out, in a line without the command: `exited with code 3`,
    /// `killed by SIGSEGV (core dumped)`, `timed out after 2 s (stopped in 0.011 s)`.
    pub fn outcome(&self) -> String {
        let stopped = self
            .reason
            .stopped_after(self.limit, self.duration, self.stop_duration);
        stopped.unwrap_or_else(|| self.with_oom_kills(self.status.to_string()))
    }

    /// The end of the program, with what is known of a want of memory. That the kernel has killed
    /// in its cgroup is known; whom, and whether it has killed this program, is not.
    fn with_oom_kills(&self, end: String) -> String {
        let Some(kills) = &self.oom_kills else {
            return end;
        };
        let processes = match kills.processes {
            1 => String::from("1 process"),
            n => format!("{n} processes"),
        };
        let cgroup = end_of(&kills.cgroup);
        format!(
            "{end}; out of memory: the kernel killed {processes} of its cgroup {cgroup} while it ran"
        )
    }

    /// The outcome in a sentence: `sh -c 'sleep 9' timed out after 2 s (stopped in 0.011 s)`.
    pub fn summary(&self) -> String {
        let command = self.command();
        match self.reason {
            Reason::Finished => {
                let end = self.with_oom_kills(predicate(self.status));
                format!("{command} {end}")
            }
            _ => format!("{command} {}", self.outcome()),
        }
    }

    /// The text of an error: the outcome, what the processes were doing, who
    /// held what, and the end of stderr if there is any, or of stdout where that is
    /// [`last_words_of`](Report::last_words_of).
    pub fn explain(&self, stderr: &[u8]) -> String {
        self.explain_to(stderr, UNTIL_EXIT)
    }

    /// [`explain`](Self::explain) for users of a front end, in which
    /// [`Until::Exit`](crate::Until::Exit) is written as `until_exit`.
    pub fn explain_to(&self, stderr: &[u8], until_exit: &str) -> String {
        let mut text = self.summary();
        if self.reason != Reason::Finished {
            let _ = write!(text, "\n  the program {}", predicate(self.status));
        }
        if let Some(why) = self.why() {
            let _ = write!(text, "\n  why: {why}");
        }
        if !self.processes.is_empty() {
            text.push_str("\n  when it was stopped:");
            for process in &self.processes {
                let _ = write!(text, "\n    {process}");
            }
        }
        for (name, info) in [("stdout", &self.stdout_info), ("stderr", &self.stderr_info)] {
            if let Some(info) = info {
                info.explain(name, self.pid, &mut text);
            }
        }
        if self.held_after_exit {
            let _ = write!(
                text,
                "\n  hint: the program had exited; {until_exit} does not wait for those that hold \
                 its pipes"
            );
        }
        if !self.survivors.is_empty() {
            text.push_str("\n  still there, could not be ended:");
            for survivor in &self.survivors {
                let _ = write!(text, "\n    {survivor}");
            }
        }
        let info = match self.last_words_of {
            StdStream::Stdout => &self.stdout_info,
            StdStream::Stderr => &self.stderr_info,
        };
        let dropped = info.as_ref().and_then(StreamInfo::dropped);
        quote_end(self.last_words_of, stderr, dropped, &mut text);
        text
    }

    /// Why the program did not end, in one sentence, if its [`diagnosis`](Report::diagnosis)
    /// tells: that it waits for input, and from whom; that it is in a deadlock, and with whom.
    pub fn why(&self) -> Option<String> {
        self.diagnosis.as_ref()?.why()
    }
}

/// Adds the last lines of an output of this name, if there are any.
pub(super) fn quote_end(
    of: StdStream,
    data: &[u8],
    dropped: Option<(u64, u64)>,
    text: &mut String,
) {
    let tail = tail(data, dropped);
    if tail.is_empty() {
        return;
    }
    let name = match of {
        StdStream::Stdout => "its output",
        StdStream::Stderr => "stderr",
    };
    let _ = write!(text, "\n  the end of {name}:");
    for line in tail.lines() {
        let _ = write!(text, "\n    {line}");
    }
}

/// The name of a cgroup; of a long one the end, where its own name is.
fn end_of(cgroup: &str) -> String {
    const MOST: usize = 120;
    let count = cgroup.chars().count();
    match count > MOST {
        true => format!("…{}", cgroup.chars().skip(count - MOST).collect::<String>()),
        false => cgroup.to_owned(),
    }
}

/// A status as what a sentence says of a program.
pub(crate) fn predicate(status: Exit) -> String {
    match status {
        Exit::Signal { .. } => format!("was {status}"),
        _ => status.to_string(),
    }
}

impl StreamInfo {
    /// The place among the kept bytes where others were dropped, and how many.
    fn dropped(&self) -> Option<(u64, u64)> {
        self.dropped_at.map(|at| (at, self.dropped_bytes))
    }

    /// Notes what came of a copy: with what error it ended, and how much it did not get.
    pub(super) fn note_copy(&mut self, role: &ConsumerRole, error: Option<String>, missing: u64) {
        match role {
            ConsumerRole::FullFile(path) => {
                self.kept_at = Some(path.clone());
                self.kept_error = match error {
                    Some(error) => Some(format!("{error}; {missing} bytes are missing")),
                    None if missing > 0 => {
                        Some(format!("{missing} bytes were not written in time"))
                    }
                    None => None,
                };
            }
            ConsumerRole::Required | ConsumerRole::Relay | ConsumerRole::Optional => {
                self.undelivered_bytes += missing;
            }
        }
    }

    /// Notes that so many bytes came beyond a limit, and went nowhere.
    pub(super) fn note_excess(&mut self, excess: u64) {
        if excess == 0 {
            return;
        }
        self.dropped_bytes = self.dropped_bytes.max(excess);
        if self.kept_at.is_some() && self.kept_error.is_none() {
            self.kept_error = Some(format!(
                "it ends at the limit, {excess} bytes before the end"
            ));
        }
    }

    pub(super) fn explain(&self, name: &str, program: i32, text: &mut String) {
        // A program that holds its own pipe is no news.
        let others = self.held_by.iter().filter(|holder| holder.pid != program);
        let holders: Vec<_> = others.map(ToString::to_string).collect();
        if !holders.is_empty() {
            let _ = write!(text, "\n  {name} was held open by {}", holders.join(", "));
            if !self.held_by_complete {
                text.push_str(", perhaps others that cannot be seen");
            }
        }
        if self.dropped_bytes > 0 {
            let _ = write!(
                text,
                "\n  {} of {} bytes of {name} were dropped by the limit",
                self.dropped_bytes, self.bytes
            );
        }
        if let Some(path) = &self.kept_at {
            let _ = write!(text, "\n  all of {name} is in {}", path.display());
            if let Some(error) = &self.kept_error {
                let _ = write!(text, ", but not whole: {error}");
            }
        }
        if let Some(blocked) = self.blocked.filter(|&b| b > Duration::from_millis(100)) {
            let _ = write!(
                text,
                "\n  the program could not write to {name} for up to {}: the pipe was full",
                Seconds(blocked)
            );
        }
        if self.undelivered_bytes > 0 {
            let _ = write!(
                text,
                "\n  {} bytes of {name} were not taken by a callback or copy in time",
                self.undelivered_bytes
            );
        }
    }
}

/// The most of stderr that an error quotes.
const TAIL_LINES: usize = 10;
const TAIL_BYTES: usize = 2000;

/// The last lines, with a mark where bytes were `dropped` among them: at this place, so many.
fn tail(stderr: &[u8], dropped: Option<(u64, u64)>) -> String {
    let from = stderr.len().saturating_sub(TAIL_BYTES);
    let meeting = dropped.and_then(|(at, bytes)| {
        let at = usize::try_from(at).ok()?;
        (from <= at && at <= stderr.len()).then_some((at, bytes))
    });
    let text = match meeting {
        None => String::from_utf8_lossy(&stderr[from..]).into_owned(),
        Some((at, bytes)) => format!(
            "{}[… {bytes} bytes dropped …]{}",
            String::from_utf8_lossy(&stderr[from..at]),
            String::from_utf8_lossy(&stderr[at..])
        ),
    };
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines[from..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_shows_where_bytes_were_dropped() {
        assert_eq!(tail(b"one\ntwo\n", None), "one\ntwo");
        let marked = tail(b"one\ntwo\n", Some((5, 99)));
        assert_eq!(marked, "one\nt[… 99 bytes dropped …]wo");
        // It is before what is shown.
        let long = [b"a".repeat(9), b"b".repeat(TAIL_BYTES)].concat();
        assert_eq!(tail(&long, Some((5, 99))), "b".repeat(TAIL_BYTES));
        assert!(tail(&long, Some((9, 99))).starts_with("[… 99 bytes dropped …]bbb"));
        // A character that was cut in two.
        let marked = tail("ä\n".as_bytes(), Some((1, 7)));
        assert_eq!(marked, "\u{fffd}[… 7 bytes dropped …]\u{fffd}");
    }
}
