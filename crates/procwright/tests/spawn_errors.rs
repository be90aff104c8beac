//! Failures to start a program: each step has its typed error, and the attempt leaves
//! nothing behind.

mod common;

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use test_support::alone;

use common::{Census, child};
use procwright::error::{SpawnError, Step};
use procwright::process::Signal;
use procwright::spec::Account;
use procwright::{Command, Error, Sink, Spec, Stdin};
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// Runs a command that the system refuses.
#[track_caller]
fn refused(command: Command<'_>, step: Step, errno: i32) -> SpawnError {
    let before = Census::now();
    let error = match command.run() {
        Err(Error::Spawn { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    before.nothing_more();
    assert_eq!((error.step, error.errno()), (step, errno), "{error}");
    error
}

/// Runs a command that makes no sense; returns the whole text.
#[track_caller]
fn invalid(command: Command<'_>) -> String {
    let before = Census::now();
    let error = match command.run() {
        Err(Error::Invalid(invalid)) => invalid.to_string(),
        other => panic!("{other:?}"),
    };
    before.nothing_more();
    error
}

fn file(directory: &tempfile::TempDir, name: &str, text: &str, mode: u32) -> std::path::PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

alone! {
    fn exec_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let error = refused(Command::new("/no/such/program"), Step::Exec, libc::ENOENT);
        assert!(error.to_string().starts_with("exec \"/no/such/program\": No such file"), "{error}");
        let error = refused(Command::new("no-such-program-here"), Step::Exec, libc::ENOENT);
        assert!(error.hint.unwrap().contains("PATH"));
        refused(Command::new(file(&dir, "plain", "#!/bin/sh\n", 0o644)), Step::Exec, libc::EACCES);
        let error = refused(Command::new("/"), Step::Exec, libc::EACCES);
        assert!(error.hint.unwrap().contains("directory"));
        let error = refused(Command::new(file(&dir, "script", "echo hi\n", 0o755)), Step::Exec, libc::ENOEXEC);
        assert!(error.hint.unwrap().contains("#!"));
        let error = refused(
            Command::new(file(&dir, "orphan", "#!/no/such/interpreter\n", 0o755)),
            Step::Exec,
            libc::ENOENT,
        );
        assert!(error.hint.unwrap().contains("interpreter"));
        let error = refused(child(&["args"]).arg("x".repeat(200_000)), Step::Exec, libc::E2BIG);
        assert!(error.hint.unwrap().contains("stdin"));
        // A directory of PATH that may not be searched hides neither the program that
        // may not be executed nor a good one behind it.
        let plain = dir.path().join("plain").file_name().unwrap().to_owned();
        refused(
            Command::new(plain).env("PATH", format!("/nope:{}:/nope", dir.path().display())),
            Step::Exec,
            libc::EACCES,
        );
    }
}

alone! {
    fn a_directory_of_path_that_cannot_be_searched_hides_no_program() {
        let dir = tempfile::tempdir().unwrap();
        file(&dir, "program", "#!/bin/sh\nexit 7\n", 0o755);
        std::os::unix::fs::symlink("round", dir.path().join("round")).unwrap();
        let there = dir.path().display();
        for (beside, errno) in [
            (format!("{there}/round"), libc::ELOOP),
            (format!("/{}", "long/".repeat(1000)), libc::ENAMETOOLONG),
        ] {
            let run = |path: String, name: &str| Command::new(name).env("PATH", path).run();
            let output = run(format!("{beside}:{there}"), "program").unwrap();
            assert_eq!(output.report.status.code(), Some(7));
            // If it is nowhere else, this is why nobody knows whether it is there.
            let path = format!("/nope:{beside}:/nope");
            refused(Command::new("missing").env("PATH", path), Step::Exec, errno);
        }
        // The name itself is too long, wherever it is looked for.
        let name = "n".repeat(300);
        refused(Command::new(&name).env("PATH", "/nope:/bin"), Step::Exec, libc::ENAMETOOLONG);
    }
}

alone! {
    fn a_shell_line_where_a_list_belongs_is_explained() {
        let error = refused(Command::new("ls -l"), Step::Exec, libc::ENOENT);
        let hint = error.hint.unwrap();
        assert!(hint.contains("list") && hint.contains("shell"), "{hint}");
    }
}

alone! {
    fn the_working_directory() {
        let error = refused(child(&["exit", "0"]).cwd("/no/such/directory"), Step::Chdir, libc::ENOENT);
        assert_eq!(error.to_string().lines().next().unwrap(),
            "chdir \"/no/such/directory\": No such file or directory (os error 2)");
        refused(child(&["exit", "0"]).cwd("/dev/null"), Step::Chdir, libc::ENOTDIR);
        // The thread that starts a program which dies with this process reports the error
        // too.
        let before = Census::now();
        let starts = child(&["exit", "3"]).die_with_parent(Signal::KILL).run().unwrap();
        assert_eq!(starts.status().code(), Some(3));
        before.comes_back();
        refused(
            child(&["exit", "0"]).die_with_parent(Signal::KILL).cwd("/no/such/directory"),
            Step::Chdir,
            libc::ENOENT,
        );
    }
}

alone! {
    fn a_relative_program_is_looked_for_in_the_working_directory() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(test_children::path(), dir.path().join("program")).unwrap();
        let output = Command::new("./program").arg("show").cwd(dir.path()).run().unwrap();
        assert_eq!(common::shown(&output)["cwd"], dir.path().canonicalize().unwrap().to_str().unwrap());
        // The program is here and not there: the error says where it was looked for.
        std::env::set_current_dir(dir.path()).unwrap();
        let error = refused(Command::new("./program").arg("show").cwd("/tmp"), Step::Exec, libc::ENOENT);
        assert!(error.hint.unwrap().contains("/tmp/./program"));
        // A relative directory of PATH is relative to the new one, too.
        std::env::set_current_dir("/").unwrap();
        let output = Command::new("program").arg("exit").arg("4").env("PATH", ".").cwd(dir.path()).run();
        assert_eq!(output.unwrap().status().code(), Some(4));
    }
}

alone! {
    fn a_directory_that_the_other_user_may_not_enter() {
        if !common::root_or_skip("a_directory_that_the_other_user_may_not_enter") { return; }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let command = child(&["show"]).user(Account::Id(65534)).cwd(dir.path());
        refused(command, Step::Chdir, libc::EACCES);
        assert!(child(&["show"]).cwd(dir.path()).run().unwrap().success());
    }
}

alone! {
    fn only_root_changes_credentials() {
        if !common::root_or_skip("only_root_changes_credentials") { return; }
        common::sys::become_user(65534);
        let error = refused(child(&["show"]).user(Account::Id(0)), Step::Setuid, libc::EPERM);
        assert!(error.hint.unwrap().contains("root"));
        refused(child(&["show"]).group(Account::Id(0)), Step::Setgid, libc::EPERM);
        refused(child(&["show"]).extra_groups(vec![Account::Id(0)]), Step::Setgroups, libc::EPERM);
        refused(child(&["show"]).nice(-5), Step::Nice, libc::EACCES);
    }
}

alone! {
    fn a_fifo_that_nobody_reads() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        let file = |append| Sink::File { path: path.clone(), append };
        for command in [
            child(&["show"]).stdout(file(false)),
            child(&["show"]).stdout(file(true)),
            child(&["show"]).stderr(file(false)),
            child(&["show"]).keep_full(&path),
        ] {
            let error = refused(command, Step::Open, libc::ENXIO);
            assert!(error.hint.unwrap().contains("nobody reads this FIFO"));
        }
        // With a reader it is a file like others, and its writes wait.
        let reader = fs::File::options().read(true).write(true).open(&path).unwrap();
        let output = child(&["echo", "said"]).stdout(file(false)).run().unwrap();
        assert!(output.success());
        let mut said = [0; 5];
        (&reader).read_exact(&mut said).unwrap();
        assert_eq!(&said, b"said\n");
    }
}

