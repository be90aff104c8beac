//! Events of the streams of a held child.

mod common;

use std::io::Read;
use std::sync::mpsc::{self, Receiver};
use test_support::alone;

use common::child;
use procwright::process::Exit;
use procwright::{Child, Command, Error, Event, Overflow};

fn listened(command: Command<'static>, overflow: Overflow) -> (Child, Receiver<Event>) {
    let (tell, told) = mpsc::channel();
    let command = command.on_stream_event(move |event| drop(tell.send(event.clone())));
    (command.spawn_with(overflow).unwrap(), told)
}

alone! {
    fn the_first_spill_is_told_once_for_each_stream() {
        let flood = child(&["flood", "--out", "2M", "--err", "2M"]);
        let memory = 256 << 10;
        let (flood, told) = listened(flood, Overflow::Spill { memory, disk: None });
        assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
        drop(flood);
        let mut streams: Vec<_> = told
            .iter()
            .map(|event| {
                let text = event.to_string();
                let Event::Spilling { command, stream, directory } = event else {
                    panic!("{text}");
                };
                assert!(directory.is_dir() && command.contains("flood --out 2M"));
                assert!(text.contains(stream) && text.contains(&command), "{text}");
                stream
            })
            .collect();
        streams.sort_unstable();
        assert_eq!(streams, ["stderr", "stdout"]);
    }
}

alone! {
    fn drops_and_a_refusal_are_told() {
        let memory = 64 << 10;
        for (overflow, word) in [
            (Overflow::DropOldest { memory }, "dropped"),
            (Overflow::DropNewest { memory }, "dropped"),
            (Overflow::Fail { memory }, "more than may be kept"),
        ] {
            let (flood, told) = listened(child(&["flood", "--out", "1M"]), overflow);
            flood.wait(None).unwrap();
            let event = told.recv().unwrap();
            assert!(event.to_string().contains(word), "{event}");
            let at = match event {
                Event::Dropping { offset, stream: "stdout", .. } => offset,
                Event::Overflowed { offset, stream: "stdout", .. } => offset,
                other => panic!("{other}"),
            };
            assert!(at <= memory && told.try_recv().is_err());
        }
    }
}

alone! {
    fn a_listener_that_panics_ends_nothing() {
        let memory = 64 << 10;
        let mut flood = child(&["flood", "--out", "1M"])
            .on_stream_event(|_| panic!("for the test"))
            .spawn_with(Overflow::DropNewest { memory })
            .unwrap();
        assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
        let mut data = Vec::new();
        let mut stdout = flood.stdout.take().unwrap();
        stdout.read_to_end(&mut data).unwrap();
        assert_eq!(data.len() as u64 + stdout.figures().unwrap().dropped_bytes, 1 << 20);
    }
}

#[test]
fn a_run_has_no_such_events() {
    let error = child(&["exit", "0"])
        .on_stream_event(|_| {})
        .run()
        .unwrap_err();
    assert!(matches!(&error, Error::Invalid(_)) && error.to_string().contains("on_event"));
}
