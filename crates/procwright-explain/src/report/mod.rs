//! A diagnosis as text, and as a graph for dot(1).

mod dot;
mod text;
