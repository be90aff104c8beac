//! `procwright man`: the manual pages, made from what the parser is made from.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use crate::args::{PageArg, definition};

/// A heading, and terms with what is to be said of each.
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

/// The variables that are read, in every page: they are those of the library.
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
        ("NO_COLOR", "If it is set and not empty: no colours."),
    ],
);

const PAGES: [&str; 6] = [
    "procwright(1)",
    "procwright-run(1)",
    "procwright-wait(1)",
    "procwright-buffer(1)",
    "procwright-man(1)",
    "procwright-completions(1)",
];

/// Writes a page, the overview if none is named.
///
/// # Errors
/// Those of the write.
pub(crate) fn write(page: Option<PageArg>, to: &mut dyn Write) -> io::Result<()> {
    let mut definition = definition();
    // Names the subcommands in full, and gives all of them what they inherit.
    definition.build();
    let (name, sections): (_, &[Section]) = match page {
        None => (None, &[]),
        Some(PageArg::Run) => (Some("run"), RUN),
        Some(PageArg::Wait) => (Some("wait"), WAIT),
        Some(PageArg::Buffer) => (Some("buffer"), BUFFER),
        Some(PageArg::Man) => (Some("man"), &[]),
        Some(PageArg::Completions) => (Some("completions"), &[]),
    };
    let command = match name {
        Some(name) => definition.find_subcommand(name).cloned(),
        None => None,
    };
    let command = command.unwrap_or(definition);
    let own = command
        .get_display_name()
        .unwrap_or("procwright")
        .to_owned();
    let is_overview = name.is_none();
    let version = env!("CARGO_PKG_VERSION");
    let man = Man::new(heading_last(command))
        .title(own.to_uppercase())
        // Not empty: what follows would be taken for it.
        .date(" ")
        .manual("User Commands")
        .source(format!("procwright {version}"));
    man.render_title(to)?;
    man.render_name_section(to)?;
    man.render_synopsis_section(to)?;
    man.render_description_section(to)?;
    man.render_options_section(to)?;
    if is_overview {
        man.render_subcommands_section(to)?;
    }
    let mut roff = Roff::default();
    for (heading, items) in sections.iter().chain([&ENVIRONMENT]) {
        roff.control("SH", [*heading]);
        for (term, text) in *items {
            roff.control("TP", []);
            roff.text([bold(*term)]);
            roff.text([roman(*text)]);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    let others = PAGES.iter().filter(|page| **page != format!("{own}(1)"));
    let others: Vec<&str> = others.copied().collect();
    roff.text([italic(others.join(", "))]);
    roff.to_writer(to)
}

/// What stands in no group, the help, behind the groups.
fn heading_last(command: Command) -> Command {
    command.mut_args(|arg| match arg.get_help_heading() {
        None => arg.help_heading("Options"),
        Some(_) => arg,
    })
}
