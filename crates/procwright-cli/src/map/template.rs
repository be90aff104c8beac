//! Placeholders: what an item becomes in the words of its command.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Words with placeholders.
#[derive(Clone, Debug)]
pub(super) struct Template(Vec<Word>);

/// A word in its pieces.
pub(super) type Word = Vec<Piece>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(Vec<u8>),
    Place(Place),
}

/// A placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    part: Part,
    /// The list whose item is meant, from 0 on; none for those of all lists.
    list: Option<usize>,
    /// As it was written.
    pub(super) text: Vec<u8>,
}

/// What stands for a part of the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    WithoutExtension,
    Name,
    Directory,
    Stem,
    Number,
}

/// GNU parallel's placeholders, between the braces. In front of each but the last the number of
/// a list may stand.
const PARTS: [(&[u8], Part); 6] = [
    (b"", Part::Whole),
    (b".", Part::WithoutExtension),
    (b"/", Part::Name),
    (b"//", Part::Directory),
    (b"/.", Part::Stem),
    (b"#", Part::Number),
];

/// Placeholders of GNU parallel that are not there: taken as they stand, they would go to the
/// commands without a word.
const REFUSED: [(&[u8], &str); 8] = [
    (
        b"%",
        "the place among those that run at a time, which a command here does not know; {#} is \
         the number of its item",
    ),
    (
        b"##",
        "the number of all commands, which is not known before the last; a shell counts the lines \
         of FILE before: procwright map echo {#} of \"$(wc -l < FILE)\": {} :::: FILE",
    ),
    (b"..", "the item without two extensions"),
    (b"...", "the item without three extensions"),
    (b"/..", "the name without two extensions"),
    (b"/...", "the name without three extensions"),
    (b"+/", "the number of slashes in the item"),
    (b"+.", "the number of dots in the item"),
];

/// How placeholders are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syntax<'a> {
    /// What stands for the item in the place of all braces.
    pub(super) mark: Option<&'a OsStr>,
    /// How many lists of items there are.
    pub(super) lists: usize,
}

impl Template {
    /// The words of a command. Behind one that has no placeholder comes the item.
    ///
    /// # Errors
    /// A placeholder for which there is nothing, in words for a person.
    pub(super) fn of_command(words: &[OsString], syntax: Syntax<'_>) -> Result<Template, String> {
        let words = words.iter().map(|word| parsed(word, syntax));
        let mut words: Vec<Word> = words.collect::<Result<_, _>>()?;
        let is_place = |piece: &Piece| matches!(piece, Piece::Place(_));
        if !words.iter().flatten().any(is_place) {
            if let Some(mark) = syntax.mark {
                return Err(format!(
                    "no word of the command has {mark:?}, which -I has stand for the item"
                ));
            }
            words.push(vec![Piece::Place(Place {
                part: Part::Whole,
                list: None,
                text: b"{}".to_vec(),
            })]);
        }
        Ok(Template(words))
    }

    /// One word, such as a tag.
    ///
    /// # Errors
    /// As [`Template::of_command`].
    pub(super) fn of_word(word: &OsStr, syntax: Syntax<'_>) -> Result<Template, String> {
        Ok(Template(vec![parsed(word, syntax)?]))
    }

    /// The words, in their pieces.
    pub(super) fn pieces(&self) -> &[Word] {
        &self.0
    }

    /// The words for the items of a command, which is the `number`th from 1 on.
    pub(super) fn words(&self, items: &[OsString], number: u64) -> Vec<OsString> {
        let mut words = Vec::with_capacity(self.0.len());
        for word in &self.0 {
            // The items of all lists, with nothing beside them, are words of their own.
            if let [
                Piece::Place(Place {
                    part, list: None, ..
                }),
            ] = &**word
                && *part != Part::Number
            {
                words.extend(items.iter().map(|item| {
                    let mut bytes = Vec::new();
                    part.push(item, &mut bytes);
                    OsString::from_vec(bytes)
                }));
                continue;
            }
            words.push(one_word(word, items, number));
        }
        words
    }

    /// As [`Template::words`], all in one word.
    pub(super) fn word(&self, items: &[OsString], number: u64) -> OsString {
        one_word(&self.0[0], items, number)
    }
}

fn one_word(word: &Word, items: &[OsString], number: u64) -> OsString {
    let mut bytes = Vec::new();
    for piece in word {
        match piece {
            Piece::Literal(literal) => bytes.extend_from_slice(literal),
            Piece::Place(place) => place.push(items, number, &mut bytes),
        }
    }
    OsString::from_vec(bytes)
}

