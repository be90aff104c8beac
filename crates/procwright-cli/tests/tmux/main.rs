//! Programs as people use them: in a shell on a terminal, as they are and under
//! `procwright run`, key by key. What stands on the screen, how the program
//! ended as the shell tells it, the modes of the terminal and the jobs must be
//! the same. The terminal and the keyboard are tmux's.

#[path = "../common/mod.rs"]
mod common;

mod killed;
mod row;
mod rows;
mod session;
