//! Finding faults without a start.

use super::builder::Command;
use crate::run::Error;
use crate::spec::Purpose;

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
        self.hooks.validate(&self.spec, Purpose::Run)?;
        self.spec.validate(Purpose::Run)?;
        Ok(())
    }
}
