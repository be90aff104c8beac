//! Processes: how they ended, how they are stopped, who reaps them.

mod signal;
mod stop;
mod tree;
