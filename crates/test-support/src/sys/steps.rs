//! A fork that is run one instruction at a time, and killed or stopped at any.

use super::check;

/// A fork that is stopped between two instructions; killed on drop.
pub struct Traced {
    /// Pid of the fork.
    pub pid: i32,
    /// Whether its end was seen.
    pub has_ended: bool,
    status: i32,
}

/// Signal that a fork raises when it has done its work: a stop if it is traced, and
/// otherwise without effect.
const DONE: i32 = libc::SIGURG;

/// Other processes that act for a fork while it sleeps.
pub struct Others<'a> {
    /// Whether the fork sleeps in the intended place.
    pub is_time: &'a dyn Fn() -> bool,
    /// The act for the sleeping fork.
    pub act: &'a mut dyn FnMut(),
}

/// The state that a running fork was met in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForkState {
    Stopped,
    Ended,
    /// Asleep in a system call, until another process acts.
    Asleep,
}

/// Forks a child that runs `ready`, is stopped, and then does `work`. Only for
/// processes without other threads that it could miss.
pub fn fork_traced<T>(ready: impl FnOnce() -> T, work: impl FnOnce(T)) -> Traced {
    let mut this = Traced::start(ready, |_| {}, work);
    this.until_ready();
    this.until_done();
    this
}

/// Forks a child that runs `ready`, is stopped, does `work`, is stopped again, and
/// ends.
pub fn fork_ready<T>(ready: impl FnOnce() -> T, work: impl FnOnce(&mut T)) -> Traced {
    let mut this = Traced::start(ready, work, std::mem::forget);
    this.until_ready();
    this
}

impl Traced {
    /// Forks a child that runs `ready`, is stopped, does `work`, is stopped again, and
    /// does `rest`. Does not wait until it is ready.
    pub fn start<T>(
        ready: impl FnOnce() -> T,
        work: impl FnOnce(&mut T),
        rest: impl FnOnce(T),
    ) -> Traced {
        unsafe {
            let pid = check(libc::fork());
            if pid == 0 {
                libc::alarm(900);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // A panic that left this frame would end a thread of a test alone.
                let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let mut made = ready();
                    libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                    libc::raise(libc::SIGSTOP);
                    work(&mut made);
                    libc::raise(DONE);
                    rest(made);
                    0
                }));
                libc::_exit(code.unwrap_or(101));
            }
            Traced {
                pid,
                has_ended: false,
                status: 0,
            }
        }
    }

    /// Waits for the first stop, after `ready`.
    pub fn until_ready(&mut self) {
        self.until_stopped();
    }

    /// Runs it to the end of its work, at full speed.
    pub fn until_done(&mut self) {
        self.go(libc::PTRACE_CONT);
        self.until_stopped();
    }

    /// Runs one instruction; false once the child has ended.
    pub fn step(&mut self) -> bool {
        if !self.has_ended {
            self.go(libc::PTRACE_SINGLESTEP);
            self.until_stopped();
        }
        !self.has_ended
    }

    /// Runs until the next system call begins or ends; false once the child has ended.
    pub fn run_to_call(&mut self) -> bool {
        if !self.has_ended {
            self.go(libc::PTRACE_SYSCALL);
            self.until_stopped();
        }
        !self.has_ended
    }

    /// Whether it has done its work: it has raised `DONE`, or has ended.
    fn is_done(&self) -> bool {
        self.has_ended || libc::WSTOPSIG(self.status) == DONE
    }

    fn go(&self, how: libc::c_uint) {
        let null = std::ptr::null_mut::<libc::c_void>();
        unsafe { libc::ptrace(how, self.pid, null, null) };
    }

    fn until_stopped(&mut self) {
        unsafe { check(libc::waitpid(self.pid, &mut self.status, 0)) };
        self.has_ended = !libc::WIFSTOPPED(self.status);
    }

    /// Waits for its end; whether it ended well.
    pub fn until_ended(&mut self) -> bool {
        while !self.has_ended {
            self.until_stopped();
        }
        self.status == 0
    }

    /// Whether it has ended by now.
    pub fn has_ended_now(&mut self) -> bool {
        if !self.has_ended {
            let got = unsafe { libc::waitpid(self.pid, &mut self.status, libc::WNOHANG) };
            self.has_ended = check(got) != 0 && !libc::WIFSTOPPED(self.status);
        }
        self.has_ended
    }

    fn meet(&mut self) -> ForkState {
        let mut looks = 0;
        loop {
            let got = unsafe { libc::waitpid(self.pid, &mut self.status, libc::WNOHANG) };
            if check(got) != 0 {
                self.has_ended = !libc::WIFSTOPPED(self.status);
                return match self.has_ended {
                    true => ForkState::Ended,
                    false => ForkState::Stopped,
                };
            }
            std::thread::yield_now();
            looks += 1;
            if looks % 64 == 0 && super::super::state(self.pid) == Some('S') {
                return ForkState::Asleep;
            }
        }
    }

    /// Waits until it is between two instructions again. While it sleeps, `others` are
    /// asked to act for it; returns how often.
    fn meet_awake(&mut self, others: &mut Others<'_>) -> u64 {
        let mut slept = 0;
        while self.meet() == ForkState::Asleep {
            if (others.is_time)() {
                slept += 1;
                (others.act)();
            }
        }
        slept
    }

    /// Kills it where it is, and waits for its end.
    pub fn kill(&mut self) {
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        self.until_ended();
    }

    /// Detaches from it and leaves it stopped, as by an ordinary SIGSTOP; SIGCONT lets
    /// it go on.
    pub fn leave_stopped(&mut self, is_asleep: bool) {
        unsafe {
            if is_asleep {
                // The tracer has to see the stop first.
                libc::kill(self.pid, libc::SIGSTOP);
                self.until_stopped();
            }
            let (pid, stop) = (self.pid, libc::SIGSTOP as usize as *mut libc::c_void);
            let null = std::ptr::null_mut::<libc::c_void>();
            check(libc::ptrace(libc::PTRACE_DETACH, pid, null, stop) as i32);
        }
        super::super::eventually(|| super::super::state(self.pid) == Some('T'));
    }
}