alone! {
    fn accounts_that_do_not_exist() {
        let text = invalid(child(&["show"]).user(Account::Name("no-such-user".into())));
        assert!(text.contains("user") && text.contains("no-such-user"), "{text}");
        let text = invalid(child(&["show"]).group(Account::Name("no-such-group".into())));
        assert!(text.contains("group") && text.contains("no-such-group"), "{text}");
        let groups = vec![Account::Id(1), Account::Name("no-such-group".into())];
        invalid(child(&["show"]).extra_groups(groups));
        let _ = invalid(child(&["show"]).user(Account::Name("nul\0inside".into())));
    }
}

alone! {
    fn the_number_that_means_no_change() {
        // With root's permissions the program would stay root.
        let none = || Account::Id(u32::MAX);
        for (what, command) in [
            ("user", child(&["show"]).user(none())),
            ("group", child(&["show"]).group(none())),
            ("extra_groups", child(&["show"]).extra_groups(vec![Account::Id(1), none()])),
        ] {
            let text = command.validate().unwrap_err().to_string();
            assert_eq!(text, invalid(command));
            assert!(text.contains(what) && text.contains("no change"), "{text}");
        }
        // The greatest of all is a number like others.
        if !common::root_or_skip("the_number_that_means_no_change") { return; }
        let greatest = || Account::Id(Account::GREATEST_ID);
        let command = child(&["show"]).extra_groups(vec![greatest()]).group(greatest()).user(greatest());
        assert_eq!(common::shown(&command.run().unwrap())["uid"], Account::GREATEST_ID);
    }
}

alone! {
    fn resource_limits() {
        // More than the system allows any process.
        refused(child(&["show"]).rlimit("nofile", 1 << 40, 1 << 40), Step::Rlimit, libc::EPERM);
        let text = invalid(child(&["show"]).rlimit("files", 1, 1));
        assert!(text.contains("files") && text.contains("nofile"), "{text}");
        invalid(child(&["show"]).rlimit("nofile", 2, 1));
        // A limit of infinity lets the program start.
        assert!(child(&["exit", "0"]).rlimit("core", 0, u64::MAX).run().is_ok()
            || common::sys::effective_uid() != 0);
    }
}

