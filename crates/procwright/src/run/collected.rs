//! The result of a run in memory of the caller's own kind.

use std::io;

use super::error::Foreign;
use super::output::Report;
use crate::drain::Segment;
use crate::error::BoxError;

/// The result of a run whose data went into memory of the caller's own kind.
///
/// [`Command::run_into`](crate::Command::run_into) returns it. Unlike
/// [`Command::run`](crate::Command::run) that makes no error of a timeout or a failed
/// check: a front end of another language turns these into its own exceptions.
#[derive(Debug)]
#[non_exhaustive]
pub struct Collected<M> {
    /// Everything but the data.
    pub report: Report,
    /// The captured bytes, none where nothing was captured.
    pub stdout: Option<M>,
    /// The captured bytes, none where nothing was captured.
    pub stderr: Option<M>,
    /// The order in which both were read, if asked for.
    pub merged: Option<Vec<Segment>>,
    /// The failure that ended the run, if one did.
    pub failure: Option<Failure>,
}

/// The cause of an end that neither the program nor the caller wanted.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// Code that takes part in the run failed.
    Foreign(Foreign, BoxError),
    /// The system failed us.
    Io(io::Error),
}