impl Place {
    /// True if what takes its place comes from the items.
    pub(super) fn is_of_items(&self) -> bool {
        self.part != Part::Number
    }

    fn push(&self, items: &[OsString], number: u64, to: &mut Vec<u8>) {
        if self.part == Part::Number {
            to.extend_from_slice(number.to_string().as_bytes());
            return;
        }
        let items = match self.list {
            Some(list) => &items[list..=list],
            None => items,
        };
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                to.push(b' ');
            }
            self.part.push(item, to);
        }
    }
}

impl Part {
    fn push(self, item: &OsStr, to: &mut Vec<u8>) {
        let path = Path::new(item);
        let name = path.file_name().unwrap_or(item);
        let part: &OsStr = match self {
            Part::Whole => item,
            Part::Name => name,
            Part::Stem => path.file_stem().unwrap_or(name),
            Part::Directory => match path.parent().map(Path::as_os_str) {
                // A name alone is in the directory of this command.
                Some(parent) if parent.is_empty() => OsStr::new("."),
                Some(parent) => parent,
                // The root is in itself.
                None => item,
            },
            Part::WithoutExtension => {
                let dropped = path.extension().map_or(0, |extension| extension.len() + 1);
                let bytes = item.as_bytes();
                // A slash at the end, or one with a dot, stands behind the extension.
                match bytes.ends_with(name.as_bytes()) {
                    true => OsStr::from_bytes(&bytes[..bytes.len() - dropped]),
                    false => item,
                }
            }
            // It is no part of an item.
            Part::Number => return,
        };
        to.extend_from_slice(part.as_bytes());
    }
}

