//! [`Alternatives`]: an enumeration whose variants are records. A document states exactly one
//! variant.

use std::marker::PhantomData;

use serde_json::{Map, Value as Json, json};

use super::declaration::{Declaration, text};
use super::findings::Message;
use super::reader::{Cursor, Fields};
use super::schema::{DEFINITION, of_mapping};
use super::value::Kind;

/// An enumeration whose variants are records. A document states exactly one variant.
pub trait Alternatives: Sized {
    /// The name of the type in the reference and the JSON Schema.
    const NAME: &'static str;
    /// The description of the type, one string for each line.
    const ABOUT: &'static [&'static str];
    /// Name of the field that selects the variant; `None` if each variant has a field of its own.
    const TAG: Option<&'static str>;
    /// The names of the variants in documents.
    const KEYS: &'static [&'static str];

    /// Reads the fields of the variant with this name. Reports invalid fields and returns `None`.
    fn read(key: &str, fields: &Fields<'_>) -> Option<Self>;

    /// Returns the name of the variant and its fields, as a document states them.
    fn write(&self) -> (&'static str, Map<String, Json>);

    /// Returns the fields of the variant for display, without secrets.
    fn shown(&self) -> Map<String, Json>;

    /// Returns the name, the description and the fields of each variant.
    fn declarations() -> Vec<(&'static str, String, Vec<Declaration>)>;
}

/// The field type of enumerations whose variants are records.
pub struct OneOf<A>(PhantomData<A>);

impl<A> OneOf<A> {
    /// The single value of this field type, for declarations.
    pub const KIND: Self = Self(PhantomData);
}

impl<A: Alternatives> Kind for OneOf<A> {
    type Value = A;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<A> {
        let words: Vec<(&'static str, &'static str)> =
            A::KEYS.iter().map(|key| (*key, *key)).collect();
        match A::TAG {
            Some(tag) => at.mapping(|fields| {
                let key = fields.required(tag).and_then(|at| at.choice(&words));
                // An invalid name has already been reported. Without a valid name, the other fields
                // cannot be checked.
                let Some(key) = key else {
                    fields.accept_rest();
                    return None;
                };
                report_others::<A>(tag, key, fields);
                A::read(key, fields)
            })?,
            None => at.mapping(|fields| {
                let parent = fields.parent();
                // Reads the field of every variant, so that none is reported as unknown.
                let given = A::KEYS.iter().filter_map(|key| Some((*key, fields.own(key)?)));
                let given: Vec<_> = given.filter(|(_, at)| !at.is_null()).collect();
                match &given[..] {
                    [(key, at)] => at.mapping(|fields| A::read(key, fields))?,
                    [] => {
                        parent.refuse(Message::new("the kind is missing").help(A::KEYS.join(", ")))
                    }
                    [..] => parent.refuse(
                        Message::new(format!("{} must have exactly one kind", parent.name()))
                            .help(A::KEYS.join(", ")),
                    ),
                }
            })?,
        }
    }

    fn write(&self, value: &A) -> Json {
        let (key, fields) = value.write();
        stated::<A>(key, fields)
    }

    fn shown(&self, value: &A) -> Json {
        let (key, _) = value.write();
        stated::<A>(key, value.shown())
    }

    fn schema(&self) -> Json {
        let about = text(A::ABOUT);
        let of_each = A::declarations().into_iter();
        match A::TAG {
            Some(tag) => {
                let each = of_each.map(|(key, about, fields)| {
                    let mut schema = of_mapping("", &[&about], fields);
                    schema["required"] = required_with(&schema["required"], tag);
                    let tag = json!([tag, { "const": key, "description": about }]);
                    if let Some(properties) = schema["properties"].as_array_mut() {
                        properties.insert(0, tag);
                    }
                    schema
                });
                json!({ DEFINITION: A::NAME, "description": about, "oneOf": each.collect::<Vec<_>>() })
            }
            None => {
                let each = of_each
                    .map(|(key, about, fields)| json!([key, of_mapping("", &[&about], fields)]));
                json!({
                    DEFINITION: A::NAME,
                    "description": about,
                    "type": ["object", "null"],
                    "additionalProperties": false,
                    "minProperties": 1,
                    "maxProperties": 1,
                    "properties": each.collect::<Vec<_>>(),
                })
            }
        }
    }
}

/// Adds a name to the list of required fields in a schema.
fn required_with(required: &Json, name: &str) -> Json {
    let others = required.as_array().into_iter().flatten().cloned();
    std::iter::once(json!(name)).chain(others).collect()
}

/// Returns a variant in the JSON form of a document: with a tag, or as the value of its key.
fn stated<A: Alternatives>(key: &str, mut fields: Map<String, Json>) -> Json {
    match A::TAG {
        Some(tag) => {
            fields.insert(tag.to_owned(), json!(key));
            Json::Object(fields)
        }
        None => json!({ key: fields }),
    }
}

/// Reports fields that belong only to other variants.
fn report_others<A: Alternatives>(tag: &'static str, key: &str, fields: &Fields<'_>) {
    let all = A::declarations();
    let own = |name: &str| {
        let of_key = all.iter().find(|(variant, ..)| *variant == key);
        of_key.is_some_and(|(.., fields)| fields.iter().any(|declaration| declaration.name == name))
    };
    for (other, _, declarations) in &all {
        for Declaration { name, .. } in
            declarations.iter().filter(|declaration| !own(declaration.name))
        {
            if let Some(at) = fields.key(name) {
                let message = Message::new(format!("{name} is not allowed with {tag}: {key}"));
                at.error(message.help(format!("{tag}: {other}")));
            }
        }
    }
}

/// Declares an enumeration whose variants are records. A document states a variant as its only
/// field (`by field`), or by the variant's name in a field of the same mapping (`by "kind"`).
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
            /// Returns the name of the variant in documents.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $key,)+ }
            }
        }

        impl $crate::document::alternatives::Alternatives for $name {
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
                    $(Self::$variant(record) => {
                        ($key, $crate::document::record::Record::write(record))
                    })+
                }
            }

            fn shown(&self) -> serde_json::Map<String, serde_json::Value> {
                match self {
                    $(Self::$variant(record) => $crate::document::record::Record::shown(record),)+
                }
            }

            fn declarations() -> Vec<(&'static str, String, Vec<$crate::document::declaration::Declaration>)> {
                vec![$((
                    $key,
                    $crate::document::declaration::text(&[$($sentence),+]),
                    <$type as $crate::document::record::Record>::declarations(),
                ),)+]
            }
        }
    };
    (@tag field) => { None };
    (@tag $tag:literal) => { Some($tag) };
}
