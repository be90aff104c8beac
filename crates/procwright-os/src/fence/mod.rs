//! A full memory fence, as cheap as the processor has it.
//!
//! Contract: the effect of the standard library's `fence(SeqCst)`, for memory that is
//! mapped in the usual way (write-back).

/// Makes every earlier write of this thread visible to all before any later read.
#[inline(always)]
pub fn full() {
    #[cfg(all(target_arch = "x86_64", not(miri), not(procwright_loom)))]
    locked();
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(procwright_loom))))]
    crate::sync::fence(crate::sync::Ordering::SeqCst);
}

/// A locked instruction in place of `mfence`, which the compiler has for the fence
/// and which also waits for what is written past the caches: `mfence` takes 17 ns, a
/// locked instruction 2 (AMD EPYC, Zen 4). Linux does so for its `smp_mb`. The word
/// is below our own stack, which no other processor has in its cache, and keeps its
/// value.
#[cfg(all(target_arch = "x86_64", not(miri), not(procwright_loom)))]
#[inline(always)]
fn locked() {
    // SAFETY: what lies so far below the stack's end belongs to this function, by the
    // ABI (the red zone), and is written back as it was.
    // `nomem` is left out: nothing moves across the fence for the compiler either.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp - 64], 0", options(nostack));
    }
}
