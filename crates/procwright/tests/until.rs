//! The end of a run, and the processes that still hold its pipes then.

mod common;

use std::os::fd::AsFd;
use std::time::Duration;
use test_support::alone;

use common::{Census, child, shared, stopped, sys};
use procwright::process::Stop;
use procwright::{Event, Reason, StreamInfo, Until};
use test_children::{FLOOD_BYTE, OWN_BYTE};

fn holders(info: &Option<StreamInfo>) -> Vec<i32> {
    let info = info.as_ref().unwrap();
    assert!(info.held_by_complete || !common::sees_everyone());
    info.held_by.iter().map(|holder| holder.pid).collect()
}

alone! {
    fn until_exit_does_not_wait_for_holders() {
        let before = Census::now();
        for extra in [&[][..], &["--setsid"], &["--double-fork"], &["--setsid", "--double-fork"]] {
            let args = [&["fork-holder", "0", "--print-ready", "--say", "all of it"], extra].concat();
            let output = child(&args).until(Until::Exit).run().unwrap();
            let [holder] = common::ready_pids(&output.stdout)[..] else { panic!() };
            assert!(output.success() && output.stdout.ends_with(b"all of it\n"));
            // The holder goes on, and it is named.
            assert!(common::lives(holder));
            assert_eq!(holders(&output.report.stdout_info), [holder], "{extra:?}");
            assert_eq!(holders(&output.report.stderr_info), [holder], "{extra:?}");
            let info = output.report.stdout_info.unwrap();
            assert_eq!(info.held_by[0].name, "test-child");
            assert!(info.complete);
            sys::end(holder);
        }
        // No process holds the pipe: none is named.
        let output = child(&["echo", "x"]).until(Until::Exit).run().unwrap();
        assert!(holders(&output.report.stdout_info).is_empty());
        before.unchanged();
    }
}

alone! {
    fn until_exit_has_all_that_the_program_wrote() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let pidfile = dir.path().join("pid");
        for own in [0_u64, 1, 4096, 50_000, 1_000_000] {
            let output = child(&["fork-flooder", "--own", &own.to_string(), "--pidfile", pidfile.to_str().unwrap()])
                .until(Until::Exit)
                .run()
                .unwrap();
            assert!(output.success());
            let count = |byte| output.stdout.iter().filter(|b| **b == byte).count() as u64;
            assert_eq!(count(OWN_BYTE), own);
            assert_eq!(count(OWN_BYTE) + count(FLOOD_BYTE), output.stdout.len() as u64);
            assert!(output.report.stdout_info.unwrap().complete);
        }
        before.unchanged();
    }
}

alone! {
    fn until_exit_returns_under_many_flooders_of_both_streams() {
        // Enough writers that neither pipe is ever found empty, and enough volume for a
        // second reader, which must end all the same.
        let before = Census::now();
        for _ in 0..3 {
            let output = child(&["fork-flooders", "6", "--own", "400K"]).until(Until::Exit).run().unwrap();
            assert!(output.success());
            for bytes in [&output.stdout, &output.stderr] {
                assert_eq!(bytes.iter().filter(|byte| **byte == OWN_BYTE).count(), 400 << 10);
            }
        }
        before.unchanged();
    }
}

alone! {
    fn until_eof_says_after_a_second_who_holds() {
        let before = Census::now();
        let events = shared(Vec::new());
        let told = events.clone();
        let (output, took) = common::timed(|| {
            child(&["fork-holder", "0", "--print-ready", "--say", "own"])
                .on_event(move |event| {
                    let Event::Held { command, streams, holders, complete } = event else { panic!("{event:?}") };
                    assert!(command.contains("fork-holder"));
                    assert_eq!(streams, "stdout and stderr");
                    assert!(*complete || !common::sees_everyone());
                    assert!(event.to_string().ends_with("(until(Until::Exit) would not wait)"));
                    told.lock().unwrap().extend(holders.iter().map(|holder| holder.pid));
                    for holder in holders { sys::end(holder.pid); }
                    Ok(())
                })
                .run()
                .unwrap()
        });
        assert!(took >= Duration::from_secs(1));
        assert_eq!(*events.lock().unwrap(), common::ready_pids(&output.stdout));
        assert!(output.success() && output.stdout.ends_with(b"own\n"));
        assert_eq!(output.report.reason, Reason::Finished);
        before.comes_back();
    }
}

