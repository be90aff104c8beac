//! `procwright man`: manual pages, made from the definition that the parser is made
//! from.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use crate::args::{PageArg, definition};

/// A heading, and terms with their descriptions.
type Section = (&'static str, &'static [(&'static str, &'static str)]);

const RUN: &[Section] = &[
    (
        "EXIT STATUS",
        &[
            ("the program's own", "It ended by itself."),
            (
                "128 + N",
                "Signal N ended it. After SIGINT the command dies by SIGINT itself, so that a \
                 shell loop can be stopped.",
            ),
            (
                "124",
                "Stopped by a limit: timeout, idle timeout, output limit.",
            ),
            ("125", "Wrong usage, or trouble of our own."),
            ("126", "Found, but could not be executed."),
            ("127", "Not found."),
        ],
    ),
    (
        "EXAMPLES",
        &[
            (
                "procwright run --timeout 10m --report text make -j8",
                "At most ten minutes, and at the end what became of it.",
            ),
            (
                "procwright run --retry 3 --backoff 5s curl -fO https://example.org/file",
                "Up to four attempts, after 5, 10 and 20 seconds.",
            ),
            (
                "procwright run --timeout 10m --dry-run make > make.json",
                "Write it down; procwright run --spec make.json runs it.",
            ),
        ],
    ),
];

const MAP: &[Section] = &[
    (
        "EXIT STATUS",
        &[
            ("0", "All commands have succeeded."),
            (
                "1",
                "Some have failed, now or before, or were not run since their end is not known.",
            ),
            ("124", "The deadline has come."),
            (
                "125",
                "Wrong usage, or trouble of our own, such as a journal that cannot be written.",
            ),
            (
                "death by a signal",
                "That asked this command to end. All commands have ended before.",
            ),
        ],
    ),
    (
        "EXAMPLES",
        &[
            (
                "procwright map -j 8 gzip -9 {} ::: *.log",
                "Eight at a time.",
            ),
            (
                "find . -name '*.wav' -print0 | procwright map -0 --tag={/} flac {} -o out/{/.}.flac",
                "Whole lines as they come, with the name of the file before each.",
            ),
            (
                "procwright map --journal done.jsonl --resume --rerun-failed ./fetch < urls",
                "What has failed, or is new, after whatever ended the last one.",
            ),
        ],
    ),
];

const PIPE: &[Section] = &[
    (
        "EXIT STATUS",
        &[
            ("0", "All stages have ended well, or were forgiven."),
            (
                "the code of a stage",
                "Of the last one that failed; 128 + N if signal N ended it.",
            ),
            (
                "124",
                "Stopped by a limit: timeout, idle timeout, output limit.",
            ),
            ("125", "Wrong usage, or trouble of our own."),
            ("126", "A stage was found, but could not be executed."),
            ("127", "A stage was not found."),
            (
                "death by a signal",
                "That asked this command to end. All stages have ended before.",
            ),
        ],
    ),
    (
        "EXAMPLES",
        &[
            (
                "procwright pipe --report text yes --to head -1",
                "Success, with a table of both stages: yes died of SIGPIPE, and is forgiven.",
            ),
            (
                "procwright pipe --ok 2=1 zcat log.gz --to grep 500 --to wc -l",
                "A grep that finds nothing exits with 1, which is no failure here.",
            ),
            (
                "procwright pipe --timeout 10m pg_dump app --to zstd -o app.zst",
                "At most ten minutes; who held up the other is told.",
            ),
            (
                "procwright pipe pg_dump app --to zstd -o app.zst --and sha256sum",
                "Both get all of it. sha256sum writes to stdout, and each is judged.",
            ),
            (
                "procwright pipe ssh a cat log --and ssh b cat log --to sort",
                "The lines of both, each whole, to one.",
            ),
        ],
    ),
];

const WAIT: &[Section] = &[(
    "EXIT STATUS",
    &[
        (
            "0",
            "Those have ended that were waited for, however they did.",
        ),
        ("3", "Timed out; stderr says who is still there."),
        (
            "125",
            "Nothing to wait for was given, wrong usage, or trouble of our own.",
        ),
    ],
)];

const BUFFER: &[Section] = &[(
    "EXIT STATUS",
    &[
        (
            "0",
            "Everything has been passed on, or was dropped as asked.",
        ),
        ("death by SIGPIPE", "The reader takes no more."),
        (
            "125",
            "Wrong usage, --overflow fail, or bytes that cannot be read, written, or read back.",
        ),
    ],
)];

const RECV: &[Section] = &[
    (
        "EXIT STATUS",
        &[
            ("0", "As many messages as --count says, or --until-closed."),
            ("3", "Timed out."),
            ("death by SIGPIPE", "Nobody reads stdout any more."),
            (
                "125",
                "Wrong usage, a name whose receiver lives, or trouble of our own.",
            ),
        ],
    ),
    (
        "EXAMPLES",
        &[
            (
                "procwright queue recv jobs | xargs -n 1 convert-one",
                "Does what others send, one after the other.",
            ),
            (
                "procwright queue recv jobs --timeout 0 --format records > rest",
                "Takes what is there.",
            ),
        ],
    ),
];

const SEND: &[Section] = &[
    (
        "EXIT STATUS",
        &[
            ("0", "All messages were sent, or dropped as asked."),
            (
                "1",
                "The receiver is dead or has left, there is no queue of that name, or it is full \
                 under --overflow fail. stderr says how many messages were sent before.",
            ),
            ("3", "Timed out."),
            ("125", "Wrong usage, or trouble of our own."),
        ],
    ),
    (
        "EXAMPLES",
        &[(
            "find . -name '*.png' | procwright queue send jobs --wait 1m",
            "A message for each line, once somebody receives.",
        )],
    ),
];

