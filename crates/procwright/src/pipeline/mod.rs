//! Programs joined by pipes: each writes into the next one, and all have one result.
//!
//! ```
//! use procwright::Command;
//!
//! let output = Command::new("yes").pipe(Command::new("head").arg("-1")).run()?;
//! assert_eq!(output.stdout, b"y\n");
//! assert!(output.success()); // `yes` died of SIGPIPE, since `head` had read enough
//! # Ok::<(), procwright::pipeline::Error>(())
//! ```
//!
//! The stages are joined by pipes of the kernel: no byte between two of them passes through
//! this process, which holds no end of these pipes either, unless a [buffer](Pipeline::elastic), a
//! [function](Pipeline::pipe_fn) or a [fan](Pipeline::fan) is among them. Stdin of the first stage,
//! stdout of the last and stderr of each are what their [`Command`](crate::Command) says, as with a
//! [`run`](crate::Command::run). All are started, or none; all share one deadline; and when
//! one is to be stopped, all are.
//!
//! One that is [spawned](Pipeline::spawn) is a [`PipelineChild`]: its caller has its streams while
//! it goes on, and it is the very same otherwise.
//!
//! A pipeline succeeds by a [`SuccessRule`], and each stage is [judged](Judgement): one that
//! only found that the next had read enough is forgiven, one that failed because the next had
//! failed is collateral, and what is left is to blame.

mod builder;
mod child;
mod driver;
mod error;
#[cfg(feature = "serde")]
mod json;
mod judgement;
mod ongoing;
mod report;
mod spawn;

pub use crate::run::{FunctionEnd, StageInput, StageMoment, StageOutput};
pub use builder::Pipeline;
pub use child::{PipelineChild, PipelineSleep, PipelineWait};
pub use error::Error;
pub use judgement::{FunctionReport, Judgement, SuccessRule};
pub use ongoing::OngoingPipeline;
pub use report::{PipelineCollected, PipelineOutput, PipelineReport, StageReport};
