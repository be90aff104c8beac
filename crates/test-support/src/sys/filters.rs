//! Seccomp filters: system calls that fail, or kill.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// Makes system calls fail with `errno` in all threads and children.
pub fn deny(calls: &[i64], errno: i32) {
    filter(calls, SeccompAction::Errno(errno as u32));
}

/// Makes system calls kill this process.
pub fn kill_on(calls: &[i64]) {
    filter(calls, SeccompAction::KillProcess);
}

fn filter(calls: &[i64], action: SeccompAction) {
    seccompiler::apply_filter_all_threads(&program(calls, action)).expect("seccomp");
}

pub(super) fn program(calls: &[i64], action: SeccompAction) -> BpfProgram {
    let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
        calls.iter().map(|call| (*call, Vec::new())).collect();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        action,
        std::env::consts::ARCH.try_into().expect("a known machine"),
    )
    .expect("a filter");
    filter.try_into().expect("a program")
}

/// Makes system calls kill this process if this thread makes them.
pub fn kill_on_in_this_thread(calls: &[i64]) {
    let program = program(calls, SeccompAction::KillProcess);
    seccompiler::apply_filter(&program).expect("seccomp");
}

/// Makes a wait for a child by its descriptor, `waitid(P_PIDFD)`, fail with `errno`.
pub fn deny_wait_by_descriptor(errno: i32) {
    let condition = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        u64::from(libc::P_PIDFD),
    );
    let rule = SeccompRule::new(vec![condition.expect("a condition")]).expect("a rule");
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_waitid, vec![rule])]),
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into().expect("a known machine"),
    );
    let program: BpfProgram = filter.expect("a filter").try_into().expect("a program");
    seccompiler::apply_filter_all_threads(&program).expect("seccomp");
}

/// Makes every `waitid(2)` fail with `errno`. wait4(2) is another call.
pub fn deny_waits(errno: i32) {
    deny(&[libc::SYS_waitid], errno);
}

/// Makes an ioctl fail with `errno`; `request` is its number without the size of the
/// argument.
pub fn deny_ioctl(request: u64, errno: i32) {
    let condition = SeccompCondition::new(
        1,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(0xffff),
        request,
    );
    let rule = SeccompRule::new(vec![condition.expect("a condition")]).expect("a rule");
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_ioctl, vec![rule])]),
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into().expect("a known machine"),
    );
    let program: BpfProgram = filter.expect("a filter").try_into().expect("a program");
    seccompiler::apply_filter_all_threads(&program).expect("seccomp");
}

/// Makes a prctl(2) with this option fail with `errno`.
pub fn deny_prctl(option: i32, errno: i32) {
    let option = u64::from(option.cast_unsigned());
    let is_it = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, option);
    let rule = SeccompRule::new(vec![is_it.expect("a condition")]).expect("a rule");
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_prctl, vec![rule])]),
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        std::env::consts::ARCH.try_into().expect("a known machine"),
    );
    let program: BpfProgram = filter.expect("a filter").try_into().expect("a program");
    seccompiler::apply_filter_all_threads(&program).expect("seccomp");
}

/// `PIDFD_GET_INFO` of `linux/pidfd.h`, without the size of its argument.
pub const PIDFD_GET_INFO: u64 = 0xff0b;

/// Makes a wake-up on a word of shared memory (`FUTEX_WAKE`) kill this process. The
/// standard library's wake-ups are private ones.
pub fn kill_on_shared_wake() {
    let wake = SeccompCondition::new(
        1,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        libc::FUTEX_WAKE as u64,
    );
    let rule = SeccompRule::new(vec![wake.expect("a condition")]).expect("a rule");
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_futex, vec![rule])]),
        SeccompAction::Allow,
        SeccompAction::KillProcess,
        std::env::consts::ARCH.try_into().expect("a known machine"),
    );
    let program: BpfProgram = filter.expect("a filter").try_into().expect("a program");
    seccompiler::apply_filter_all_threads(&program).expect("seccomp");
}

/// Makes the start of a thread kill this process.
pub fn kill_on_threads() {
    // The flags of clone3 are in memory, where no filter looks: libraries fall back to
    // clone.
    deny(&[libc::SYS_clone3], libc::ENOSYS);
    let flag = libc::CLONE_THREAD as u64;
    let is_set = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(flag),
        flag,
    );
    let rule = SeccompRule::new(vec![is_set.expect("a condition")]).expect("a rule");
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_clone, vec![rule])]),
        SeccompAction::Allow,
        SeccompAction::KillProcess,
        std::env::consts::ARCH.try_into().expect("a known machine"),
    );
    let program: BpfProgram = filter.expect("a filter").try_into().expect("a program");
    seccompiler::apply_filter_all_threads(&program).expect("seccomp");
}
