//! The tables of `docs/reference/queue-format.md`, for tests.

/// The reference. None where it is not, as in a packaged crate: then `test` is skipped
/// in plain sight.
pub(crate) fn text(test: &str) -> Option<String> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/queue-format.md"
    );
    match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) => {
            test_support::skip(test, &format!("needs {path}: {error}"));
            None
        }
    }
}

/// The table of that name.
pub(crate) fn table<'a>(text: &'a str, name: &str) -> &'a str {
    let begin = format!("<!-- vectors: {name} -->");
    let (_, rest) = text.split_once(&begin).unwrap();
    let (table, _) = rest.split_once("<!-- end -->").unwrap();
    table
}