const STAT: &[Section] = &[(
    "EXIT STATUS",
    &[
        ("0", "Shown."),
        ("1", "There is no queue of that name."),
        ("125", "Wrong usage, or trouble of our own."),
    ],
)];

const DOCTOR: &[Section] = &[
    (
        "EXIT STATUS",
        &[
            ("0", "Healthy, or busy."),
            ("1", "A deadlock, proven."),
            (
                "2",
                "A possible deadlock, somebody who is stopped, or a slow reader.",
            ),
            ("3", "Somebody waits for input at a terminal."),
            (
                "125",
                "No such process, wrong usage, or trouble of our own.",
            ),
        ],
    ),
    (
        "EXAMPLES",
        &[
            (
                "procwright doctor $(pgrep -o make)",
                "Why that make does not go on.",
            ),
            (
                "procwright doctor --watch $(pgrep -n my-program)",
                "A screen that shows whether it hangs, since when, and why. q leaves.",
            ),
            (
                "procwright doctor --watch --json 4711 >> hangs.jsonl",
                "A line for each change, until it ends.",
            ),
            (
                "procwright doctor --dot 4711 | dot -Tsvg > waits.svg",
                "A picture of it.",
            ),
        ],
    ),
];

/// Variables that are read, in every page: most are those of the library.
const ENVIRONMENT: Section = (
    "ENVIRONMENT",
    &[
        (
            "PROCWRIGHT_TRACE",
            "1 prints a line on stderr for every start, event and end; a path with a slash \
             appends them to that file.",
        ),
        (
            "PROCWRIGHT_SPOOL_DIR",
            "The directory for what goes to disk, instead of the first of /var/tmp, TMPDIR and \
             /tmp that is writable and not in memory.",
        ),
        ("PROCWRIGHT_SPOOL=0", "Nothing goes to disk."),
        (
            "PROCWRIGHT_QUEUE_DIR",
            "The directory of the names of queues, instead of procwright/queues in \
             XDG_RUNTIME_DIR, or /tmp/procwright-UID/queues. It must be this user's alone.",
        ),
        ("NO_COLOR", "If it is set and not empty: no colours."),
    ],
);

/// A page: the subcommand that it is about, and its own sections.
struct Page {
    /// Name in the command line, None for the overview.
    name: Option<PageArg>,
    /// Names of the subcommand, from `procwright` on.
    path: &'static [&'static str],
    sections: &'static [Section],
}

const fn page(name: PageArg, path: &'static [&'static str], sections: &'static [Section]) -> Page {
    let name = Some(name);
    Page {
        name,
        path,
        sections,
    }
}

const OVERVIEW: Page = Page {
    name: None,
    path: &[],
    sections: &[],
};

/// Every page, in the order of `SEE ALSO`.
const PAGES: [Page; 13] = [
    OVERVIEW,
    page(PageArg::Run, &["run"], RUN),
    page(PageArg::Map, &["map"], MAP),
    page(PageArg::Pipe, &["pipe"], PIPE),
    page(PageArg::Wait, &["wait"], WAIT),
    page(PageArg::Buffer, &["buffer"], BUFFER),
    page(PageArg::Queue, &["queue"], &[]),
    page(PageArg::QueueSend, &["queue", "send"], SEND),
    page(PageArg::QueueRecv, &["queue", "recv"], RECV),
    page(PageArg::QueueStat, &["queue", "stat"], STAT),
    page(PageArg::Doctor, &["doctor"], DOCTOR),
    page(PageArg::Man, &["man"], &[]),
    page(PageArg::Completions, &["completions"], &[]),
];

impl Page {
    /// `procwright-queue-send(1)`
    fn reference(&self) -> String {
        let mut words = vec!["procwright"];
        words.extend(self.path);
        format!("{}(1)", words.join("-"))
    }
}

/// Writes a page, the overview if none is named.
///
/// # Errors
/// Those of the write.
pub(crate) fn write(name: Option<PageArg>, to: &mut dyn Write) -> io::Result<()> {
    let mut definition = definition();
    // Names the subcommands in full, and gives all of them what they inherit.
    definition.build();
    let page = PAGES.iter().find(|page| page.name == name);
    let page = page.unwrap_or(&OVERVIEW);
    let mut command = definition;
    for name in page.path {
        command = command.find_subcommand(name).cloned().unwrap_or(command);
    }
    let own = command
        .get_display_name()
        .unwrap_or("procwright")
        .to_owned();
    let has_subcommands = command.has_subcommands();
    let version = env!("CARGO_PKG_VERSION");
    let man = Man::new(with_help_last(command))
        .title(own.to_uppercase())
        // A space: roff would take the next word for an empty date.
        .date(" ")
        .manual("User Commands")
        .source(format!("procwright {version}"));
    man.render_title(to)?;
    man.render_name_section(to)?;
    man.render_synopsis_section(to)?;
    man.render_description_section(to)?;
    man.render_options_section(to)?;
    if has_subcommands {
        man.render_subcommands_section(to)?;
    }
    let mut roff = Roff::default();
    for (heading, items) in page.sections.iter().chain([&ENVIRONMENT]) {
        roff.control("SH", [*heading]);
        for (term, text) in *items {
            roff.control("TP", []);
            roff.text([bold(*term)]);
            roff.text([roman(*text)]);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    let others = PAGES.iter().filter(|other| other.name != page.name);
    let others: Vec<String> = others.map(Page::reference).collect();
    roff.text([italic(others.join(", "))]);
    roff.to_writer(to)
}

/// Puts the options without a heading, which is the help, behind the others.
fn with_help_last(command: Command) -> Command {
    command.mut_args(|arg| match arg.get_help_heading() {
        None => arg.help_heading("Options"),
        Some(_) => arg,
    })
}
