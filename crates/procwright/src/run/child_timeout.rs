//! What is to be said of a child when a wait for it has come to its time.

use std::fmt::{Display, Write as _};

use super::output::{StreamInfo, predicate, quote_end};
use crate::child::{Child, writers_of};
use crate::quote::quote;
use crate::std_stream::PerStream;
use procwright_explain::WORTH_A_LOOK;
use procwright_os::time::{Seconds, Timeout};
use procwright_process::Exit;
use procwright_process::holders::Holders;

impl Child {
    /// Why it has not gone on for so long, in the words of [`waiting_for`](Child::waiting_for):
    /// what whoever has waited in vain for a line of it, or for its end, wants to know. `None`
    /// after less than a second, for which nobody looks, and where it waits for nobody else.
    ///
    /// ```
    /// use procwright::{Command, Stdin};
    /// use std::time::Duration;
    ///
    /// let child = Command::new("cat").stdin(Stdin::Pipe).spawn()?;
    /// assert_eq!(child.why_after(Duration::from_millis(999)), None);
    /// // Nothing announces that a program has begun to wait.
    /// let why = loop {
    ///     if let Some(why) = child.why_after(Duration::from_secs(1)) {
    ///         break why;
    ///     }
    /// };
    /// assert!(why.contains("waits for input on stdin"), "{why}");
    /// child.stop();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Blocking
    /// While all processes of the machine are looked at.
    pub fn why_after(&self, waited: impl Into<Timeout>) -> Option<String> {
        let waited = waited.into().duration()?;
        let waiting = (waited >= WORTH_A_LOOK).then(|| self.waiting_for().ok())?;
        waiting?.why().map(str::to_owned)
    }

    /// What to put behind the error of who has waited in vain for a line of it, in lines that begin
    /// with `\n`: [why it has not gone on](Child::why_after), or where it waits for nobody else,
    /// what its processes are doing. Of one that has ended it says who holds its outputs open, of
    /// whom the end of these waits. Empty after less than a second, for which nobody looks.
    ///
    /// ```
    /// use procwright::Command;
    /// use std::time::Duration;
    ///
    /// let child = Command::shell("while :; do :; done").spawn()?;
    /// assert_eq!(child.explain_silence(Duration::from_millis(999)), "");
    /// let text = child.explain_silence(Duration::from_secs(1));
    /// assert!(text.starts_with("\n  its processes:\n    sh (pid "), "{text}");
    /// child.stop();
    ///
    /// let child = Command::shell("sleep 60 & exit 3").spawn()?;
    /// child.wait(None)?;
    /// let text = child.explain_silence(Duration::from_secs(1));
    /// let held = "\n  it has exited with code 3; stdout and stderr are still held open by sleep (pid";
    /// assert!(text.starts_with(held), "{text}");
    /// child.stop();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Blocking
    /// While all processes of the machine are looked at, twice at most.
    pub fn explain_silence(&self, waited: impl Into<Timeout>) -> String {
        let Some(waited) = waited.into().duration().filter(|one| *one >= WORTH_A_LOOK) else {
            return String::new();
        };
        if let Some(why) = self.why_after(waited) {
            return format!("\n  why: {why}");
        }
        let mut text = String::new();
        let Some(exit) = self.try_wait() else {
            let (before, ..) = self.processes(PerStream::new(false, false));
            write_activities(false, &before.activities, &mut text);
            return text;
        };
        let open = self.open_outputs();
        let (before, pipes, started) = self.processes(open);
        if open.chosen().next().is_some() {
            let _ = write!(text, "\n  it has {}; ", past(exit));
            write_open(open, &writers_of(&pipes, started), &mut text);
            text.push_str(
                "\n  hint: with until exit, not eof, the streams end with the program, whoever \
                 else holds them",
            );
        }
        write_activities(true, &before.activities, &mut text);
        text
    }

    /// The outputs that come to us and have not come to their ends.
    fn open_outputs(&self) -> PerStream<bool> {
        let monitors = self.output_monitors().as_ref();
        monitors.map(|one| one.as_ref().is_some_and(|one| !one.totals().complete))
    }

