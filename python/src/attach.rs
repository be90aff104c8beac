//! The interpreter lock on threads of the core, which Python has not made, and objects that
//! end there.
//!
//! # Forks
//!
//! `os.fork` holds the interpreter lock, but a thread that Python does not know yet has to
//! make itself a thread state before it can ask for that lock. What it works on then is
//! guarded by a lock of the runtime's, which CPython 3.11 takes in the fork without having
//! made it anew: a fork at that moment hangs in `PyOS_AfterFork_Child`. So
//!
//! - a thread makes its state once and keeps it until it ends, and
//! - forks by way of Python and the making of states keep off each other ([`StateGate`]).
//!
//! 1. A thread that makes a state counts itself in, and looks whether a fork is
//!    under way. If so it counts itself out again, and waits.
//! 2. A fork says that it is under way, by `os.register_at_fork`, and then waits until nobody
//!    is counted in. All are ordered (SeqCst): one of the two sees the other.
//! 3. Neither waits long: who is counted in makes one call, which waits for no interpreter
//!    lock.
//!
//! It cannot be a handler of the C library's fork: CPython 3.13 has the runtime's lock by
//! the time that such a handler waits for the thread, and the thread waits for that lock.
//!
//! PyO3 keeps objects that are dropped without the lock in a list behind a mutex, which a
//! fork can inherit locked. So nothing here drops one without it: [`Attached`], [`later`].
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use procwright_os::fork::PerProcess;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Calls `work` with the interpreter lock, on any thread. None once the interpreter is gone.
pub(crate) fn attach<R>(work: impl for<'py> FnOnce(Python<'py>) -> R) -> Option<R> {
    ThreadState::ensure();
    Python::try_attach(|py| {
        drop_deferred(py);
        work(py)
    })
}

/// Prepares forks and threads. Called once, when the module is imported.
///
/// # Errors
/// Those of `os.register_at_fork`; `ImportError` in a sub-interpreter.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // SAFETY: we are attached.
    let interpreter = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: that of this thread.
    if unsafe { ffi::PyInterpreterState_GetID(interpreter) } != MAIN_INTERPRETER {
        return Err(PyImportError::new_err(
            "procwright works in the main interpreter only: its threads call back there. \
             Use a process in place of a sub-interpreter; with mod_wsgi set \
             `WSGIApplicationGroup %{GLOBAL}`",
        ));
    }
    INTERPRETER.store(interpreter, Ordering::Relaxed);
    let hooks = pyo3::types::PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork, module)?)?;
    hooks.set_item(
        "after_in_child",
        wrap_pyfunction!(after_fork_in_child, module)?,
    )?;
    py.import("os")?
        .call_method("register_at_fork", (), Some(&hooks))?;
    // The first time, PyO3 sees by a `Once` that the interpreter is ready. No fork is to find
    // that half done: it is done now, and not by a thread of the core's.
    py.detach(|| Python::try_attach(|_| ()));
    Ok(())
}

/// Has Python know its main thread before threads of the core call it.
///
/// Python takes the thread that imports `threading` first for the main thread, and waits for
/// its end at exit. A logger that is told an event would import it on a thread of the core,
/// which keeps its state for as long as the child is there: the interpreter would never end.
/// *Not as the module is imported:* that would take twice as long.
///
/// # Errors
/// Those of the import.
pub(crate) fn expect_calls(py: Python<'_>) -> PyResult<()> {
    py.import("threading").map(drop)
}

/// Number of the interpreter that a process begins with.
const MAIN_INTERPRETER: i64 = 0;

/// The interpreter that has imported us. Relaxed: set before there is a thread of the core.
static INTERPRETER: AtomicPtr<ffi::PyInterpreterState> = AtomicPtr::new(ptr::null_mut());

/// Keeps forks and the making of thread states off each other. A fork has a new one: the
/// threads that are counted in it are its parent's.
static GATE: PerProcess<StateGate> = PerProcess::new();

#[derive(Default)]
struct StateGate {
    /// Threads that make a state.
    inside: AtomicU32,
    /// Forks under way.
    forks: AtomicU32,
}

impl StateGate {
    fn pass<R>(&self, change: impl FnOnce() -> R) -> R {
        loop {
            self.inside.fetch_add(1, Ordering::SeqCst);
            if self.forks.load(Ordering::SeqCst) == 0 {
                break;
            }
            self.inside.fetch_sub(1, Ordering::SeqCst);
            std::thread::yield_now();
        }
        let changed = change();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        changed
    }

    fn close(&self) {
        self.forks.fetch_add(1, Ordering::SeqCst);
        while self.inside.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
    }

    fn open(&self) {
        self.forks.fetch_sub(1, Ordering::SeqCst);
    }
}

thread_local! {
    /// Forks under way that this thread has closed the gate for: a hook of a fork may fork as
    /// well.
    ///
    /// A gate is opened by whom it was closed by. A hook may import this module in the middle
    /// of a fork, which then has not closed it; and what a hook forks goes on with the fork
    /// that the hook is of, behind a gate of its own.
    static CLOSED: Cell<u32> = const { Cell::new(0) };
}

