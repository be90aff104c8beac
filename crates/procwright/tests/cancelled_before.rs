//! A run that is cancelled before it begins starts nothing.

mod common;

use test_support::alone;

use common::Census;
use procwright::Cancel;
use procwright::{Command, Error, Sink};

alone! {
    fn nothing_is_started() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("made");
        let kept = dir.path().join("kept");
        std::fs::write(&kept, "of before").unwrap();
        let cancel = Cancel::new().unwrap();
        cancel.cancel();
        let before = Census::now();
        let mkdir = || Command::new("mkdir").arg(&made).cancel_on(&cancel);
        let file = || Sink::File { path: kept.clone(), append: false };
        for command in [
            mkdir(),
            mkdir().stdout(file()),
            mkdir().keep_full(&kept),
            mkdir().stopped_is_ok(),
            mkdir().on_stdout_line(|_| panic!("a line of whom?")),
            mkdir().stdin_iter(std::iter::from_fn(|| panic!("input for whom?"))),
        ] {
            let error = command.run().unwrap_err();
            assert!(matches!(error, Error::Cancelled { .. }), "{error:?}");
            assert!(error.output().is_none());
            assert!(error.to_string().ends_with("was cancelled before it was started"), "{error}");
            assert!(!made.exists(), "it was started");
            assert_eq!(std::fs::read_to_string(&kept).unwrap(), "of before");
        }
        before.unchanged();
        // What makes no sense is told first.
        let senseless = Command::new("").cancel_on(&cancel).run();
        assert!(matches!(senseless, Err(Error::Invalid(_))));
    }
}