    /// The text for a wait that has come to its time, in the words of a
    /// [`run`](crate::Command::run) that timed out: what each process is doing, who holds
    /// which stream, for how long the program could not write, and the end of `last_words`, which
    /// are what the caller has read of its stderr, or its [last words](Child::last_words). It tells a program that has not ended from one that
    /// has, and whose streams others hold open.
    ///
    /// ```
    /// use procwright::Command;
    /// use std::time::Duration;
    ///
    /// let mut child = Command::shell("sleep 60 & exit 3").spawn()?;
    /// let patience = Duration::from_secs(1);
    /// let mut talk = child.communicate("");
    /// assert!(talk.proceed(patience).is_err());
    /// let text = child.explain_timeout(patience, b"");
    /// let told = "exited with code 3; after 1 s stdout and stderr are still held open by sleep";
    /// assert!(text.contains(told), "{text}");
    /// child.stop();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Blocking
    /// While all processes of the machine are looked through: some milliseconds, and more
    /// where there are thousands.
    pub fn explain_timeout(&self, waited: impl Into<Timeout>, last_words: &[u8]) -> String {
        let waited = waited.into().duration().map(Seconds);
        let monitors = self.output_monitors().as_ref();
        let totals = monitors.map(|monitor| monitor.as_ref().map(|one| one.totals()));
        let open = totals.map(|one| one.is_some_and(|one| !one.complete));
        let (before, pipes, started) = self.processes(open);
        let mut text = quote(self.argv());
        let exit = self.try_wait();
        let holders = match exit {
            None => {
                text.push_str(" did not end");
                if let Some(waited) = waited {
                    let _ = write!(text, " within {waited}");
                }
                before.holders
            }
            Some(exit) => {
                let _ = write!(text, " {}; ", predicate(exit));
                if let Some(waited) = waited {
                    let _ = write!(text, "after {waited} ");
                }
                // Also who does not belong to it.
                let holders = writers_of(&pipes, started);
                write_open(open, &holders, &mut text);
                holders
            }
        };
        // A caller who waits again and again for a moment does not want to know why.
        if exit.is_none()
            && let Some(waited) = waited
            && let Some(why) = self.why_after(waited.0)
        {
            let _ = write!(text, "\n  why: {why}");
        }
        write_activities(exit.is_some(), &before.activities, &mut text);
        for (stream, (totals, held)) in totals.zip(holders) {
            let Some(totals) = totals else { continue };
            let mut info = StreamInfo {
                blocked: totals.refused,
                held_by_complete: true,
                ..StreamInfo::default()
            };
            if let (Some(held), None) = (held, exit) {
                info.held_by_complete = held.complete;
                info.held_by = held.list;
            }
            info.explain(stream.name(), self.pid(), &mut text);
        }
        quote_end(self.last_words_of(), last_words, None, &mut text);
        text
    }
}

/// How it has ended, behind "it has".
fn past(exit: Exit) -> String {
    match exit {
        Exit::Signal { .. } => format!("been {exit}"),
        _ => exit.to_string(),
    }
}

/// Says what its processes are doing, or those that it has left, if there are any.
fn write_activities(has_ended: bool, activities: &[impl Display], text: &mut String) {
    if activities.is_empty() {
        return;
    }
    text.push_str(match has_ended {
        false => "\n  its processes:",
        true => "\n  processes that it has left:",
    });
    for activity in activities {
        let _ = write!(text, "\n    {activity}");
    }
}

/// Says which streams are open, and who holds them.
fn write_open(open: PerStream<bool>, holders: &PerStream<Option<Holders>>, text: &mut String) {
    let names: Vec<_> = open.chosen().map(|stream| stream.name()).collect();
    if names.is_empty() {
        text.push_str("what it wrote was not taken in time");
        return;
    }
    let mut all = Holders::nobody();
    for (stream, held) in holders.iter() {
        if let Some(held) = held.as_ref().filter(|_| open[stream]) {
            all.absorb(held.clone());
        }
    }
    let be = if names.len() == 1 { "is" } else { "are" };
    let who: Vec<_> = all.list.iter().map(ToString::to_string).collect();
    let who = match who.is_empty() {
        true => String::from("a process that cannot be seen"),
        false => who.join(", "),
    };
    let _ = write!(
        text,
        "{} {be} still held open by {who}",
        names.join(" and ")
    );
    if !all.complete && !all.list.is_empty() {
        text.push_str(", perhaps others that cannot be seen");
    }
}
