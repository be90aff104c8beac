//! What stands on the screen: the report, and below it since when, and which keys there are.

use procwright_explain::Diagnosis;

use super::clock;
use super::keys::Key;
use super::screen::Size;
use super::state::State;

/// What the keys do, on the last line.
const KEYS: &str = "q leave · ↑ ↓ scroll · p pause · r look now";

/// Screens with fewer rows have one line below the report, or, of fewer still, none.
const ROWS_FOR_KEYS: usize = 8;
const ROWS_FOR_STATE: usize = 4;

/// A report on a screen.
#[derive(Debug)]
pub(super) struct View {
    diagnosis: Diagnosis,
    colours: bool,
    state: State,
    /// Time of day of the look that has found this state first.
    since: String,
    /// Name of the state before; `None` at the first.
    before: Option<&'static str>,
    looked_at: String,
    /// Lines of the report that are above the screen.
    top: usize,
}

impl View {
    pub(super) fn new(diagnosis: Diagnosis, colours: bool) -> View {
        let now = clock::time_of_day();
        View {
            state: State::of(&diagnosis),
            diagnosis,
            colours,
            since: now.clone(),
            before: None,
            looked_at: now,
            top: 0,
        }
    }

    /// Shows what another look has seen. What is new stands at the top. Returns whether something
    /// is.
    pub(super) fn update(&mut self, diagnosis: Diagnosis) -> bool {
        self.looked_at = clock::time_of_day();
        let state = State::of(&diagnosis);
        let is_new = state != self.state;
        if is_new {
            self.before = Some(self.state.name());
            self.since = self.looked_at.clone();
            self.state = state;
            self.top = 0;
        }
        self.diagnosis = diagnosis;
        is_new
    }

    /// The last diagnosis.
    pub(super) fn diagnosis(&self) -> &Diagnosis {
        &self.diagnosis
    }

    /// The report alone.
    pub(super) fn report(&self, columns: usize) -> String {
        self.diagnosis.text_within(columns, self.colours)
    }

    /// Moves the report under the screen.
    pub(super) fn scroll(&mut self, key: Key, size: Size) {
        let page = rows_for_report(size).saturating_sub(1).max(1);
        self.top = match key {
            Key::Up => self.top.saturating_sub(1),
            Key::Down => self.top + 1,
            Key::PageUp => self.top.saturating_sub(page),
            Key::PageDown => self.top + page,
            Key::Top => 0,
            Key::Bottom => usize::MAX,
            _ => self.top,
        };
        let lines = self.report(size.columns).lines().count();
        self.top = self.top.min(last_top(lines, size));
    }

    /// The lines of a screen, one for each row. `rhythm` says when the next look is.
    pub(super) fn frame(&self, size: Size, rhythm: &str) -> Vec<String> {
        let report = self.report(size.columns);
        let report: Vec<&str> = report.lines().collect();
        // It may be shorter than it was, or the screen higher.
        let top = self.top.min(last_top(report.len(), size));
        let room = rows_for_report(size);
        let shown = report.iter().skip(top).take(room);
        let mut lines: Vec<String> = shown.map(|line| (*line).to_owned()).collect();
        lines.resize(room, String::new());
        if size.rows >= ROWS_FOR_STATE {
            lines.push(self.faint(&self.state_line(size.columns, rhythm)));
        }
        if size.rows >= ROWS_FOR_KEYS {
            let end = (top + room).min(report.len());
            let place = match report.len() > room {
                true => format!("{}-{end} of {}", top + 1, report.len()),
                false => String::new(),
            };
            lines.push(self.faint(&keys_line(size.columns, &place)));
        }
        lines
    }

    /// `── proven since 17:39:02, before: healthy ── looked at 17:40:31, next in 2 s ───`
    fn state_line(&self, columns: usize, rhythm: &str) -> String {
        let (state, since) = (self.state.name(), &self.since);
        let state = match self.before {
            Some(before) => format!("{state} since {since}, before: {before}"),
            // Since when, the first look does not tell.
            None => format!("{state} since {since} or earlier"),
        };
        let line = format!("── {state} ── looked at {}, {rhythm} ", self.looked_at);
        let rule = columns.saturating_sub(line.chars().count());
        cut(&(line + &"─".repeat(rule)), columns)
    }

    fn faint(&self, line: &str) -> String {
        match self.colours {
            true => format!("\x1b[2m{line}\x1b[0m"),
            false => line.to_owned(),
        }
    }
}

fn keys_line(columns: usize, place: &str) -> String {
    let used = KEYS.chars().count() + place.chars().count();
    let gap = columns.saturating_sub(used).max(2);
    match place.is_empty() {
        true => cut(KEYS, columns),
        false => cut(&format!("{KEYS}{}{place}", " ".repeat(gap)), columns),
    }
}

fn cut(line: &str, columns: usize) -> String {
    line.chars().take(columns).collect()
}

fn rows_for_report(size: Size) -> usize {
    let below = usize::from(size.rows >= ROWS_FOR_STATE) + usize::from(size.rows >= ROWS_FOR_KEYS);
    size.rows - below
}

/// The most lines that can be above the screen: the last of the report is at its bottom then.
fn last_top(lines: usize, size: Size) -> usize {
    lines.saturating_sub(rows_for_report(size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A view of this process, which runs, and a second report with another state.
    fn view() -> View {
        let own = std::process::id().cast_signed();
        let diagnosis = procwright_explain::examine(&[own], Duration::from_millis(1)).unwrap();
        View::new(diagnosis, false)
    }

    fn size(rows: usize, columns: usize) -> Size {
        Size { rows, columns }
    }

    #[test]
    fn each_row_has_a_line_that_fits() {
        let view = view();
        for rows in 1..40 {
            for columns in 1..100 {
                let frame = view.frame(size(rows, columns), "next in 2 s");
                assert_eq!(frame.len(), rows);
                let below = frame.iter().skip(rows_for_report(size(rows, columns)));
                for line in below {
                    assert!(line.chars().count() <= columns, "{line}");
                }
            }
        }
        let frame = view.frame(size(24, 80), "next in 2 s");
        assert!(frame[0].starts_with("Nothing hangs"), "{frame:?}");
        assert!(
            frame[22].starts_with("── healthy since ") && frame[22].contains(", next in 2 s ─"),
            "{frame:?}"
        );
        assert_eq!(frame[23], KEYS);
    }

    #[test]
    fn all_of_it_can_be_scrolled_to() {
        let mut view = view();
        let small = size(3, 40);
        let report: Vec<String> = view.report(40).lines().map(str::to_owned).collect();
        assert!(report.len() > 3);
        let mut seen = Vec::new();
        for _ in 0..report.len() {
            seen.push(view.frame(small, "")[0].clone());
            view.scroll(Key::Down, small);
        }
        let last = report.len() - 3;
        assert_eq!(seen[..=last], report[..=last]);
        assert_eq!(view.frame(small, ""), report[last..]);
        // No further than that, so that the first key back is seen.
        view.scroll(Key::Up, small);
        assert_eq!(view.frame(small, ""), report[last - 1..last + 2]);
        view.scroll(Key::Top, small);
        assert_eq!(view.frame(small, "")[0], report[0]);
        view.scroll(Key::Bottom, small);
        assert_eq!(view.frame(small, ""), report[last..]);
        view.scroll(Key::PageUp, small);
        assert_eq!(view.frame(small, "")[0], report[last - 2]);
        // A higher screen shows from the beginning what has room on it.
        let high = view.frame(size(30, 40), "");
        assert_eq!(high[..report.len()], report);
    }
}
