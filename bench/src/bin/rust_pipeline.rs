//! Ours from Rust: pipelines, one after the other.
//!
//! `bench-rust-pipeline COUNT elastic|plain PROGRAM [ARGUMENT]... [-- PROGRAM [ARGUMENT]...]...`
//!
//! Prints the seconds. Stdout of the last is `/dev/null`, stderr our own.
#![allow(clippy::print_stdout, reason = "its result")]

use std::time::Instant;

use procwright::{Command, Overflow, Pipeline, Sink};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [count, elastic, stages @ ..] = &words[..] else {
        panic!("COUNT elastic|plain PROGRAM...");
    };
    let stages: Vec<&[String]> = stages.split(|word| word == "--").collect();
    let started = Instant::now();
    for _ in 0..count.parse().expect("a number") {
        let commands = stages.iter().enumerate().map(|(place, words)| {
            let command = Command::new(&words[0])
                .args(&words[1..])
                .stderr(Sink::Inherit);
            match place + 1 == stages.len() {
                true => command.stdout(Sink::Null),
                false => command,
            }
        });
        let mut pipeline = Pipeline::new(commands).check();
        if elastic == "elastic" {
            for stage in 0..stages.len() - 1 {
                pipeline = pipeline.elastic(stage, Overflow::default());
            }
        }
        pipeline.run().expect("a pipeline that ends well");
    }
    println!("{:.6}", started.elapsed().as_secs_f64());
}