#[pyfunction]
fn before_fork() {
    GATE.get().close();
    CLOSED.set(CLOSED.get() + 1);
}

#[pyfunction]
fn after_fork() {
    if CLOSED.get() > 0 {
        CLOSED.set(CLOSED.get() - 1);
        GATE.get().open();
    }
}

#[pyfunction]
fn after_fork_in_child() {
    let still_under_way = CLOSED.get().saturating_sub(1);
    CLOSED.set(still_under_way);
    (0..still_under_way).for_each(|_| GATE.get().close());
}

thread_local! {
    /// The state of this thread, if it was made here.
    static STATE: RefCell<Option<ThreadState>> = const { RefCell::new(None) };
}

/// The state of a thread that Python has not made, for as long as the thread lives.
struct ThreadState(*mut ffi::PyThreadState);

impl ThreadState {
    /// Makes one, if this thread has none.
    fn ensure() {
        // SAFETY: both can always be called; a thread that Python has made has a state.
        let needed = unsafe {
            ffi::Py_IsInitialized() != 0 && ffi::PyGILState_GetThisThreadState().is_null()
        };
        if !needed {
            return;
        }
        // A thread that ends, and has dropped its state already, makes one for each call.
        let _ = STATE.try_with(|place| {
            let interpreter = INTERPRETER.load(Ordering::Relaxed);
            // SAFETY: the interpreter is there, and the call needs no lock. The state becomes
            // that of this thread, which has none.
            let state = GATE
                .get()
                .pass(|| unsafe { ffi::PyThreadState_New(interpreter) });
            if !state.is_null() {
                *place.borrow_mut() = Some(ThreadState(state));
            }
        });
    }
}

impl Drop for ThreadState {
    fn drop(&mut self) {
        // The state is cleared and deleted before the lock is let go. Were it deleted by
        // `PyThreadState_Delete`, which is for one that no thread has, then
        // 1. this thread clears the state, and lets the lock go;
        // 2. the interpreter ends, and frees every state that it knows;
        // 3. this thread deletes what has been freed.
        // No fork comes in between, either: it has the lock.
        //
        // SAFETY: (1) While the interpreter is there, so is the state: it is this thread's, and
        // nobody else deletes it. Once it goes down, the second call does not return. (2) A state
        // is made with a count of one, which this release is for: what this thread called in
        // between has counted up and down. The last release deletes it.
        unsafe {
            if ffi::Py_IsInitialized() == 0 {
                return;
            }
            ffi::PyEval_RestoreThread(self.0);
            ffi::PyGILState_Release(ffi::PyGILState_STATE::PyGILState_UNLOCKED);
        }
    }
}

/// Something of Python's that is dropped with the interpreter lock held, for which its drop
/// waits. Leaked once the interpreter is gone.
#[derive(Debug)]
pub(crate) struct Attached<T>(ManuallyDrop<T>);

impl<T> Attached<T> {
    pub(crate) fn new(value: T) -> Attached<T> {
        Attached(ManuallyDrop::new(value))
    }

    /// The value, for a caller that has the lock.
    pub(crate) fn into_inner(self, _py: Python<'_>) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once, from one that is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T> Deref for Attached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Attached<T> {
    fn drop(&mut self) {
        // SAFETY: dropped once, here.
        let _ = attach(|_| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Attached<T> {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Objects that wait for a thread with the lock: a list without a lock of its own, which a
/// fork finds whole at any moment.
static DEFERRED: AtomicPtr<DeferredDrop> = AtomicPtr::new(ptr::null_mut());

struct DeferredDrop {
    object: Py<PyAny>,
    next: *mut DeferredDrop,
}

/// Leaves the drop of an object to the next thread that has the lock: for a thread that must
/// not wait for it.
pub(crate) fn later(object: Py<PyAny>) {
    let new = Box::into_raw(Box::new(DeferredDrop {
        object,
        next: DEFERRED.load(Ordering::Relaxed),
    }));
    loop {
        // SAFETY: nobody else has it yet.
        let next = unsafe { (*new).next };
        // Release: who takes the list out sees it whole.
        match DEFERRED.compare_exchange(next, new, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            // SAFETY: as above.
            Err(now) => unsafe { (*new).next = now },
        }
    }
}

/// Drops what [`later`] was given.
pub(crate) fn drop_deferred(_py: Python<'_>) {
    if DEFERRED.load(Ordering::Relaxed).is_null() {
        return;
    }
    let mut next = DEFERRED.swap(ptr::null_mut(), Ordering::Acquire);
    while !next.is_null() {
        // SAFETY: it comes from a box, and was taken out of the list: nobody else has it.
        let deferred = *unsafe { Box::from_raw(next) };
        next = deferred.next;
        drop(deferred.object);
    }
}
