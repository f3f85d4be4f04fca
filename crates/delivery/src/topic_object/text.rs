//! The text of a topic's object, and its entries.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use thiserror::Error;

use super::limits::{CONDITIONS_MAX, ENTRY_MAX_BYTES, OBJECT_MAX_BYTES, SUBSCRIPTIONS_MAX};

/// The tag of the object of a removed topic, as `name=value`: a lifecycle rule of template.yaml lets it expire.
pub const TOMBSTONE_TAG: &str = "removed=true";
/// The version of the form.
const VERSION: u64 = 1;

/// The content of an object: a topic, or the mark of one that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<'a> {
    /// The topic.
    Topic(TopicObject<'a>),
    /// It was removed, at this time.
    Removed(String),
}

/// The entries of a topic as JSON texts, which are not read yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicObject<'a> {
    /// The topic's own settings, unless all of them are the defaults.
    pub topic: Option<Cow<'a, str>>,
    /// Its subscriptions, by name.
    pub subscriptions: BTreeMap<String, Cow<'a, str>>,
}

/// The reasons why an object cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ObjectError {
    /// Nobody writes one this large by intention.
    #[error("it has {0} bytes; a topic has at most {OBJECT_MAX_BYTES}")]
    TooLarge(usize),
    /// It is not UTF-8.
    #[error("it is not UTF-8")]
    NotText,
    /// It is no JSON, or not of this form.
    #[error("it is not the object of a topic: {0}")]
    Malformed(String),
    /// A newer lastmile wrote it.
    #[error("it has version {0}, and this lastmile knows version {VERSION}")]
    UnknownVersion(u64),
    /// Its filters would take too much memory.
    #[error("its filters have more than {CONDITIONS_MAX} conditions and values together")]
    TooManyConditions,
    /// It takes more memory than there is for it now.
    #[error("other topics in use take the memory that it needs")]
    NoMemory,
    /// The topic's own settings have an error.
    #[error("the settings of the topic cannot be used: {0}")]
    Settings(String),
}

/// The outermost fields.
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

/// The version of any object.
#[derive(Deserialize)]
struct Version {
    v: u64,
}

#[derive(Default)]
struct Entries<'a>(BTreeMap<String, Cow<'a, str>>);

impl<'a> Content<'a> {
    /// Reads the text of an object.
    ///
    /// # Errors
    /// [`ObjectError`] if it is no object of a topic. The entries of a topic are not read yet.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ObjectError> {
        if bytes.len() > OBJECT_MAX_BYTES {
            return Err(ObjectError::TooLarge(bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| ObjectError::NotText)?;
        // A byte order mark, which some editors write.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // Serde would take a list of the same values for it.
        if !text.trim_start().starts_with('{') {
            return Err(ObjectError::Malformed("a JSON object is expected".to_owned()));
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
                malformed("a topic that was removed has no settings and no subscriptions")
            }
            Fields { topic, subscriptions: Entries(subscriptions), removed: None, .. } => {
                let topic = topic.map(|text| Cow::Borrowed(text.get()));
                Ok(Self::Topic(TopicObject { topic, subscriptions }))
            }
        }
    }
}

impl TopicObject<'_> {
    /// Copies the borrowed texts.
    #[must_use]
    pub fn into_owned(self) -> TopicObject<'static> {
        let owned = |entry: Cow<'_, str>| Cow::Owned(entry.into_owned());
        let subscriptions = self.subscriptions.into_iter();
        TopicObject {
            topic: self.topic.map(owned),
            subscriptions: subscriptions.map(|(name, entry)| (name, owned(entry))).collect(),
        }
    }

    /// The text of the object: sorted, with a line for each subscription. Entries are JSON.
    ///
    /// # Errors
    /// [`ObjectError`] if it is larger than any that is read.
    pub fn to_text(&self) -> Result<String, ObjectError> {
        let mut text = format!("{{\"v\":{VERSION}");
        if let Some(topic) = &self.topic {
            text.push_str(",\"topic\":");
            text.push_str(topic);
        }
        text.push_str(",\"subscriptions\":{");
        for (index, (name, entry)) in self.subscriptions.iter().enumerate() {
            text.push_str(if index == 0 { "\n" } else { ",\n" });
            // A name has no character that JSON escapes, but this text may be of anybody.
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

/// The text of the object of a topic that was removed at this time.
#[must_use]
pub fn tombstone(at: &str) -> String {
    format!("{{\"v\":{VERSION},\"removed\":{}}}\n", serde_json::Value::from(at))
}

fn too_many(count: usize) -> String {
    format!("it has {count} subscriptions; a topic has at most {SUBSCRIPTIONS_MAX}")
}

/// Checks the length of an entry.
///
/// # Errors
/// What it has, and what is allowed.
pub(super) fn check_length(entry: &str) -> Result<(), String> {
    let bytes = entry.len();
    if bytes > ENTRY_MAX_BYTES {
        return Err(format!("it has {bytes} bytes of JSON; at most {ENTRY_MAX_BYTES} are read"));
    }
    Ok(())
}

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

/// Reads the entries as texts, and refuses a name that is there twice: JSON would keep the last one silently.
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
                let message = format!("the subscription {name:?} is there twice");
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
