//! Parses and writes the text of a topic's stored object.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use thiserror::Error;

use super::limits::{CONDITIONS_MAX, ENTRY_MAX_BYTES, OBJECT_MAX_BYTES, SUBSCRIPTIONS_MAX};

/// Tag of the object of a removed topic, as `name=value`. A lifecycle rule in template.yaml expires
/// objects with this tag.
pub const TOMBSTONE_TAG: &str = "removed=true";
/// Format version of the objects that this program writes.
const VERSION: u64 = 1;

/// The content of an object: a topic, or the record that a topic was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<'a> {
    /// The object contains the entries of a topic.
    Topic(TopicObject<'a>),
    /// The topic was removed at this time (RFC 3339).
    Removed(String),
}

/// The entries of a topic as JSON texts, which are not parsed yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicObject<'a> {
    /// The entry with the topic's settings; `None` if all of them are defaults.
    pub topic: Option<Cow<'a, str>>,
    /// The entries of the subscriptions, by name.
    pub subscriptions: BTreeMap<String, Cow<'a, str>>,
}

/// The reason why an object is unusable as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ObjectError {
    /// The object is larger than [`OBJECT_MAX_BYTES`].
    #[error("the object has {0} bytes; the limit for a topic is {OBJECT_MAX_BYTES} bytes")]
    TooLarge(usize),
    /// The object is not UTF-8.
    #[error("the object is not UTF-8")]
    NotText,
    /// The object is not JSON, or does not have the fields of a topic's object.
    #[error("not a valid object of a topic: {0}")]
    Malformed(String),
    /// A newer version of lastmile wrote the object.
    #[error(
        "the object has version {0}, but this program supports only version {VERSION}: use a \
         newer program"
    )]
    UnknownVersion(u64),
    /// The filters have more than [`CONDITIONS_MAX`] conditions and values.
    #[error(
        "the filters of the topic have more than {CONDITIONS_MAX} conditions and values in total"
    )]
    TooManyConditions,
    /// The topic needs more memory than is available at the moment.
    #[error("there is not enough memory for the topic, because other topics are in use")]
    NoMemory,
    /// The settings of the topic have an error.
    #[error("the settings of the topic cannot be used: {0}")]
    Settings(String),
}

/// The members of the object's JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    v: u64,
    removed: Option<String>,
    #[serde(borrow)]
    topic: Option<&'a RawValue>,
    #[serde(borrow, default)]
    subscriptions: Entries<'a>,
}

/// Deserializes only the version of an object, and ignores all other fields.
#[derive(Deserialize)]
struct Version {
    v: u64,
}

#[derive(Default)]
struct Entries<'a>(BTreeMap<String, Cow<'a, str>>);

impl<'a> Content<'a> {
    /// Parses the text of an object. The entries of a topic are not parsed yet.
    ///
    /// # Errors
    /// [`ObjectError`] if the text is not the object of a topic.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ObjectError> {
        if bytes.len() > OBJECT_MAX_BYTES {
            return Err(ObjectError::TooLarge(bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| ObjectError::NotText)?;
        // Some editors write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Serde would accept a list of the same values as a struct.
        if !text.trim_start().starts_with('{') {
            return Err(ObjectError::Malformed("expected a JSON object".to_owned()));
        }
        let fields =
            serde_json::from_str::<Fields<'_>>(text).map_err(
                |error| match serde_json::from_str::<Version>(text) {
                    Ok(Version { v }) if v != VERSION => ObjectError::UnknownVersion(v),
                    Ok(_) | Err(_) => ObjectError::Malformed(error.to_string()),
                },
            )?;
        let malformed = |why: &str| Err(ObjectError::Malformed(why.to_owned()));
        match fields {
            Fields { v, .. } if v != VERSION => Err(ObjectError::UnknownVersion(v)),
            Fields { removed: Some(at), topic: None, subscriptions, .. }
                if subscriptions.0.is_empty() =>
            {
                Ok(Self::Removed(at))
            }
            Fields { removed: Some(_), .. } => {
                malformed("a removed topic cannot have settings or subscriptions")
            }
            Fields { topic, subscriptions: Entries(subscriptions), removed: None, .. } => {
                let topic = topic.map(|text| Cow::Borrowed(text.get()));
                Ok(Self::Topic(TopicObject { topic, subscriptions }))
            }
        }
    }
}

impl TopicObject<'_> {
    /// Returns the object with copies of its borrowed texts.
    #[must_use]
    pub fn into_owned(self) -> TopicObject<'static> {
        let owned = |entry: Cow<'_, str>| Cow::Owned(entry.into_owned());
        let subscriptions = self.subscriptions.into_iter();
        TopicObject {
            topic: self.topic.map(owned),
            subscriptions: subscriptions.map(|(name, entry)| (name, owned(entry))).collect(),
        }
    }

    /// Returns the object as JSON. It is sorted, with one line per subscription. Entries are
    /// already JSON.
    ///
    /// # Errors
    /// [`ObjectError`] if the result is larger than readers accept.
    pub fn to_text(&self) -> Result<String, ObjectError> {
        let mut text = format!("{{\"v\":{VERSION}");
        if let Some(topic) = &self.topic {
            text.push_str(",\"topic\":");
            text.push_str(topic);
        }
        text.push_str(",\"subscriptions\":{");
        for (index, (name, entry)) in self.subscriptions.iter().enumerate() {
            text.push_str(if index == 0 { "\n" } else { ",\n" });
            // Names are escaped, because another program may have written a name with special
            // characters.
            text.push_str(&serde_json::Value::from(name.as_str()).to_string());
            text.push(':');
            text.push_str(entry);
        }
        text.push_str("\n}}\n");
        let count = self.subscriptions.len();
        if count > SUBSCRIPTIONS_MAX {
            return Err(ObjectError::Malformed(too_many(count)));
        }
        if text.len() > OBJECT_MAX_BYTES {
            return Err(ObjectError::TooLarge(text.len()));
        }
        Ok(text)
    }
}

/// Returns the object of a topic that was removed at this time (RFC 3339).
#[must_use]
pub fn tombstone(at: &str) -> String {
    format!("{{\"v\":{VERSION},\"removed\":{}}}\n", serde_json::Value::from(at))
}

fn too_many(count: usize) -> String {
    format!("the topic has {count} subscriptions; the limit is {SUBSCRIPTIONS_MAX}")
}

/// Checks the size of an entry.
///
/// # Errors
/// A message with the size and the maximum, if the entry is too large.
pub(super) fn check_length(entry: &str) -> Result<(), String> {
    let bytes = entry.len();
    if bytes > ENTRY_MAX_BYTES {
        return Err(format!(
            "the entry has {bytes} bytes of JSON; the limit is {ENTRY_MAX_BYTES} bytes"
        ));
    }
    Ok(())
}

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

/// Deserializes entries as texts, and refuses a duplicate name. JSON parsers would silently keep
/// the last one.
struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("subscriptions by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((name, entry)) = map.next_entry::<String, &RawValue>()? {
            if entries.contains_key(&name) {
                let message = format!("the subscription {name:?} occurs twice");
                return Err(A::Error::custom(message));
            }
            entries.insert(name, Cow::Borrowed(entry.get()));
            if entries.len() > SUBSCRIPTIONS_MAX {
                return Err(A::Error::custom(too_many(entries.len())));
            }
        }
        Ok(Entries(entries))
    }
}
