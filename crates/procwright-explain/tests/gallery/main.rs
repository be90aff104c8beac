//! A gallery of programs that hang and of programs that do not, each with its verdict, the
//! name of the hang, and who is named.
//!
//! A scene is a Python program that prints `role=PID …` when it is set up. It is looked at
//! until it is as it should be, since nothing announces that a program has begun to wait;
//! then it has to stay so. What must not be found is looked for from the beginning.
//!
//! `programs` has the real programs, `sockets` what goes over TCP and eventfds, `mutexes` what goes
//! over shared memory, `resumed` what was stopped and goes on; the others are by what is said of them.
#![allow(missing_docs)]

mod doubts;
mod input;
mod locks;
mod mutexes;
mod no_circles;
mod pipes;
mod programs;
mod resumed;
mod sockets;
mod stage;
mod well;
