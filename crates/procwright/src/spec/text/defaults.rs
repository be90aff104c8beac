//! Defaults for the members that a text leaves out.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Members, Sink, Spec, Stdin};

/// Defaults for the members that the text of a [`Spec`] leaves out. The others
/// have one default everywhere.
///
/// Front ends need it whose defaults are not the library's: the command passes on what
/// a file says nothing about, and takes its arguments for those of the file. It is
/// a `DeserializeSeed` of serde, for any format.
///
/// ```
/// use procwright::{Sink, spec::Defaults};
/// use serde::de::DeserializeSeed;
///
/// let defaults = Defaults { stdout: Sink::Inherit, ..Defaults::default() };
/// let mut text = serde_json::Deserializer::from_str(r#"{"argv": ["make"]}"#);
/// let spec = defaults.deserialize(&mut text)?;
/// assert!(matches!(spec.stdout, Sink::Inherit));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// The program and its arguments; none if the text has to say.
    pub argv: Option<Vec<OsString>>,
    /// Stdin of the program.
    pub stdin: Stdin,
    /// Target of its output.
    pub stdout: Sink,
    /// Target of its error output.
    pub stderr: Sink,
}

impl<'de> DeserializeSeed<'de> for Defaults {
    type Value = Spec;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Spec, D::Error> {
        let spec = deserializer.deserialize_map(SpecVisitor(self))?;
        // Said of the whole text and not of its last line.
        spec.ok_or_else(|| D::Error::missing_field("argv"))
    }
}

/// Reads a spec; none if no program is in it.
struct SpecVisitor(Defaults);

impl<'de> Visitor<'de> for SpecVisitor {
    type Value = Option<Spec>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with the members of a spec")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Option<Spec>, A::Error> {
        let SpecVisitor(defaults) = self;
        let mut names = BTreeSet::new();
        let mut spec = Members::deserialize(MapAccessDeserializer::new(NotedMap {
            members,
            names: &mut names,
        }))?;
        if !names.contains("argv") {
            let Some(argv) = defaults.argv else {
                return Ok(None);
            };
            spec.argv = argv;
        }
        if !names.contains("stdin") {
            spec.stdin = defaults.stdin;
        }
        if !names.contains("stdout") {
            spec.stdout = defaults.stdout;
        }
        if !names.contains("stderr") {
            spec.stderr = defaults.stderr;
        }
        Ok(Some(spec))
    }
}

/// A map that notes the names of its members while they are read.
struct NotedMap<'n, A> {
    members: A,
    names: &'n mut BTreeSet<String>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for NotedMap<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let names = &mut *self.names;
        self.members.next_key_seed(NotedName { seed, names })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.members.next_value_seed(seed)
    }
}

/// Reads a name within the map's own reading of it, so that the error for an
/// unknown one gets the line on which it stands.
struct NotedName<'n, K> {
    seed: K,
    names: &'n mut BTreeSet<String>,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for NotedName<'_, K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        let name = String::deserialize(deserializer)?;
        self.names.insert(name.clone());
        self.seed.deserialize(name.into_deserializer())
    }
}
