//! The procwright command.
fn main() {}
