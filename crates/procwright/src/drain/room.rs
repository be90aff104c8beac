//! The room in a store.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreRoom {
    Some,
    /// No room now: a wake-up will ring.
    None,
    /// No room ever again.
    Unwanted,
}
