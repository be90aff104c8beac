//! A thousand children with both streams flowing: one thread serves them all, and wakes
//! only when a child writes.

mod common;

use std::io::{Read, Write};
use std::sync::Mutex;
use std::time::Duration;
use test_support::alone;

use common::{Census, child, eventually, figure, scaled, sys, threads, timed};
use procwright::process::Exit;
use procwright::stream::Reader;
use procwright::{Child, Overflow, Stdin};
use test_children::{Pattern, Stream};

/// Bytes that a child writes to each stream in a burst, and the size of its writes.
const BURST: usize = 64 << 10;
const CHUNK: usize = 4 << 10;

fn start(overflow: Overflow) -> Child {
    child(&["bursts", "--chunk", &CHUNK.to_string()])
        .stdin(Stdin::Pipe)
        .spawn_with(overflow)
        .unwrap()
}

fn burst(child: &Child) {
    let mut stdin = child.stdin.as_ref().unwrap();
    // The child may have died of an earlier burst.
    let _ = writeln!(stdin, "{BURST}");
}

fn streams(child: &Child) -> [(&Reader, Stream); 2] {
    [
        (child.stdout.as_ref().unwrap(), Stream::Stdout),
        (child.stderr.as_ref().unwrap(), Stream::Stderr),
    ]
}

/// Waits until all written bytes are in memory.
fn settle(children: &[Child], bytes: usize) {
    for (reader, _) in children.iter().flat_map(streams) {
        eventually(|| reader.figures().unwrap().bytes_in == bytes as u64);
    }
}

/// The only pump, by its directory in `/proc`.
struct Pump(std::path::PathBuf);

impl Pump {
    fn find() -> Pump {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let mut pumps = tasks.map(|task| task.unwrap().path()).filter(|task| {
            let name = std::fs::read_to_string(task.join("comm"));
            name.is_ok_and(|name| name.trim_end() == "procwright-pump")
        });
        let pump = pumps.next().expect("a pump");
        assert_eq!(pumps.next(), None, "there are two");
        Pump(pump)
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap()
    }

    fn switches(&self, kind: &str) -> u64 {
        let status = self.read("status");
        let line = status.lines().find_map(|line| line.strip_prefix(kind));
        line.unwrap().trim_matches([':', '\t']).parse().unwrap()
    }

    fn sleeps(&self) -> u64 {
        self.switches("voluntary_ctxt_switches")
    }

    /// Waits until the pump sleeps with nothing left to do.
    fn rests(&self) {
        eventually(|| {
            let call = self.read("syscall");
            let number = call.split(' ').next().and_then(|word| word.parse().ok());
            number.is_some_and(sys::is_waiting_call) && self.read("stat").contains(") S ")
        });
    }
}

/// Reads this range of each stream, by some threads, and compares the bytes.
fn read_all(children: &[Child], from: usize, until: usize) {
    let work = Mutex::new(children.iter().flat_map(streams));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let patterns = [Stream::Stdout, Stream::Stderr].map(|s| Pattern::new(s, BURST));
                let mut data = vec![0; until - from];
                loop {
                    let next = work.lock().unwrap().next();
                    let Some((mut reader, stream)) = next else {
                        break;
                    };
                    reader.read_exact(&mut data).unwrap();
                    let pattern = &patterns[usize::from(stream == Stream::Stderr)];
                    assert_eq!(pattern.mismatch(from as u64, &data), None);
                }
            });
        }
    });
}

alone! {
    fn one_thread_for_all_that_sleeps_while_they_are_silent() {
        sys::all_files();
        let before = Census::now();
        let count = scaled(100, 1_000) as usize;
        {
            let (children, started): (Vec<_>, _) = timed(|| {
                (0..count).map(|_| start(Overflow::default())).collect()
            });
            let pump = Pump::find();
            pump.rests();
            let (slept, pushed) = (pump.sleeps(), pump.switches("nonvoluntary_ctxt_switches"));

            // The output is not read, so that only the children's writes can wake the
            // pump.
            let ((), wrote) = timed(|| {
                children.iter().for_each(burst);
                settle(&children, BURST);
            });
            pump.rests();
            let woken = pump.sleeps() - slept;
            let writes = (count * 2 * BURST / CHUNK) as u64;
            assert!(woken <= writes + 10, "{woken} times for {writes} writes");
            assert!(woken > 0);

            // A second of silence, in which there is nothing to wait for.
            pump.rests();
            let slept_after = pump.sleeps();
            let pushed_after = pump.switches("nonvoluntary_ctxt_switches");
            #[allow(clippy::disallowed_methods)]
            std::thread::sleep(Duration::from_secs(1));
            assert_eq!(pump.sleeps(), slept_after);
            assert_eq!(pump.switches("nonvoluntary_ctxt_switches"), pushed_after);

            // Readers run beside the pump now, on all streams at once.
            let ((), read) = timed(|| {
                read_all(&children, 0, BURST);
                children.iter().for_each(burst);
                read_all(&children, BURST, 2 * BURST);
            });
            let mut expected = before.threads.clone();
            expected.push("procwright-pump".into());
            expected.sort();
            eventually(|| threads() == expected);
            figure(&format!(
                "{count} children started in {started:?}; {} MiB came in in {wrote:?}: {writes} writes, \
                 {woken} sleeps of the pump, {} switches against its will; read and once more in {read:?}",
                (2 * count * BURST) >> 20, pushed_after - pushed,
            ));
            for mut child in children {
                drop(child.stdin.take());
                assert_eq!(child.wait(None).unwrap(), Some(Exit::Code(0)));
            }
        }
        before.comes_back();
    }
}

alone! {
    fn who_is_held_up_wakes_nobody() {
        sys::all_files();
        let count = scaled(50, 1_000) as usize;
        let memory = 16 << 10;
        // Each child has more output than is kept, and none of it is read.
        let children: Vec<_> = (0..count).map(|_| start(Overflow::Block { memory })).collect();
        let pump = Pump::find();
        children.iter().for_each(burst);
        settle(&children, memory as usize);
        // One child is read from now on, and only that one is the pump's business.
        let (first, others) = children.split_first().unwrap();
        pump.rests();
        let slept = pump.sleeps();
        let read = scaled(20, 200) as usize * BURST;
        let mut stdout = first.stdout.as_ref().unwrap();
        let mut stderr = first.stderr.as_ref().unwrap();
        let mut data = vec![0; BURST];
        let ((), took) = timed(|| for _ in 0..read / BURST {
            stdout.read_exact(&mut data).unwrap();
            stderr.read_exact(&mut data).unwrap();
            burst(first);
        });
        let woken = pump.sleeps() - slept;
        for (reader, _) in others.iter().flat_map(streams) {
            assert_eq!(reader.figures().unwrap().bytes_in, memory);
        }
        figure(&format!(
            "{} KiB of one beside {} that are held up: {took:?}, {woken} sleeps of the pump",
            (2 * read) >> 10, others.len()
        ));
        for (reader, _) in children.iter().flat_map(streams) {
            reader.close();
        }
        for child in children {
            burst(&child);
            let exit = child.wait(None).unwrap().unwrap();
            assert!(exit.signal() == Some(procwright::process::Signal::PIPE), "{exit:?}");
        }
    }
}
