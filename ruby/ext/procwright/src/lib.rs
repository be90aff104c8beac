//! The Ruby front end: the private module `Procwright::Native`.
//!
//! The public classes are in `lib/`, in Ruby. Here is their access to the core: arguments
//! that it checks, one function that runs, children and their streams, processes, sets of
//! things to wait for, queues and liveness.
//!
//! `ruby/README.md` has the order of these modules: each uses only those below it, and
//! `ruby/test/test_layers.rb` holds them to that.
//!
//! No object here refers to another of Ruby's: the collector has nothing to mark,
//! nothing to write a barrier for, and nothing to move.
#![deny(unsafe_code)]

mod arguments;
mod cancel;
mod child;
mod communicate;
mod errors;
mod event;
mod event_handover;
mod exchange;
mod explained;
mod fiber;
mod function_handover;
mod gvl;
mod handover;
mod interruptible;
mod liveness;
mod map;
mod merged;
mod options;
mod output_tap;
mod pipe_end;
mod pipeline;
mod pipeline_child;
mod process;
mod queue;
mod read_buffer;
mod reader;
mod report;
mod run;
mod setup;
mod shared_reader;
mod signal_pipe;
mod string;
mod turns;
mod wait;
mod writer;

use std::alloc::System;

use magnus::{Error, Module, Ruby};

/// Ruby frees the memory that `string` hands over by `free`, so it has to come from `malloc`.
#[global_allocator]
static ALLOCATOR: System = System;

#[magnus::init(name = "native")]
fn init(ruby: &Ruby) -> Result<(), Error> {
    let native = ruby.define_module("Procwright")?.define_module("Native")?;
    errors::define(&native)?;
    arguments::define(&native)?;
    setup::define(&native)?;
    cancel::define(ruby, &native)?;
    pipe_end::define(ruby, &native)?;
    event_handover::define(ruby, &native)?;
    function_handover::define(ruby, &native)?;
    run::define(&native)?;
    pipeline::define(&native)?;
    pipeline_child::define(ruby, &native)?;
    map::define(ruby, &native)?;
    child::define(ruby, &native)?;
    reader::define(ruby, &native)?;
    handover::define(&native)?;
    writer::define(ruby, &native)?;
    merged::define(ruby, &native)?;
    communicate::define(ruby, &native)?;
    process::define(ruby, &native)?;
    queue::define(ruby, &native)?;
    liveness::define(ruby, &native)?;
    wait::define(&native)
}