/// The addresses of the instructions that a process has gone through.
#[derive(Debug)]
pub struct Path {
    /// Address of each instruction.
    pub places: Vec<u64>,
    /// How often each instruction was met up to there, itself included: a breakpoint on
    /// it stops so often on the way.
    pub passes: Vec<usize>,
}

impl Path {
    /// The path through these addresses.
    pub fn of(places: Vec<u64>) -> Path {
        let mut met = std::collections::HashMap::new();
        let passes = places.iter().map(|place| {
            let passes = met.entry(*place).or_insert(0);
            *passes += 1;
            *passes
        });
        let passes = passes.collect();
        Path { places, passes }
    }

    /// The instruction to go to first on the way to this one, so that breakpoints stop
    /// as rarely as possible: an instruction that runs again and again may be met only
    /// once behind one that does not.
    fn landmark(&self, at: usize) -> usize {
        let (mut best, mut least) = (at, self.passes[at]);
        let mut behind = 0;
        for landmark in (0..at).rev() {
            behind += usize::from(self.places[landmark + 1] == self.places[at]);
            if behind >= least {
                break;
            }
            if self.passes[landmark] + behind < least {
                (best, least) = (landmark, self.passes[landmark] + behind);
            }
        }
        best
    }
}

/// The methods that depend on the machine.
#[cfg(target_arch = "x86_64")]
impl Traced {
    fn registers(&self) -> libc::user_regs_struct {
        unsafe {
            let mut all: libc::user_regs_struct = std::mem::zeroed();
            let null = std::ptr::null_mut::<libc::c_void>();
            let done = libc::ptrace(libc::PTRACE_GETREGS, self.pid, null, &raw mut all);
            check(done as i32);
            all
        }
    }

    /// The address of the next instruction.
    pub fn place(&self) -> u64 {
        self.registers().rip
    }

    /// Runs one instruction; returns how often it slept in it. Only a system call can
    /// sleep, so only there it is polled: polling at every instruction would take most
    /// of the time.
    fn step_awake(&mut self, others: &mut Others<'_>) -> u64 {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        // Read from this process's memory: a fork has the same code.
        let next = unsafe { std::ptr::read_unaligned(self.place() as *const [u8; 2]) };
        self.go(libc::PTRACE_SINGLESTEP);
        if next == SYSCALL {
            return self.meet_awake(others);
        }
        self.until_stopped();
        0
    }

