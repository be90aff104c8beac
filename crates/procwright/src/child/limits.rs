//! What a child that its caller holds is stopped for, beside a stop that the caller asks for.

use std::time::Duration;

use super::streams::InputListener;
use crate::spec::{Beyond, Spec, Until};
use procwright_os::time::Timeout;
use procwright_process::Cancel;

/// What ends a child, or its streams, without a call of who holds it.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) timeout: Timeout,
    pub(super) idle_timeout: Timeout,
    /// The most bytes of one stream.
    pub(super) bytes: Option<u64>,
    pub(super) cancel: Option<Cancel>,
    /// Whether the streams end with the program.
    pub(super) ends_at_exit: bool,
    /// Who is to be told that it waits for input.
    pub(super) for_input: Option<InputListener>,
}

impl Limits {
    /// Those of `spec`, none if there is nothing to be looked after.
    pub(super) fn of(
        spec: &Spec,
        cancel: Option<Cancel>,
        for_input: Option<InputListener>,
    ) -> Option<Limits> {
        let fails = spec.limit.filter(|limit| limit.beyond == Beyond::Fail);
        let limits = Limits {
            timeout: spec.timeout,
            idle_timeout: spec.idle_timeout,
            bytes: fails.map(|limit| limit.bytes),
            cancel,
            ends_at_exit: spec.until == Until::Exit,
            for_input,
        };
        let is_any = !limits.timeout.is_never()
            || !limits.idle_timeout.is_never()
            || limits.bytes.is_some()
            || limits.cancel.is_some()
            || limits.ends_at_exit
            || limits.for_input.is_some();
        is_any.then_some(limits)
    }
}

/// The limit that a child was stopped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReachedBound {
    /// Its time.
    Timeout(Option<Duration>),
    /// Its time without a byte of output.
    IdleTimeout(Option<Duration>),
    /// The bytes of one stream.
    Bytes(u64),
    /// Somebody has cancelled it.
    Cancel,
}

impl ReachedBound {
    /// The word for it in a trace.
    pub(super) const fn name(self) -> &'static str {
        match self {
            ReachedBound::Timeout(_) => "timeout",
            ReachedBound::IdleTimeout(_) => "idle_timeout",
            ReachedBound::Bytes(_) => "output_limit",
            ReachedBound::Cancel => "cancelled",
        }
    }
}