fn parsed(word: &OsStr, syntax: Syntax<'_>) -> Result<Word, String> {
    let mut pieces = Vec::new();
    let mut literal = Vec::new();
    let mut rest = word.as_bytes();
    while let Some(first) = rest.first() {
        match place(rest, syntax)? {
            Some(place) => {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                rest = &rest[place.text.len()..];
                pieces.push(Piece::Place(place));
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
    Ok(pieces)
}

/// The placeholder that `text` begins with, if it does.
fn place(text: &[u8], syntax: Syntax<'_>) -> Result<Option<Place>, String> {
    if let Some(mark) = syntax.mark {
        let mark = mark.as_bytes();
        return Ok(text.starts_with(mark).then(|| Place {
            part: Part::Whole,
            list: None,
            text: mark.to_vec(),
        }));
    }
    let Some(inner) = text.strip_prefix(b"{") else {
        return Ok(None);
    };
    if let Some(perl) = perl(text) {
        return Err(format!(
            "{} is not there: nobody reads Perl here\n  {LEFT_ALONE}",
            String::from_utf8_lossy(perl)
        ));
    }
    let Some(end) = inner.iter().position(|byte| *byte == b'}') else {
        return Ok(None);
    };
    let (text, inner) = (&text[..end + 2], &inner[..end]);
    let shown = String::from_utf8_lossy(text);
    let (digits, name) = digits_and_rest(inner);
    let refused = REFUSED.iter().find(|(refused, _)| name == *refused);
    if let Some((_, meaning)) = refused {
        return Err(format!(
            "{shown} is not there: to parallel it is {meaning}\n  {LEFT_ALONE}"
        ));
    }
    if is_from_the_end(inner) {
        return Err(format!(
            "{shown} is not there: to parallel it is of the list of that number from the end\n  \
             hint: count the lists from 1 on, such as {{2}}\n  {LEFT_ALONE}"
        ));
    }
    let Some((_, part)) = PARTS.iter().find(|(part, _)| name == *part) else {
        return Ok(None);
    };
    if *part == Part::Number && !digits.is_empty() {
        return Err(format!(
            "{shown} is not there: {{#}} is the number of the command, whichever list an item is \
             of\n  hint: write {{#}}\n  {LEFT_ALONE}"
        ));
    }
    let number = match digits {
        b"" => None,
        // No list has that number, and {0} is nobody's placeholder.
        digits if digits.starts_with(b"0") => return Ok(None),
        digits => String::from_utf8_lossy(digits).parse::<usize>().ok(),
    };
    if !digits.is_empty() && number.is_none_or(|number| number > syntax.lists) {
        let lists = match syntax.lists {
            1 => "there is one list of items".to_owned(),
            lists => format!("there are {lists} lists of items"),
        };
        return Err(format!(
            "{shown} is of the list of that number, and {lists}\n  {LEFT_ALONE}"
        ));
    }
    Ok(Some(Place {
        part: *part,
        list: number.map(|number| number - 1),
        text: text.to_vec(),
    }))
}

/// True of what is between the braces of GNU parallel's `{-1}`, `{-2/.}` and their like.
fn is_from_the_end(inner: &[u8]) -> bool {
    let Some(inner) = inner.strip_prefix(b"-") else {
        return false;
    };
    let (digits, name) = digits_and_rest(inner);
    let is_part = PARTS.iter().any(|(part, _)| name == *part);
    let is_refused = REFUSED.iter().any(|(part, _)| name == *part);
    !digits.is_empty() && (is_part || is_refused)
}

/// GNU parallel's `{=perl=}` or `{2=perl=}` that `text` begins with, if it does. The Perl may
/// have braces.
fn perl(text: &[u8]) -> Option<&[u8]> {
    let inner = &text[1..];
    // A list from the end has a sign.
    let (_, rest) = digits_and_rest(inner.strip_prefix(b"-").unwrap_or(inner));
    let rest = rest.strip_prefix(b"=")?;
    let end = rest.windows(2).position(|pair| pair == b"=}")?;
    Some(&text[..text.len() - rest.len() + end + 2])
}

/// The number of a list in front of a placeholder's name, and the name.
fn digits_and_rest(inner: &[u8]) -> (&[u8], &[u8]) {
    let digits = inner.iter().take_while(|byte| byte.is_ascii_digit());
    inner.split_at(digits.count())
}

/// What to do where braces are not meant for this command.
const LEFT_ALONE: &str =
    "hint: with -I TEXT that TEXT stands for the item, and braces are left as they are";

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(words: &[&str], item: &str) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        let syntax = Syntax {
            mark: None,
            lists: 1,
        };
        let template = Template::of_command(&words, syntax).unwrap();
        let words = template.words(&[item.into()], 7);
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
        assert_eq!(
            parts("b.cdefgh/."),
            ["b.cdefgh/.", "b.cdefgh/.", "b.cdefgh", ".", "b", "7"]
        );
        assert_eq!(parts("a.b//./")[1], "a.b//./");
        assert_eq!(parts(".."), ["..", "..", "..", ".", "..", "7"]);
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

    fn of_two(words: &[&str], mark: Option<&str>) -> Result<Vec<String>, String> {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        let mark = mark.map(OsStr::new);
        let template = Template::of_command(&words, Syntax { mark, lists: 2 })?;
        let words = template.words(&["a/b.c".into(), "x y".into()], 7);
        Ok(words
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect())
    }

    #[test]
    fn lists_have_numbers() {
        let filled = |words: &[&str]| of_two(words, None).unwrap();
        assert_eq!(filled(&["e", "{2}-{1}"]), ["e", "x y-a/b.c"]);
        assert_eq!(
            filled(&["e", "{1/.}", "{1.}", "{1//}"]),
            ["e", "b", "a/b", "a"]
        );
        assert_eq!(filled(&["e"]), ["e", "a/b.c", "x y"]);
        assert_eq!(
            filled(&["e", "{}", "<{}>"]),
            ["e", "a/b.c", "x y", "<a/b.c x y>"]
        );
        assert_eq!(
            filled(&["e", "{}", "{0}{2,3}{2x}"]),
            ["e", "a/b.c", "x y", "{0}{2,3}{2x}"]
        );
        assert_eq!(
            filled(&["e", "{}", "{-}{-x}{-1x}{--1}"]),
            ["e", "a/b.c", "x y", "{-}{-x}{-1x}{--1}"]
        );
    }

    #[test]
    fn what_parallel_has_and_this_has_not_is_refused() {
        for word in [
            "{%}",
            "{3}",
            "{12/.}",
            "x{..}",
            "{= s/a/b/ =}",
            "{=s/a/b/=}",
            "{=s/a{2}/b/=}",
            "{2=s/a/b/=}",
            "{##}",
            "{1#}",
            "{+/}",
            "{2..}",
            "{1+/}",
            "{-1}",
            "{-2/}",
            "{-1/.}",
            "{-12//}",
            "{-1..}",
            "x{-1}y",
            "{-1=s/a/b/=}",
        ] {
            let refused = of_two(&["e", word], None).unwrap_err();
            assert!(refused.contains("-I TEXT"), "{word}: {refused}");
        }
    }

    #[test]
    fn a_mark_takes_the_place_of_braces() {
        let filled = |words: &[&str]| of_two(words, Some("@"));
        assert_eq!(
            filled(&["e", "@", "{}{%}-@"]).unwrap(),
            ["e", "a/b.c", "x y", "{}{%}-a/b.c x y"]
        );
        assert!(filled(&["e", "{}"]).unwrap_err().contains("-I"));
    }
}
