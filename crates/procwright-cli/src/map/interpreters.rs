//! Programs that take code from their command line, and which words of it they take.
//!
//! Their options are read as they read them: those that take the next word are known, so that
//! the code behind them is found, and the words of a script are not taken for code.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A program that takes code from its command line.
pub(super) struct Interpreter {
    names: &'static [&'static str],
    /// Letters of the options whose value is code.
    code: &'static [u8],
    /// Long options whose value is code.
    long: &'static [&'static str],
    /// Letters that take the rest of their word, or else the next one.
    valued: &'static [u8],
    /// Letters that take the rest of their word alone.
    attached: &'static [u8],
    /// What comes behind its code.
    behind: Behind,
    /// What to type where an item was put inside of the code; none for a shell, which is told
    /// a line that has it as `$0`.
    pub(super) hint: Option<&'static str>,
}

/// What an interpreter takes the words behind its code for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// Arguments. Of a shell's options code is no value: it is the first word behind them all.
    ShellArguments,
    Arguments,
    /// Options, up to the first word that is none.
    Options,
    /// Options, wherever they stand.
    OptionsAnywhere,
}

const NOTHING: Interpreter = Interpreter {
    names: &[],
    code: b"",
    long: &[],
    valued: b"",
    attached: b"",
    behind: Behind::Options,
    hint: None,
};

const INTERPRETERS: [Interpreter; 8] = [
    Interpreter {
        names: &[
            "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "yash",
        ],
        code: b"c",
        valued: b"oO",
        behind: Behind::ShellArguments,
        ..NOTHING
    },
    Interpreter {
        names: &["fish"],
        code: b"cC",
        long: &["--command", "--init-command"],
        valued: b"dDof",
        hint: Some("have the code take it from $argv[1], and put {} behind the code"),
        ..NOTHING
    },
    Interpreter {
        names: &["python", "pypy"],
        code: b"c",
        valued: b"WXQ",
        behind: Behind::Arguments,
        hint: Some("have the code take it from sys.argv[1], and put {} behind the code"),
        ..NOTHING
    },
    Interpreter {
        names: &["perl"],
        code: b"eE",
        valued: b"I",
        attached: b"MmixFV",
        hint: Some("have the code take it from $ARGV[0], and put {} behind the code"),
        ..NOTHING
    },
    Interpreter {
        names: &["ruby"],
        code: b"e",
        valued: b"IrCE",
        attached: b"FKTWix",
        hint: Some("have the code take it from ARGV[0], and put {} behind the code"),
        ..NOTHING
    },
    Interpreter {
        names: &["node", "nodejs"],
        code: b"ep",
        long: &["--eval", "--print"],
        valued: b"rC",
        hint: Some("have the code take it from process.argv[1], and put {} behind the code"),
        ..NOTHING
    },
    Interpreter {
        names: &["su", "runuser"],
        code: b"c",
        long: &["--command", "--session-command"],
        valued: b"sgGwuT",
        behind: Behind::OptionsAnywhere,
        hint: Some("have a script take it as \"$1\", which su passes on: su USER -- SCRIPT {}"),
        ..NOTHING
    },
    Interpreter {
        names: &["env"],
        code: b"S",
        long: &["--split-string"],
        valued: b"uCa",
        hint: Some("leave that option out: the words of the command are taken as they are"),
        ..NOTHING
    },
];

/// Programs that run the rest of their words: their names, the letters of options that take the
/// next word, and how many words of their own come before the command.
const PREFIXES: [(&str, &[u8], usize); 10] = [
    ("env", b"uCa", 0),
    ("nice", b"n", 0),
    ("nohup", b"", 0),
    ("setsid", b"", 0),
    ("timeout", b"sk", 1),
    ("time", b"fo", 0),
    ("stdbuf", b"ioe", 0),
    ("ionice", b"cn", 0),
    ("sudo", b"CDghpRrTtUu", 0),
    ("busybox", b"", 0),
];

/// Long options of those that take the next word.
const PREFIX_OPTIONS: [&str; 15] = [
    "--adjustment",
    "--argv0",
    "--chdir",
    "--class",
    "--classdata",
    "--error",
    "--format",
    "--group",
    "--input",
    "--kill-after",
    "--output",
    "--signal",
    "--unset",
    "--user",
    "--host",
];

/// Code among words: which word it is, and where in that it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) word: usize,
    pub(super) begin: usize,
}

/// The interpreters that a command runs, by its first word or by that behind `env`, `nice` and
/// the like, with the place of that word, and all code that each takes.
pub(super) fn code(words: &[OsString]) -> Vec<(&'static Interpreter, usize, Vec<Code>)> {
    let mut found = Vec::new();
    for at in programs(words) {
        let name = name(&words[at]);
        let known = INTERPRETERS
            .iter()
            .find(|interpreter| interpreter.names.iter().any(|known| name == *known));
        if let Some(interpreter) = known {
            found.push((interpreter, at, interpreter.code(words, at + 1)));
        }
    }
    found
}

/// The places of the programs that a command names: of its first word, and, where that runs the
/// rest of its words, of the program there.
pub(super) fn programs(words: &[OsString]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(program) = words.get(at) {
        found.push(at);
        let name = name(program);
        let Some((_, valued, own)) = PREFIXES.iter().find(|(known, ..)| name == *known) else {
            break;
        };
        at = behind_prefix(words, at + 1, valued, *own);
    }
    found
}

