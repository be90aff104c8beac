//! Limits of this process: addresses, processors.

use super::check;

/// Sets the soft limit of the address space.
pub fn limit_addresses(bytes: u64) {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_AS, &mut limit));
        limit.rlim_cur = bytes.min(limit.rlim_max);
        check(libc::setrlimit(libc::RLIMIT_AS, &limit));
    }
}

/// Binds this thread, and what it starts, to one processor from now on.
pub fn have_one_processor() {
    unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(check(libc::sched_getcpu()) as usize, &mut one);
        check(libc::sched_setaffinity(0, size_of_val(&one), &one));
    }
}

/// Binds all threads of this process to one processor, which those of this name get
/// only when no other thread wants it.
pub fn starve(name: &str) {
    let mut starved = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap();
        let thread: i32 = task.file_name().to_str().unwrap().parse().unwrap();
        unsafe {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            check(libc::sched_getaffinity(thread, size_of_val(&one), &mut one));
            let first = (0..libc::CPU_SETSIZE as usize).find(|at| libc::CPU_ISSET(*at, &one));
            one = std::mem::zeroed();
            libc::CPU_SET(first.unwrap(), &mut one);
            check(libc::sched_setaffinity(thread, size_of_val(&one), &one));
            // The kernel keeps 15 bytes of a name.
            let comm = std::fs::read_to_string(task.path().join("comm")).unwrap();
            if name.get(..15).unwrap_or(name) == comm.trim_end() {
                let idle: libc::sched_param = std::mem::zeroed();
                check(libc::sched_setscheduler(thread, libc::SCHED_IDLE, &idle));
                starved += 1;
            }
        }
    }
    assert!(starved > 0, "no thread {name}");
}
