//! Deliberate faults, for the tests that show that a fault of the core would be
//! found. Compiled only with `RUSTFLAGS="--cfg procwright_fault"`.

/// True if `PROCWRIGHT_FAULT` names this fault.
pub fn is_on(name: &str) -> bool {
    std::env::var_os("PROCWRIGHT_FAULT").is_some_and(|on| on == name)
}