/// The name of a program, without its directory and version.
fn name(program: &OsStr) -> &OsStr {
    let name = Path::new(program).file_name().unwrap_or(program);
    let bytes = name.as_bytes();
    let is_version = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let version = bytes.iter().rev().take_while(is_version).count();
    OsStr::from_bytes(&bytes[..bytes.len() - version])
}

/// The place of the command that a prefix runs.
fn behind_prefix(words: &[OsString], from: usize, valued: &[u8], own: usize) -> usize {
    let mut left = own;
    let mut at = from;
    let mut options = true;
    while let Some(word) = words.get(at).map(|word| word.as_bytes()) {
        at += 1;
        if options && word == b"--" {
            options = false;
        } else if options && word.starts_with(b"--") {
            let takes_next = PREFIX_OPTIONS.iter().any(|known| word == known.as_bytes());
            at += usize::from(takes_next);
        } else if options && word.starts_with(b"-") {
            let letter = word.iter().position(|byte| valued.contains(byte));
            at += usize::from(letter == Some(word.len() - 1));
        } else if !word.contains(&b'=') {
            if left == 0 {
                return at - 1;
            }
            left -= 1;
        }
    }
    at
}

/// What an option does with the words.
#[derive(Clone, Copy)]
enum Means {
    Flag,
    /// The next word is its value.
    Value,
    /// The next word may be its value.
    MaybeValue,
    /// Code comes as a word of its own.
    Code,
    /// So it does, and the next word is a value.
    CodeBehindValue,
    /// Code begins at this byte of the word.
    CodeHere(usize),
    /// The words behind it are a module's.
    End,
}

impl Interpreter {
    /// All code among the words of this interpreter, which begin at `from`.
    fn code(&self, words: &[OsString], from: usize) -> Vec<Code> {
        let mut found = Vec::new();
        let mut is_awaited = false;
        let mut may_be_value = false;
        let mut at = from;
        while let Some(word) = words.get(at).map(|word| word.as_bytes()) {
            let place = at;
            at += 1;
            let is_shell = self.behind == Behind::ShellArguments;
            let is_option =
                word.len() > 1 && (word.starts_with(b"-") || is_shell && word.starts_with(b"+"));
            let takes_any = is_awaited && !is_shell;
            if is_option && word != b"--" && !takes_any {
                may_be_value = false;
                match self.option(word) {
                    Means::Flag => {}
                    Means::Value => at += 1,
                    Means::MaybeValue => may_be_value = true,
                    Means::Code => is_awaited = true,
                    Means::CodeBehindValue => {
                        is_awaited = true;
                        at += 1;
                    }
                    Means::CodeHere(begin) => {
                        found.push(Code { word: place, begin });
                        if self.behind == Behind::Arguments {
                            break;
                        }
                    }
                    Means::End => break,
                }
            } else if is_awaited && (takes_any || word != b"--") {
                found.push(Code {
                    word: place,
                    begin: 0,
                });
                is_awaited = false;
                if matches!(self.behind, Behind::Arguments | Behind::ShellArguments) {
                    break;
                }
            } else if is_awaited {
                // Behind the dashes comes the line of a shell.
            } else if word == b"--" || !may_be_value && self.behind != Behind::OptionsAnywhere {
                // What comes now is a script, and the rest is for that.
                break;
            } else {
                may_be_value = false;
            }
        }
        found
    }

    fn option(&self, word: &[u8]) -> Means {
        if word.starts_with(b"--") {
            let end = word.iter().position(|byte| *byte == b'=');
            let name = &word[..end.unwrap_or(word.len())];
            // getopt_long(3) takes the beginning of a name for it.
            let is_code = self
                .long
                .iter()
                .any(|long| long.as_bytes().starts_with(name));
            return match (is_code, end) {
                (true, Some(end)) => Means::CodeHere(end + 1),
                (true, None) => Means::Code,
                (false, Some(_)) => Means::Flag,
                (false, None) => Means::MaybeValue,
            };
        }
        let letters = &word[1..];
        if self.behind == Behind::ShellArguments {
            // A shell's options have their values behind the word, several in their order.
            let takes_next = letters.iter().any(|letter| self.valued.contains(letter));
            let has_code = letters.iter().any(|letter| self.code.contains(letter));
            return match (has_code, takes_next) {
                (true, true) => Means::CodeBehindValue,
                (true, false) => Means::Code,
                (false, true) => Means::Value,
                (false, false) => Means::Flag,
            };
        }
        for (place, letter) in letters.iter().enumerate() {
            let rest = &letters[place + 1..];
            if self.code.contains(letter) {
                // node has -pe, which is both.
                return match rest.iter().all(|letter| self.code.contains(letter)) {
                    true => Means::Code,
                    false => Means::CodeHere(place + 2),
                };
            }
            if self.valued.contains(letter) {
                return match rest {
                    [] => Means::Value,
                    _ => Means::Flag,
                };
            }
            if self.attached.contains(letter) {
                return Means::Flag;
            }
            if *letter == b'm' && self.behind == Behind::Arguments {
                return Means::End;
            }
        }
        Means::Flag
    }
}
