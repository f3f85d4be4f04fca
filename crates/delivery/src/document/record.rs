//! Records: mappings whose fields are declared once, each with its name, its kind of value and what it means.
//!
//! A declaration gives the type of the field, how a document states it, the canonical JSON, the JSON Schema, the rows of
//! the reference, and the names by which `explain` shows values and their origins. A record is read from several
//! documents at once: each field has the value of the first of them that states it.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::kind::Kind;
use super::reader::{Cursor, Fields};

/// A mapping with declared fields.
pub trait Record: Sized {
    /// The name of its type.
    const NAME: &'static str;
    /// What it is, in a sentence.
    const ABOUT: &'static [&'static str];

    /// Reads all fields; a missing or invalid one is reported, and there is then no record.
    fn read(fields: &Fields<'_>) -> Option<Self>;

    /// The fields as a document states them.
    fn write(&self) -> Map<String, Json>;

    /// The fields as they are shown, without secrets.
    fn shown(&self) -> Map<String, Json>;

    /// The declarations of its fields, in their order.
    fn declarations() -> Vec<Declaration>;

    /// Its settings as they are shown, with their names below `path`.
    fn show(&self, path: &str, shown: &mut Vec<Shown>);
}

/// The declaration of a field.
pub struct Declaration {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub about: String,
    /// Whether some document has to state it.
    pub is_required: bool,
    /// The default where no document states it.
    pub default: Option<Json>,
    /// The JSON Schema of its values.
    pub schema: Json,
    /// The fields of a mapping that is merged field by field.
    pub fields: Vec<Declaration>,
}

/// A setting as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The names of its fields, joined by dots.
    pub path: String,
    /// Its value, without secrets.
    pub value: Json,
    /// Its value for people.
    pub text: String,
}

/// The presence of a field: required, optional, or with a default.
pub trait Presence {
    /// The value of the field.
    type Value;

    /// The field of this name.
    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<Self::Value>;

    /// The value as a document states it; `None` if the document leaves it out.
    fn write(&self, value: &Self::Value) -> Option<Json>;

    /// The same without what is shown nowhere.
    fn shown(&self, value: &Self::Value) -> Option<Json>;

    /// The declaration with this name and meaning.
    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration;

    /// Adds its settings as they are shown.
    fn show(&self, path: String, value: &Self::Value, shown: &mut Vec<Shown>);
}

/// A field that some document has to state: that of a user, or the defaults of a profile.
pub struct Required<K>(pub K);

