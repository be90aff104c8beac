//! Procwright.
