//! Values that a fork does not drop.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use super::generation;

/// A value whose drop is for the process that made it alone: a fork leaves it as it lies,
/// however it comes to its end there, by a return, an error or a panic.
///
/// In a fork a drop may wait for a lock whose owner is a thread of the parent's, or for that
/// thread, or take away what the parent has as well.
#[derive(Debug)]
pub struct ProcessOwned<T> {
    value: ManuallyDrop<T>,
    generation: u32,
}

impl<T> ProcessOwned<T> {
    /// A value of the calling process.
    pub fn new(value: T) -> ProcessOwned<T> {
        ProcessOwned {
            value: ManuallyDrop::new(value),
            generation: generation(),
        }
    }

    /// False in a fork of the process that made it.
    pub fn is_ours(&self) -> bool {
        self.generation == generation()
    }

    /// The value, which is then dropped as any other.
    pub fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once, from one that is not dropped.
        unsafe { ManuallyDrop::take(&mut this.value) }
    }
}

impl<T> Deref for ProcessOwned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for ProcessOwned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for ProcessOwned<T> {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use test_support::sys;

    use super::*;

    struct Noted<'a>(&'a AtomicBool);

    impl Drop for Noted<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_is_dropped_where_it_was_made_and_in_no_fork() {
        let dropped = AtomicBool::new(false);
        let made = ProcessOwned::new(Noted(&dropped));
        let code = sys::fork_running(|| {
            let was_ours = made.is_ours();
            // SAFETY: the fork ends without another drop of it.
            drop(unsafe { std::ptr::read(&made) });
            let kept = !dropped.load(Ordering::Relaxed);
            let own = ProcessOwned::new(Noted(&dropped));
            let is_ours = own.is_ours();
            drop(own);
            i32::from(was_ours || !kept || !is_ours || !dropped.load(Ordering::Relaxed))
        });
        assert_eq!(code, 0);
        assert!(made.is_ours() && !dropped.load(Ordering::Relaxed));
        drop(made);
        assert!(dropped.load(Ordering::Relaxed));
    }

    #[test]
    fn what_is_taken_out_is_dropped_as_any_other() {
        let dropped = AtomicBool::new(false);
        let taken = ProcessOwned::new(Noted(&dropped)).into_inner();
        assert!(!dropped.load(Ordering::Relaxed));
        drop(taken);
        assert!(dropped.load(Ordering::Relaxed));
    }
}