alone! {
    fn process_groups() {
        // No group can have this number: numbers end far below.
        refused(child(&["show"]).process_group(i32::MAX), Step::Setpgid, libc::EPERM);
        for group in [-1, -5, i32::MIN] {
            let text = invalid(child(&["show"]).process_group(group));
            assert!(text.contains("process_group") && text.contains("negative"), "{text}");
        }
    }
}

alone! {
    fn what_has_a_nul_or_is_empty() {
        let text = invalid(child(&["args", "a\0b"]));
        assert!(text.contains("argv[2]") && text.contains("position 1"), "{text}");
        invalid(Command::new("a\0b"));
        invalid(child(&["env"]).env("A", "a\0b"));
        invalid(child(&["env"]).env("A\0B", "b"));
        invalid(child(&["env"]).env("A=B", "b"));
        invalid(child(&["env"]).env("", "b"));
        invalid(child(&["show"]).cwd("/tmp\0"));
        let path = || std::path::PathBuf::from("/tmp/a\0b");
        let file = || Sink::File { path: path(), append: false };
        assert!(invalid(child(&["cat"]).stdin(Stdin::File(path()))).contains("stdin"));
        assert!(invalid(child(&["cat"]).stdout(file())).contains("stdout"));
        assert!(invalid(child(&["cat"]).stderr(file())).contains("stderr"));
        assert!(invalid(child(&["cat"]).keep_full(path())).contains("keep_full"));
        assert!(invalid(Command::from_spec(Spec::new(Vec::<OsString>::new()))).contains("argv"));
        assert!(invalid(Command::new("")).contains("argv"));
    }
}

alone! {
    fn files_for_the_standard_streams() {
        refused(child(&["cat"]).stdin(Stdin::File("/no/such/file".into())), Step::Open, libc::ENOENT);
        let file = |path: &str| Sink::File { path: path.into(), append: false };
        refused(child(&["show"]).stdout(file("/no/such/file")), Step::Open, libc::ENOENT);
        refused(child(&["show"]).stderr(file("/tmp")), Step::Open, libc::EISDIR);
        refused(child(&["show"]).keep_full("/no/such/file"), Step::Open, libc::ENOENT);
    }
}

alone! {
    fn the_file_of_a_program_that_does_not_start() {
        let dir = tempfile::tempdir().unwrap();
        let kept = file(&dir, "kept", "of before", 0o600);
        let before = Census::now();
        for _ in 0..20 {
            let missing = Command::new("/no/such/program").keep_full(&kept);
            assert!(matches!(missing.run(), Err(Error::Spawn { .. })));
            // Whoever was to write it has gone.
            before.comes_back();
            assert_eq!(fs::read_to_string(&kept).unwrap(), "of before");
        }
        assert!(child(&["exit", "0"]).keep_full(&kept).run().unwrap().success());
        assert_eq!(fs::read_to_string(&kept).unwrap(), "", "of one that has written nothing");
    }
}

alone! {
    fn descriptors_that_cannot_be_given() {
        let null = || fs::File::open("/dev/null").unwrap();
        assert!(invalid(child(&["show"]).pass_fd(null(), 2)).contains("pass_fds"));
        invalid(child(&["show"]).pass_fd(null(), -1));
        // Numbers beyond the limit: the system refuses them all.
        refused(child(&["show"]).pass_fd(null(), 1 << 30), Step::Dup, libc::EBADF);
        refused(child(&["show"]).pass_fd(null(), i32::MAX), Step::Dup, libc::EBADF);
        let text = invalid(child(&["show"]).pass_fd(null(), 7).pass_fd(null(), 7));
        assert!(text.contains('7'), "{text}");
        let mut command = child(&["show"]);
        for number in 3..80 {
            command = command.pass_fd(null(), number);
        }
        let before = fs::read_dir("/proc/self/fd").unwrap().count();
        assert!(matches!(command.run(), Err(Error::Invalid(_))));
        assert!(fs::read_dir("/proc/self/fd").unwrap().count() < before);
    }
}

alone! {
    fn arguments_are_bytes() {
        let odd = OsString::from_vec(b"\xff\xfe \x80=\n".to_vec());
        let output = child(&["args"]).arg(&odd).arg("").run().unwrap();
        assert_eq!(output.stdout, b"\xff\xfe \x80=\n\0\0");
        let output = child(&["env"]).env_replace([(odd.clone().into_vec(), ())].map(|_| ("A", odd.clone()))).run().unwrap();
        assert_eq!(output.stdout, b"A=\xff\xfe \x80=\n\0");
        // The bytes may stand in the text of an error, too.
        let error = Command::new(odd).run().unwrap_err();
        assert!(error.to_string().contains("cannot run"), "{error}");
    }
}

alone! {
    fn the_environment() {
        let output = child(&["env"])
            .env_replace([("A", "1"), ("B", "2")])
            .env("B", "3")
            .env("C", "")
            .env_remove("A")
            .run()
            .unwrap();
        assert_eq!(output.stdout, b"B=3\0C=\0");
    }
}
