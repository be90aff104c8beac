//! Pipes that hold less than their user takes for granted.
//!
//! A new pipe has 16 pages until the pipes of its user have as many as
//! `fs.pipe-user-pages-soft` says; from then on it has two. How large somebody else's pipe is
//! nobody is told who does not open it, so that what is said comes from their number.

use std::collections::BTreeSet;

use super::seen::Judge;
use crate::graph::{Edge, Why};
use crate::scan;
use crate::world::Object;

/// Pages of a pipe that is made within the budget.
const PAGES: u64 = 16;

impl Judge<'_> {
    /// What is to be known of a full pipe in `edges`, if the user of its writer has so many
    /// others that it may be a small one. Root has no budget.
    pub(super) fn small_pipes(&self, edges: &[Edge]) -> Option<String> {
        let writes_to_pipe = |edge: &&Edge| {
            matches!(
                edge.why,
                Why::Writes {
                    of: Object::Pipe(_),
                    ..
                }
            )
        };
        let writer = edges.iter().find(writes_to_pipe)?.from;
        let uid = self.process(writer)?.uid.filter(|uid| *uid != 0)?;
        let budget = scan::pipe_budget().filter(|budget| *budget != 0)?;
        let of_user = self.second.processes.values();
        let of_user = of_user.filter(|process| process.uid == Some(uid));
        let fds = of_user.flat_map(|process| process.fds.iter().flatten());
        let pipes: BTreeSet<Object> = fds
            .map(|fd| fd.of)
            .filter(|of| matches!(of, Object::Pipe(_)))
            .collect();
        (pipes.len() as u64 * PAGES >= budget).then(|| {
            format!(
                " The pipe may hold 8 KiB alone: user {uid} has {} of them, and beyond \
                 fs.pipe-user-pages-soft ({budget} pages) a new one has two pages instead of 16.",
                pipes.len()
            )
        })
    }
}
