//! The processes of a program: which of them hold its pipes, and what they are doing.

use crate::std_stream::{PerStream, StdStream};
use procwright_process::holders::{self, Holders, PipeHolders, PipeId, RunPipe};
use procwright_process::process_handle::ProcessHandle;
use procwright_process::{ProcessTree, Scope, StopTarget, Stopping};

/// The holders of the writing ends of the output pipes among `pipes`, of a program that was
/// started at `started` in ticks since boot. Looks through all processes that are not older.
pub(crate) fn writers_of(pipes: &[RunPipe], started: u64) -> PerStream<Option<Holders>> {
    let ids: Vec<PipeId> = pipes.iter().map(|pipe| pipe.id).collect();
    if ids.is_empty() {
        return PerStream::default();
    }
    // The ticks may be a second off.
    let since = started.saturating_sub(100);
    let ends = holders::of_pipes(&ids, std::process::id().cast_signed(), since);
    writers(pipes, ends.ok())
}

/// The holders of the writing ends of the output pipes among `pipes`, by those of both
/// ends; none if the look was refused.
fn writers(pipes: &[RunPipe], ends: Option<Vec<PipeHolders>>) -> PerStream<Option<Holders>> {
    let mut found = PerStream::default();
    let mut ends = ends.map(Vec::into_iter);
    for pipe in pipes {
        let ends = ends.as_mut().and_then(Iterator::next);
        let Some(stream) = stream_of(pipe) else {
            continue;
        };
        found[stream] = Some(match ends {
            // By the name of a terminal that has ended, others may have been found.
            Some(ends) if pipe.has_its_name() => {
                // A process that holds our end as well is a copy of ourselves,
                // forked by another thread and about to become its program.
                let mut writers = ends.writers;
                writers
                    .list
                    .retain(|writer| !ends.readers.list.contains(writer));
                writers
            }
            // The look was refused, which does not say that nobody holds it.
            _ => Holders::default(),
        });
    }
    found
}

/// The output stream that a pipe carries; none for that of stdin.
pub(crate) fn stream_of(pipe: &RunPipe) -> Option<StdStream> {
    let mut both = StdStream::BOTH.into_iter();
    both.find(|stream| stream.name() == pipe.label)
}

/// The processes of a run before the first signal of its stop: afterwards it would only
/// show which of them obeyed.
#[derive(Debug)]
pub(crate) struct Before {
    /// The activity of every process, a line each.
    pub(crate) activities: Vec<String>,
    /// Those that hold the writing ends of the output pipes.
    pub(crate) holders: PerStream<Option<Holders>>,
}

impl Before {
    /// Looks at those that a pass over all processes has found. The signal waits for this,
    /// so that nobody else is looked at: the descriptors of all processes of a machine
    /// would take seconds where there are thousands. A process that is older than the
    /// program can hold a pipe through a socket alone; it gets no signal, and is found when
    /// the stop is over.
    fn of(tree: &ProcessTree, pipes: &[RunPipe]) -> Before {
        let activities = tree.living().into_iter().filter_map(|stat| {
            let activity = holders::activity(stat.pid, pipes).ok()?;
            Some(activity.to_string())
        });
        let activities = activities.collect();
        let ids: Vec<PipeId> = pipes.iter().map(|pipe| pipe.id).collect();
        let ends = match ids.is_empty() {
            true => Vec::new(),
            false => holders::of_pipes_among(&ids, &tree.possible_holders()),
        };
        Before {
            activities,
            holders: writers(pipes, Some(ends)),
        }
    }

    /// Looks at those whom `machine` has found, a stop of `target` that has sent no signal
    /// yet. `root` is the program's handle.
    pub(crate) fn first_signal_of(
        machine: &Stopping,
        target: StopTarget,
        root: Option<ProcessHandle>,
        pipes: &[RunPipe],
    ) -> Before {
        match machine.tree() {
            Some(tree) => Before::of(tree, pipes),
            // A stop of less than the tree, or one that kills at once, has not looked.
            None => Before::now(target, root, pipes),
        }
    }

    /// Looks at the processes of a program that is not being stopped.
    pub(crate) fn now(
        target: StopTarget,
        root: Option<ProcessHandle>,
        pipes: &[RunPipe],
    ) -> Before {
        let mut tree = ProcessTree::new(target, Scope::Tree, root);
        match tree.look() {
            Ok(()) => Before::of(&tree, pipes),
            Err(_) => Before::unknown(pipes),
        }
    }

    /// What is told where the processes cannot be listed.
    fn unknown(pipes: &[RunPipe]) -> Before {
        Before {
            activities: Vec::new(),
            holders: writers(pipes, None),
        }
    }
}
