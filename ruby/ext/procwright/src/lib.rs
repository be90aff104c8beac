//! The Ruby front end: the private module `Procwright::Native`.
//!
//! What a person sees is in `lib/`, in Ruby. Here is what needs the core: values
//! that it checks, one function that runs, children and their streams, processes,
//! and sets of them to wait for.
//!
//! No object here refers to another of Ruby's: the collector has nothing to mark,
//! nothing to write a barrier for, and nothing to move.
#![deny(unsafe_code)]

mod child;
mod communicate;
mod errors;
mod fiber;
mod gvl;
mod liveness;
mod merged;
mod options;
mod patient;
mod process;
mod queue;
mod reader;
mod report;
mod run;
mod signals;
mod string;
mod taps;
mod values;
mod wait;
mod writer;

use std::alloc::System;

use magnus::{Error, Module, Ruby};

/// What `string` hands to Ruby is freed by `free`, so it has to come from `malloc`.
#[global_allocator]
static ALLOCATOR: System = System;

#[magnus::init(name = "native")]
fn init(ruby: &Ruby) -> Result<(), Error> {
    let native = ruby.define_module("Procwright")?.define_module("Native")?;
    errors::define(&native)?;
    values::define(ruby, &native)?;
    run::define(&native)?;
    child::define(ruby, &native)?;
    reader::define(ruby, &native)?;
    writer::define(ruby, &native)?;
    merged::define(ruby, &native)?;
    communicate::define(ruby, &native)?;
    process::define(ruby, &native)?;
    queue::define(ruby, &native)?;
    liveness::define(ruby, &native)?;
    wait::define(&native)
}
