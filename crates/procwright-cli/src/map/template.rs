//! Placeholders: what an item becomes in the words of its command.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Words with placeholders.
#[derive(Clone, Debug)]
pub(super) struct Template(Vec<Vec<Piece>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(Vec<u8>),
    Place(Place),
}

/// What stands for a part of the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Whole,
    WithoutExtension,
    Name,
    Directory,
    Stem,
    Number,
}

/// GNU parallel's placeholders. None begins another one.
const PLACES: [(&[u8], Place); 6] = [
    (b"{}", Place::Whole),
    (b"{.}", Place::WithoutExtension),
    (b"{/}", Place::Name),
    (b"{//}", Place::Directory),
    (b"{/.}", Place::Stem),
    (b"{#}", Place::Number),
];

impl Template {
    /// The words of a command. Behind one that has no placeholder comes the item.
    pub(super) fn of_command(words: &[OsString]) -> Template {
        let mut words: Vec<_> = words.iter().map(|word| parsed(word.as_bytes())).collect();
        let is_place = |piece: &Piece| matches!(piece, Piece::Place(_));
        if !words.iter().flatten().any(is_place) {
            words.push(vec![Piece::Place(Place::Whole)]);
        }
        Template(words)
    }

    /// One word, such as a tag.
    pub(super) fn of_word(word: &OsStr) -> Template {
        Template(vec![parsed(word.as_bytes())])
    }

    /// The words for an item, which is the `number`th from 1 on.
    pub(super) fn words(&self, item: &OsStr, number: u64) -> Vec<OsString> {
        let word = |pieces: &Vec<Piece>| {
            let mut word = Vec::new();
            for piece in pieces {
                match piece {
                    Piece::Literal(bytes) => word.extend_from_slice(bytes),
                    Piece::Place(place) => place.push(item, number, &mut word),
                }
            }
            OsString::from_vec(word)
        };
        self.0.iter().map(word).collect()
    }
}

impl Place {
    fn push(self, item: &OsStr, number: u64, to: &mut Vec<u8>) {
        let path = Path::new(item);
        let name = path.file_name().unwrap_or(item);
        let part: &OsStr = match self {
            Place::Whole => item,
            Place::Name => name,
            Place::Stem => path.file_stem().unwrap_or(name),
            Place::Directory => match path.parent().map(Path::as_os_str) {
                // A name alone is in the directory of this command.
                Some(parent) if parent.is_empty() => OsStr::new("."),
                Some(parent) => parent,
                // The root is in itself.
                None => item,
            },
            Place::WithoutExtension => {
                let dropped = path.extension().map_or(0, |extension| extension.len() + 1);
                let bytes = item.as_bytes();
                // A slash at the end stands behind the extension.
                match bytes.ends_with(b"/") {
                    true => item,
                    false => OsStr::from_bytes(&bytes[..bytes.len() - dropped]),
                }
            }
            Place::Number => {
                to.extend_from_slice(number.to_string().as_bytes());
                return;
            }
        };
        to.extend_from_slice(part.as_bytes());
    }
}

fn parsed(word: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut literal = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.first() {
        let place = PLACES.iter().find(|(text, _)| rest.starts_with(text));
        match place {
            Some((text, place)) => {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Place(*place));
                rest = &rest[text.len()..];
            }
            None => {
                literal.push(*first);
                rest = &rest[1..];
            }
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(words: &[&str], item: &str) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        let words = Template::of_command(&words).words(OsStr::new(item), 7);
        words
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect()
    }

    #[test]
    fn each_placeholder_is_its_part_of_the_item() {
        let all = ["{}", "{.}", "{/}", "{//}", "{/.}", "{#}"];
        let parts = |item| filled(&all, item);
        assert_eq!(
            parts("a/b.tar.gz"),
            ["a/b.tar.gz", "a/b.tar", "b.tar.gz", "a", "b.tar", "7"]
        );
        assert_eq!(parts("b"), ["b", "b", "b", ".", "b", "7"]);
        assert_eq!(parts("/b.c"), ["/b.c", "/b", "b.c", "/", "b", "7"]);
        assert_eq!(parts("a.d/b"), ["a.d/b", "a.d/b", "b", "a.d", "b", "7"]);
        // What begins with a dot has no extension for that.
        assert_eq!(parts("a/.b"), ["a/.b", "a/.b", ".b", "a", ".b", "7"]);
        assert_eq!(parts("a.b/"), ["a.b/", "a.b/", "a.b", ".", "a", "7"]);
        assert_eq!(parts(""), ["", "", "", "", "", "7"]);
        assert_eq!(parts("/"), ["/", "/", "/", "/", "/", "7"]);
    }

    #[test]
    fn a_word_may_have_several_and_an_item_is_taken_as_it_is() {
        assert_eq!(
            filled(&["cp", "{}", "x/{/.}-{#}.bak"], "a/b.c"),
            ["cp", "a/b.c", "x/b-7.bak"]
        );
        assert_eq!(
            filled(&["echo", "{}"], "{#} $x 'y'"),
            ["echo", "{#} $x 'y'"]
        );
        assert_eq!(
            filled(&["awk", "{print}", "{x}", "{", "{}"], "f"),
            ["awk", "{print}", "{x}", "{", "f"]
        );
    }

    #[test]
    fn behind_words_without_one_comes_the_item() {
        assert_eq!(filled(&["gzip", "-9"], "a b"), ["gzip", "-9", "a b"]);
        assert_eq!(filled(&["echo", "{#}"], "a"), ["echo", "7"]);
    }
}
