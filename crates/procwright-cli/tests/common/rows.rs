//! A screen on which each line is drawn at its row.

/// What stands on a screen after `text`, which moves, erases, and writes lines no longer than the
/// screen: as `procwright doctor --watch` does. A line for each row that was written to.
pub fn rows(text: &str) -> Vec<String> {
    let (mut rows, mut row) = (Vec::new(), 0);
    let mut parts = text.split('\x1b');
    write(&mut rows, row, parts.next().unwrap_or_default());
    for part in parts {
        let part = part.strip_prefix('[').unwrap_or(part);
        // The last sequence may not have come whole.
        let Some(end) = part.find(|letter: char| ('@'..='~').contains(&letter)) else {
            continue;
        };
        let (parameters, rest) = (&part[..end], &part[end + 1..]);
        match &part[end..=end] {
            "H" => {
                let first = parameters.split(';').next().unwrap();
                row = first.parse().unwrap_or(1) - 1;
            }
            "J" => rows.clear(),
            "K" if row < rows.len() => rows[row].clear(),
            _ => {}
        }
        write(&mut rows, row, rest);
    }
    rows
}

fn write(rows: &mut Vec<String>, row: usize, text: &str) {
    if !text.is_empty() {
        let needed = rows.len().max(row + 1);
        rows.resize(needed, String::new());
        rows[row] += text;
    }
}
