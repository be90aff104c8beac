//! Side-by-side measurements against peers and bare-system-call floors.
//!
//! Every subject is a program of its own that does the work once and prints one
//! line of JSON. The harness runs the subjects in turn, round after round, so
//! that what disturbs the machine disturbs all of them.

pub mod capture;
pub mod cli;
pub mod cold;
pub mod command;
pub mod limit;
pub mod liveness;
pub mod machine;
pub mod plot;
pub mod queue;
pub mod report;
pub mod round;
pub mod ruby;
pub mod spawn;
pub mod startup;
pub mod stats;
pub mod streams;
pub mod subject;
pub mod subject_liveness;
pub mod subject_queue;
pub mod subject_streams;
pub mod subject_wait;
mod suite;
pub mod table;
pub mod tasks;
pub mod tools;
pub mod wait;