    /// The first bytes of each instruction of its work.
    pub fn instructions(&mut self) -> Vec<[u8; 16]> {
        let mut all = Vec::new();
        loop {
            // Read from this process's memory: a fork has the same code.
            all.push(unsafe { std::ptr::read_unaligned(self.place() as *const [u8; 16]) });
            self.go(libc::PTRACE_SINGLESTEP);
            self.until_stopped();
            if self.is_done() {
                return all;
            }
        }
    }

    /// Steps through its work; returns the address of each instruction, and how often
    /// it slept.
    pub fn path(&mut self, others: &mut Others<'_>) -> (Vec<u64>, u64) {
        let (mut path, mut sleeps) = (Vec::new(), 0);
        loop {
            path.push(self.place());
            sleeps += self.step_awake(others);
            if self.is_done() {
                break;
            }
        }
        (path, sleeps)
    }

    /// Runs from the beginning to the instruction with this index of a path that
    /// another process has gone; false if it has taken another path, and has done its
    /// work. Hardware breakpoints bring it there at full speed: single steps for each
    /// instruction would take a time quadratic in their number.
    pub fn go_to(&mut self, path: &Path, at: usize, others: &mut Others<'_>) -> bool {
        let landmark = path.landmark(at);
        self.go_on_to(path, 0, landmark, others) && self.go_on_to(path, landmark, at, others)
    }

    /// Runs from one index to another that is not before it.
    fn go_on_to(&mut self, path: &Path, from: usize, at: usize, others: &mut Others<'_>) -> bool {
        let target = path.places[at];
        if from == at || !self.set_breakpoint(Some(target)) {
            return self.step_to(at - from, others);
        }
        let on_the_way = path.places[from + 1..=at].iter();
        let passes = on_the_way.filter(|place| **place == target).count();
        // A breakpoint at its own place is met at once.
        let is_here = path.places[from] == target;
        for _ in 0..passes + usize::from(is_here) {
            self.go(libc::PTRACE_CONT);
            self.meet_awake(others);
            if self.is_done() {
                break;
            }
        }
        // A breakpoint would stay set, whichever process traces it.
        let _ = self.has_ended || self.set_breakpoint(None);
        !self.is_done()
    }

    /// Takes this many steps; false if it has done its work before.
    pub fn step_to(&mut self, at: usize, others: &mut Others<'_>) -> bool {
        for _ in 0..at {
            self.step_awake(others);
            if self.is_done() {
                return false;
            }
        }
        true
    }

    /// Goes on until it sleeps in the intended place; false if it does not.
    pub fn fall_asleep(&mut self, others: &mut Others<'_>) -> bool {
        while !self.is_done() {
            self.go(libc::PTRACE_CONT);
            while self.meet() == ForkState::Asleep {
                if (others.is_time)() {
                    return true;
                }
            }
        }
        false
    }

    /// Sets or clears the breakpoint; false where the machine has none.
    fn set_breakpoint(&self, place: Option<u64>) -> bool {
        let registers = std::mem::offset_of!(libc::user, u_debugreg);
        let set = |number: usize, value: u64| unsafe {
            let at = (registers + 8 * number) as *mut libc::c_void;
            let value = value as *mut libc::c_void;
            libc::ptrace(libc::PTRACE_POKEUSER, self.pid, at, value) == 0
        };
        match place {
            // Breakpoint register 0, for execution.
            Some(place) => set(0, place) && set(7, 1),
            None => set(7, 0),
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if !self.has_ended {
            self.kill();
        }
    }
}

/// A number that forks share with this process.
pub fn shared_number() -> &'static std::sync::atomic::AtomicU64 {
    &shared_numbers(1)[0]
}

/// `count` numbers that forks share with this process.
pub fn shared_numbers(count: usize) -> &'static [std::sync::atomic::AtomicU64] {
    unsafe {
        let memory = libc::mmap(
            std::ptr::null_mut(),
            count * size_of::<u64>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(memory, libc::MAP_FAILED);
        std::slice::from_raw_parts(memory.cast(), count)
    }
}
