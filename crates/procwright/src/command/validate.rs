//! What can be found wrong without a start.

use super::Command;
use crate::child;
use crate::run::{self, Error};

impl Command<'_> {
    /// Finds what [`run`](Command::run) would find wrong before it starts
    /// anything: values that cannot be used, a user that does not exist. Opens no
    /// file, and does not look for the program.
    ///
    /// ```
    /// use procwright::{Command, spec::Account};
    ///
    /// let command = Command::new("true").user(Account::Name("nobody-at-all".into()));
    /// assert!(command.validate().is_err());
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`], as there.
    pub fn validate(&self) -> Result<(), Error> {
        run::check(&self.spec)
            .map_err(child::Unstarted::from)
            .and_then(|()| child::check(&self.spec))
            .map_err(|unstarted| Error::unstarted(unstarted, &self.spec))
    }
}
