//! `--explain-after` and `--explain-to`: why the program does not end.

use std::path::Path;

use procwright::explain::WORTH_A_LOOK;
use procwright::time::Timeout;
use procwright::{Event, Reason, Report, Spec};
use procwright_os::sync::Mutex;
use procwright_os::time::Seconds;

use crate::args::RunArgs;
use crate::exit::Termination;
use crate::message;
use crate::report_file::ReportFile;

/// Where explanations go: to stderr, or to the file of `--explain-to`.
#[derive(Debug)]
pub(super) struct Explanations {
    file: Option<Mutex<ReportFile>>,
    timeout: Timeout,
    idle_timeout: Timeout,
}

impl Explanations {
    /// Opens and empties the file, if there is one.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn open(args: &RunArgs, spec: &Spec) -> Result<Explanations, Termination> {
        let open = |path: &std::path::PathBuf| ReportFile::open_emptied(path);
        let file = args.explain_to.as_ref().map(open).transpose()?;
        Ok(Explanations {
            file: file.map(Mutex::new),
            timeout: spec.timeout,
            idle_timeout: spec.idle_timeout,
        })
    }

    /// Why nothing is known of what the processes waited for when a limit came.
    fn why_not(&self, reason: Reason) -> String {
        let limit = match reason {
            Reason::IdleTimeout => self.idle_timeout,
            _ => self.timeout,
        };
        match limit.duration() {
            Some(limit) if limit < WORTH_A_LOOK => format!(
                "What they waited for was not looked at: that takes a limit of a second or more, \
                 and this one was {}.",
                Seconds(limit)
            ),
            _ => String::from(
                "What they waited for is not known: the looks at it, which begin shortly before \
                 the limit, were not over when it came (the machine is busy, or has very many \
                 processes), or could not be made.\n  hint: a longer limit and --explain-after \
                 leave more time, and procwright doctor says what it cannot look at",
            ),
        }
    }

    /// Tells of an examination that was asked for, which has found something out or not.
    pub(super) fn tell(&self, event: &Event, is_found: bool) {
        match (&self.file, is_found) {
            (Some(file), true) => {
                let text = format!("{event}\n\n");
                let to = add(file, &text);
                message::post(format_args!("{}\n  {to}", event.fact()));
            }
            _ => message::post(event),
        }
    }

    /// Writes why a limit came, if one did, before anything else is said of that.
    pub(super) fn tell_limit(&self, report: &Report) {
        let Some(file) = &self.file else {
            return;
        };
        if !matches!(report.reason, Reason::Timeout | Reason::IdleTimeout) {
            return;
        }
        let details = match &report.diagnosis {
            Some(diagnosis) => diagnosis.text(false),
            None => format!("{}\n", self.why_not(report.reason)),
        };
        let text = format!("{}\n\n{details}\n", report.explain_to(&[], "--until exit"));
        let _ = add(file, &text);
    }
}

/// Adds a text to the file, and says where it is, or why it is not.
fn add(file: &Mutex<ReportFile>, text: &str) -> String {
    let mut file = file.lock();
    let added = file.append(text);
    let path = |path: &Path| format!("{:?}", path.display());
    match added {
        Ok(()) => format!("who waits for whom: {}", path(file.path())),
        Err(error) => {
            let trouble = format!(
                "cannot write the explanation to {}: {error}",
                path(file.path())
            );
            message::post(&trouble);
            trouble
        }
    }
}
