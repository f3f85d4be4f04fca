//! [`Record`]: a mapping whose fields are declared once, each with its name, its type and its
//! meaning.
//!
//! A declaration defines:
//! - the Rust type of the field;
//! - its form in documents and in the canonical JSON;
//! - its JSON Schema and its row in the reference;
//! - the name with which `explain` shows its value and its origin.
//!
//! A record is read from several documents together. The first document that states a field
//! determines its value.

use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

pub use super::declaration::{Declaration, Shown};
pub use super::presence::{Optional, Or, Presence, Required};
use super::reader::{Cursor, Fields};
use super::schema::of_mapping;
use super::value::Kind;

/// A type that declares the name and the type of each of its fields in documents.
pub trait Record: Sized {
    /// The name of the type in the reference and the JSON Schema.
    const NAME: &'static str;
    /// The description of the type, one string for each line.
    const ABOUT: &'static [&'static str];

    /// Reads all fields. Reports missing and invalid fields, and returns `None` if there are any.
    fn read(fields: &Fields<'_>) -> Option<Self>;

    /// Returns the fields as a document states them.
    fn write(&self) -> Map<String, Json>;

    /// Returns the fields for display, without secrets.
    fn shown(&self) -> Map<String, Json>;

    /// Returns the declarations of the fields, in order.
    fn declarations() -> Vec<Declaration>;

    /// Adds the fields to the settings for display. Their names begin with `path`.
    fn show(&self, path: &str, shown: &mut Vec<Shown>);
}

/// Declares a record. Each field states its name in documents, its field type, and whether it is
/// required.
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
                // Reads every field, even after an invalid one, so that all errors are reported.
                $(let $field = $crate::document::presence::Presence::read(&$presence, fields, $key);)+
                let record = Self { $($field: $field?,)+ };
                $($check(&record, fields)?;)?
                Some(record)
            }

            fn write(&self) -> serde_json::Map<String, serde_json::Value> {
                let fields = [
                    $(($key, $crate::document::presence::Presence::write(&$presence, &self.$field)),)+
                ];
                fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
            }

            fn shown(&self) -> serde_json::Map<String, serde_json::Value> {
                let fields = [
                    $(($key, $crate::document::presence::Presence::shown(&$presence, &self.$field)),)+
                ];
                fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
            }

            fn declarations() -> Vec<$crate::document::declaration::Declaration> {
                vec![$($crate::document::presence::Presence::declare(&$presence, $key, &[$($sentence),+]),)+]
            }

            fn show(&self, path: &str, shown: &mut Vec<$crate::document::declaration::Shown>) {
                $(
                    let path_of = if path.is_empty() { $key.to_owned() } else { format!("{path}.{}", $key) };
                    $crate::document::presence::Presence::show(&$presence, path_of, &self.$field, shown);
                )+
            }
        }
    };
}

/// A record without fields, for variants that carry no data.
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

/// Implements `Record` for smart pointers to records.
macro_rules! pointers {
    ($($pointer:ident),+) => {$(
        impl<R: Record> Record for $pointer<R> {
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
    )+};
}

pointers!(Box, Arc);

/// The field type of records that are merged field by field. If a document omits a field, the next
/// document supplies it.
pub struct Merged<R>(PhantomData<R>);

/// The field type of records that are not merged: the first document that states the record
/// determines all of its fields.
pub struct Whole<R>(PhantomData<R>);

impl<R> Merged<R> {
    /// The only value of this type, for use in field declarations.
    pub const KIND: Self = Self(PhantomData);
}

impl<R> Whole<R> {
    /// The only value of this type, for use in field declarations.
    pub const KIND: Self = Self(PhantomData);
}

impl<R: Record> Kind for Merged<R> {
    type Value = R;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<R> {
        self.read_over(at, &[])
    }

    fn read_over<'a>(&self, at: &Cursor<'a>, bases: &[Cursor<'a>]) -> Option<R> {
        at.mapping_over(bases, R::read).flatten()
    }

    fn write(&self, value: &R) -> Json {
        Json::Object(value.write())
    }

    fn shown(&self, value: &R) -> Json {
        Json::Object(value.shown())
    }

    fn schema(&self) -> Json {
        of_mapping(R::NAME, R::ABOUT, R::declarations())
    }

    fn fields(&self) -> Vec<Declaration> {
        R::declarations()
    }

    fn show(&self, path: String, value: &R, shown: &mut Vec<Shown>) {
        value.show(&path, shown);
    }
}

impl<R: Record> Kind for Whole<R> {
    type Value = R;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<R> {
        at.mapping(R::read).flatten()
    }

    fn write(&self, value: &R) -> Json {
        Json::Object(value.write())
    }

    fn shown(&self, value: &R) -> Json {
        Json::Object(value.shown())
    }

    fn schema(&self) -> Json {
        of_mapping(R::NAME, R::ABOUT, R::declarations())
    }
}
