//! Who holds the outputs of a child that has ended.

use super::event::Event;
use crate::child::Child;

impl Child {
    /// What a [`run`](crate::Command::run) tells when its program has been gone for a while and
    /// others still hold its pipes, for whoever reads a child's streams to their ends: an
    /// [`Event::Held`] of the captured outputs whose ends were not seen. None while the program
    /// lives, and when there are no such outputs.
    ///
    /// ```
    /// use procwright::{Command, Event};
    ///
    /// let child = Command::shell("sleep 60 & exit").spawn()?;
    /// child.wait(None)?;
    /// let Some(Event::Held { streams, holders, .. }) = child.held() else { unreachable!() };
    /// assert_eq!(streams, "stdout and stderr");
    /// // Its name is that of the shell until it has become `sleep`.
    /// assert!(["sh", "sleep"].contains(&&*holders[0].name));
    /// child.stop();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Blocking
    /// While all processes of the machine are looked through: some milliseconds, and more where
    /// there are thousands.
    pub fn held(&self) -> Option<Event> {
        self.try_wait()?;
        let monitors = self.output_monitors().as_ref();
        let open = monitors.map(|one| one.as_ref().is_some_and(|one| !one.totals().complete));
        let holders = self.holders(open)?;
        Some(Event::of_holders(self.argv(), holders, None))
    }
}
