//! The consumers that a caller asks for, and those that the spec does.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::consumer::{ConsumerKind, NewConsumer};
use super::full_file::{full_files, tee_file};
use crate::error::SpawnError;
use crate::spec::{Spec, c_string};
use crate::std_stream::{PerStream, StdStream};
use procwright_os::Invalid;

/// The consumers that a caller asks for, before anything is opened for them.
#[derive(Default)]
pub(crate) struct TapPlan {
    /// Consumers of one stream.
    pub(crate) of_one: PerStream<Vec<NewConsumer>>,
    /// Consumers of both streams, in the order of reading.
    pub(crate) of_both: Vec<NewConsumer>,
    /// Files that get copies, and of which streams.
    pub(crate) files: Vec<(PerStream<bool>, PathBuf)>,
}

impl TapPlan {
    /// Finds consumers of what does not come to us.
    ///
    /// # Errors
    /// The first that was found.
    pub(crate) fn validate(&self, spec: &Spec) -> Result<(), Invalid> {
        for (_, path) in &self.files {
            c_string(path.as_os_str().as_bytes(), || "tee".into())?;
        }
        let captures = spec.captures();
        let is_copied = |stream: StdStream| {
            let mut files = self.files.iter();
            // The copy of both is that of what there is.
            let is_filed = files.any(|(of, _)| of[stream] && !of.values().all(|of| *of));
            is_filed || !self.of_one[stream].is_empty()
        };
        for stream in StdStream::BOTH {
            if is_copied(stream) && !captures[stream] {
                return Err(Invalid::new(
                    "a callback or copy",
                    format!("of {stream} needs that stream captured"),
                    "what the program writes elsewhere is not seen here",
                ));
            }
        }
        if !self.is_empty() && captures.chosen().next().is_none() {
            return Err(Invalid::new(
                "a copy of both streams",
                "needs at least one of them captured or relayed",
                "what the program writes elsewhere is not seen here",
            ));
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of_both.is_empty()
            && self.files.is_empty()
            && self.of_one.values().all(|taps| taps.is_empty())
    }

    /// True if one of them gets lines.
    pub(crate) fn cuts_lines(&self) -> bool {
        let of_one = self.of_one.values().flatten();
        let mut all = of_one.chain(&self.of_both);
        all.any(|new| matches!(new.kind, ConsumerKind::Lines(_)))
    }

    /// Opens the files, that of `keep_full` as well, and gives all consumers with the streams that
    /// each gets.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub(crate) fn open(
        self,
        spec: &Spec,
    ) -> Result<Vec<(PerStream<bool>, NewConsumer)>, SpawnError> {
        let captures = spec.captures();
        let only = |one| PerStream::from_fn(|stream| stream == one);
        let mut consumers = Vec::new();
        for (stream, taps) in self.of_one {
            consumers.extend(taps.into_iter().map(|tap| (only(stream), tap)));
        }
        for (stream, file) in full_files(spec)? {
            consumers.extend(file.map(|file| (only(stream), file)));
        }
        for (streams, path) in self.files {
            let streams = streams
                .zip(captures)
                .map(|(of, is_captured)| of && is_captured);
            consumers.push((streams, tee_file(&path)?));
        }
        consumers.extend(self.of_both.into_iter().map(|tap| (captures, tap)));
        Ok(consumers)
    }
}