/// A field without a default; the text says what its absence means.
pub struct Optional<K>(pub K, pub &'static str);

/// A field with a default of its own.
pub struct Or<K, V>(pub K, pub V);

/// The lines of a doc comment as one text.
pub fn text(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The field as its kind reads it, if a document states it.
fn stated<K: Kind>(kind: &K, fields: &Fields<'_>, name: &'static str) -> Option<Option<K::Value>> {
    let at = if K::NULL_IS_ABSENT { fields.given(name) } else { fields.get(name) };
    at.map(|at| kind.read_over(&at, &fields.bases_of(name, &at)))
}

/// Whether a default says nothing that the absence of the field does not say.
fn is_empty(default: &Json) -> bool {
    match default {
        Json::Null => true,
        Json::Array(elements) => elements.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

fn declaration<K: Kind>(kind: &K, name: &'static str, about: &[&str]) -> Declaration {
    let (schema, fields) = (kind.schema(), kind.fields());
    let about = text(about);
    Declaration { name, about, is_required: false, default: None, schema, fields }
}

impl<K: Kind> Presence for Required<K> {
    type Value = K::Value;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<K::Value> {
        let read = stated(&self.0, fields, name);
        read.unwrap_or_else(|| fields.report_missing(name))
    }

    fn write(&self, value: &K::Value) -> Option<Json> {
        Some(self.0.write(value))
    }

    fn shown(&self, value: &K::Value) -> Option<Json> {
        Some(self.0.shown(value))
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        Declaration { is_required: true, ..declaration(&self.0, name, about) }
    }

    fn show(&self, path: String, value: &K::Value, shown: &mut Vec<Shown>) {
        self.0.show(path, value, shown);
    }
}

impl<K: Kind> Presence for Optional<K> {
    type Value = Option<K::Value>;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<Option<K::Value>> {
        match stated(&self.0, fields, name) {
            Some(read) => read.map(Some),
            None => Some(None),
        }
    }

    fn write(&self, value: &Option<K::Value>) -> Option<Json> {
        value.as_ref().map(|value| self.0.write(value))
    }

    fn shown(&self, value: &Option<K::Value>) -> Option<Json> {
        value.as_ref().map(|value| self.0.shown(value))
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        declaration(&self.0, name, about)
    }

    fn show(&self, path: String, value: &Option<K::Value>, shown: &mut Vec<Shown>) {
        match value {
            Some(value) => self.0.show(path, value, shown),
            None => shown.push(Shown { path, value: Json::Null, text: self.1.to_owned() }),
        }
    }
}

impl<K: Kind, V: Clone + Into<K::Value>> Presence for Or<K, V> {
    type Value = K::Value;

    fn read(&self, fields: &Fields<'_>, name: &'static str) -> Option<K::Value> {
        stated(&self.0, fields, name).unwrap_or_else(|| Some(self.1.clone().into()))
    }

    fn write(&self, value: &K::Value) -> Option<Json> {
        let written = self.0.write(value);
        let default = self.0.write(&self.1.clone().into());
        (written != default).then_some(written)
    }

    fn shown(&self, value: &K::Value) -> Option<Json> {
        Some(self.0.shown(value))
    }

    fn declare(&self, name: &'static str, about: &[&str]) -> Declaration {
        let default = Some(self.0.write(&self.1.clone().into())).filter(|of| !is_empty(of));
        Declaration { default, ..declaration(&self.0, name, about) }
    }

    fn show(&self, path: String, value: &K::Value, shown: &mut Vec<Shown>) {
        self.0.show(path, value, shown);
    }
}

/// The first position that states each field, with its path: the settings of a record, and where they are written.
pub fn origins<'a>(
    declarations: &[Declaration],
    documents: &[Cursor<'a>],
    path: &str,
    found: &mut Vec<(String, Cursor<'a>)>,
) {
    for Declaration { name, fields, .. } in declarations {
        let path = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
        let stating = documents.iter().filter_map(|of| of.peek(name)).filter(|at| !at.is_null());
        let stating: Vec<Cursor<'a>> = stating.collect();
        if fields.is_empty() || stating.first().is_some_and(|first| !first.is_mapping()) {
            found.extend(stating.into_iter().next().map(|first| (path, first)));
        } else {
            origins(fields, &stating, &path, found);
        }
    }
}

/// Declares a record: a type whose fields state their name in documents and their kind of value.
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        $(#[derive($($derive:ident),+)])?
        $vis:vis struct $name:ident {
            $($(#[doc = $sentence:literal])+ $key:literal => $of_field:vis $field:ident: $type:ty = $presence:expr,)+
        }
        $(check $check:path;)?
    ) => {
        $(#[doc = $about])+
        $(#[derive($($derive),+)])?
        $vis struct $name {
            $($(#[doc = $sentence])+ $of_field $field: $type,)+
        }

        impl $crate::document::record::Record for $name {
            const NAME: &'static str = stringify!($name);
            const ABOUT: &'static [&'static str] = &[$($about),+];

            fn read(fields: &$crate::document::reader::Fields<'_>) -> Option<Self> {
                // Each is read, even after an error: all of them get their findings.
                $(let $field = $crate::document::record::Presence::read(&$presence, fields, $key);)+
                let record = Self { $($field: $field?,)+ };
                $($check(&record, fields)?;)?
                Some(record)
            }

            fn write(&self) -> serde_json::Map<String, serde_json::Value> {
                let fields = [
                    $(($key, $crate::document::record::Presence::write(&$presence, &self.$field)),)+
                ];
                fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
            }

            fn shown(&self) -> serde_json::Map<String, serde_json::Value> {
                let fields = [
                    $(($key, $crate::document::record::Presence::shown(&$presence, &self.$field)),)+
                ];
                fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
            }

            fn declarations() -> Vec<$crate::document::record::Declaration> {
                vec![$($crate::document::record::Presence::declare(&$presence, $key, &[$($sentence),+]),)+]
            }

            fn show(&self, path: &str, shown: &mut Vec<$crate::document::record::Shown>) {
                $(
                    let path_of = if path.is_empty() { $key.to_owned() } else { format!("{path}.{}", $key) };
                    $crate::document::record::Presence::show(&$presence, path_of, &self.$field, shown);
                )+
            }
        }
    };
}

/// Declares alternatives: an enumeration of records, of which a document states one, either as its only field
/// (`by field`) or by a word in a field of the same mapping (`by "kind"`).
macro_rules! alternatives {
    (
        $(#[doc = $about:literal])+
        #[derive($($derive:ident),+)]
        pub enum $name:ident by $tag:tt {
            $($(#[doc = $sentence:literal])+ $key:literal => $variant:ident($type:ty),)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive($($derive),+)]
        pub enum $name {
            $($(#[doc = $sentence])+ $variant($type),)+
        }

        impl $name {
            /// The word for it in documents.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $key,)+ }
            }
        }

        impl $crate::document::kind::Alternatives for $name {
            const NAME: &'static str = stringify!($name);
            const ABOUT: &'static [&'static str] = &[$($about),+];
            const TAG: Option<&'static str> = alternatives!(@tag $tag);
            const KEYS: &'static [&'static str] = &[$($key),+];

            fn read(key: &str, fields: &$crate::document::reader::Fields<'_>) -> Option<Self> {
                match key {
                    $($key => <$type as $crate::document::record::Record>::read(fields).map(Self::$variant),)+
                    _ => None,
                }
            }

            fn write(&self) -> (&'static str, serde_json::Map<String, serde_json::Value>) {
                match self {
                    $(Self::$variant(of) => ($key, $crate::document::record::Record::write(of)),)+
                }
            }

            fn shown(&self) -> serde_json::Map<String, serde_json::Value> {
                match self {
                    $(Self::$variant(of) => $crate::document::record::Record::shown(of),)+
                }
            }

            fn declarations() -> Vec<(&'static str, String, Vec<$crate::document::record::Declaration>)> {
                vec![$((
                    $key,
                    $crate::document::record::text(&[$($sentence),+]),
                    <$type as $crate::document::record::Record>::declarations(),
                ),)+]
            }
        }
    };
    (@tag field) => { None };
    (@tag $tag:literal) => { Some($tag) };
}

/// A mapping without fields of its own, such as an alternative that is only a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NoFields;

impl Record for NoFields {
    const NAME: &'static str = "NoFields";
    const ABOUT: &'static [&'static str] = &["It has no fields."];

    fn read(_fields: &Fields<'_>) -> Option<Self> {
        Some(Self)
    }

    fn write(&self) -> Map<String, Json> {
        Map::new()
    }

    fn shown(&self) -> Map<String, Json> {
        Map::new()
    }

    fn declarations() -> Vec<Declaration> {
        Vec::new()
    }

    fn show(&self, _path: &str, _shown: &mut Vec<Shown>) {}
}

impl<R: Record> Record for Box<R> {
    const NAME: &'static str = R::NAME;
    const ABOUT: &'static [&'static str] = R::ABOUT;

    fn read(fields: &Fields<'_>) -> Option<Self> {
        R::read(fields).map(Self::new)
    }

    fn write(&self) -> Map<String, Json> {
        R::write(self)
    }

    fn shown(&self) -> Map<String, Json> {
        R::shown(self)
    }

    fn declarations() -> Vec<Declaration> {
        R::declarations()
    }

    fn show(&self, path: &str, shown: &mut Vec<Shown>) {
        R::show(self, path, shown);
    }
}

impl<R: Record> Record for Arc<R> {
    const NAME: &'static str = R::NAME;
    const ABOUT: &'static [&'static str] = R::ABOUT;

    fn read(fields: &Fields<'_>) -> Option<Self> {
        R::read(fields).map(Self::new)
    }

    fn write(&self) -> Map<String, Json> {
        R::write(self)
    }

    fn shown(&self) -> Map<String, Json> {
        R::shown(self)
    }

    fn declarations() -> Vec<Declaration> {
        R::declarations()
    }

    fn show(&self, path: &str, shown: &mut Vec<Shown>) {
        R::show(self, path, shown);
    }
}