alone! {
    fn until_eof_waits_for_holders() {
        let (output, took) = common::timed(|| child(&["fork-holder", "300", "--say", "x"]).run().unwrap());
        assert!(output.success() && took >= Duration::from_millis(300));
        let info = output.report.stdout_info.unwrap();
        assert!(info.complete && info.held_by.is_empty());
    }
}

alone! {
    fn until_eof_ends_at_the_timeout_and_names_the_holder() {
        let before = Census::now();
        let told = shared(0);
        let count = told.clone();
        // The event comes a second after the exit, for which both leave time.
        for (timeout, events) in [(Duration::from_millis(900), 0), (Duration::from_secs(3), 1)] {
            let count = count.clone();
            let (result, took) = common::timed(|| {
                child(&["fork-holder", "0", "--print-ready", "--say", "own"])
                    .timeout(timeout)
                    .stop(Stop::new().with_grace(Duration::from_millis(50)))
                    .on_event(move |_| {
                        *count.lock().unwrap() += 1;
                        Ok(())
                    })
                    .run()
            });
            let output = stopped(result);
            assert!(took >= timeout);
            let [holder] = common::ready_pids(&output.stdout)[..] else { panic!() };
            assert_eq!(output.report.reason, Reason::Timeout);
            // The program itself had ended well.
            assert_eq!(output.report.status.code(), Some(0));
            assert!(output.stdout.ends_with(b"own\n"));
            for info in [&output.report.stdout_info, &output.report.stderr_info] {
                assert_eq!(holders(info), [holder]);
                assert!(!info.as_ref().unwrap().complete);
            }
            assert!(!common::lives(holder) && output.report.survivors.is_empty());
            let text = output.report.explain(b"");
            assert!(text.contains(&format!("held open by test-child (pid {holder})")), "{text}");
            assert!(text.contains("hint: the program had exited; until(Until::Exit) does not wait"), "{text}");
            assert_eq!(*told.lock().unwrap(), events);
        }
        before.comes_back();
    }
}

alone! {
    fn who_holds_is_not_claimed_where_nobody_could_look() {
        // No descriptor is left for a look through /proc.
        let limit = sys::nofile();
        let fill = shared(Vec::new());
        let filler = fill.clone();
        let output = child(&["fork-holder", "0", "--print-ready"])
            .until(Until::Exit)
            .on_stdout_line(move |_| {
                sys::set_nofile(60);
                filler.lock().unwrap().extend(std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()));
                Ok(())
            })
            .run()
            .unwrap();
        sys::set_nofile(limit);
        fill.lock().unwrap().clear();
        let [holder] = common::ready_pids(&output.stdout)[..] else { panic!() };
        sys::end(holder);
        let info = output.report.stdout_info.unwrap();
        // A look before the descriptors were gone has found the holder.
        assert!(!info.held_by_complete || info.held_by[0].pid == holder, "{info:?}");
    }
}

alone! {
    fn nobody_is_named_because_of_a_start_elsewhere() {
        // A child of another thread has copies of our pipes between clone and exec; it
        // is not a holder.
        let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(|| {
            for _ in 0..common::scaled(60, 1000) {
                let output = child(&["exit", "0"]).until(Until::Exit).run().unwrap();
                let info = output.report.stdout_info.unwrap();
                assert!(info.held_by.is_empty(), "{info:?}");
            }
        })).collect();
        for thread in threads { thread.join().unwrap(); }
    }
}

#[test]
fn a_pidfd_names_a_process() {
    // The other tests rely on this.
    let mine = i32::try_from(std::process::id()).unwrap();
    assert!(
        sys::pidfd(mine)
            .unwrap()
            .as_fd()
            .try_clone_to_owned()
            .is_ok()
    );
    assert!(common::lives(mine) && !common::lives(i32::MAX));
}
