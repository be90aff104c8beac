//! The queue between a child and its parent, made before the child is.

use super::unstarted::Unstarted;
use crate::error::{Invalid, SpawnError, Step};
use crate::spec::Spec;
use procwright_liveness::inherited::Inheritance;
use procwright_queue::{Error, OurEnd};

/// Opens both ends of the queue that `spec` asks for.
pub(super) fn open(spec: &Spec) -> Result<(OurEnd, Option<Inheritance>), Unstarted> {
    let Some(channel) = spec.channel else {
        return Ok((OurEnd::None, None));
    };
    let opened = OurEnd::open(channel, spec.channel_options);
    let (ours, theirs) = opened.map_err(|error| match error {
        Error::Io(error) => match error.downcast::<Invalid>() {
            Ok(invalid) => Unstarted::from(invalid),
            Err(error) => SpawnError::new(Step::Channel, "", error).into(),
        },
        other => SpawnError::new(Step::Channel, "", other.into()).into(),
    })?;
    Ok((ours, Some(theirs)))
}
