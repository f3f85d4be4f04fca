//! The names of topics and subscriptions, and how they are written into keys.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// Where events are published: `namespace/topic`, and so it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TopicName {
    /// The namespace.
    pub namespace: String,
    /// The topic within it.
    pub topic: String,
}

/// A subscription's full name: `namespace/topic/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriptionName {
    /// The topic it subscribes to.
    pub topic: TopicName,
    /// Its name within the topic.
    pub name: String,
}

/// Some of the subscriptions of a topic: the names in byte order from one on, up to another. By default
/// all. Its fields are those of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NameRange {
    /// The first name; no name is empty, so an empty text is before all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The first name that no longer belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// All names.
pub static ALL_NAMES: NameRange = NameRange { from: String::new(), before: None };

impl NameRange {
    /// Whether this name is in it.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        *self.from <= *name && !self.ends_before(name)
    }

    /// Whether this name is after the last one.
    #[must_use]
    pub fn ends_before(&self, name: &str) -> bool {
        self.before.as_deref().is_some_and(|before| before <= name)
    }

    /// The ranges from each of these names to the next, in byte order: together all of this one.
    #[must_use]
    pub fn cut_at(&self, names: &[&str]) -> Vec<Self> {
        let ends = names.iter().map(|name| Some((*name).to_owned())).chain([self.before.clone()]);
        let mut from = self.from.clone();
        let range = |before: Option<String>| {
            let next = before.clone().unwrap_or_default();
            Self { from: std::mem::replace(&mut from, next), before }
        };
        ends.map(range).collect()
    }
}

/// The longest name, percent-encoded as in the keys of dead letters: three of them, an hour and a
/// GUID stay below S3's 1,024 bytes for a key, and each is a file name.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>
pub const NAME_MAX_BYTES: usize = 255;

/// The rule for names, for error messages.
pub const NAME_RULE: &str =
    "a name is 1 to 255 bytes once percent-encoded, without / and control characters";

/// The first text after a name: no name has a control character.
#[must_use]
pub fn after(name: &str) -> String {
    format!("{name}\0")
}

/// Whether a text can be one part of a topic's or subscription's name.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let fits = !text.is_empty() && segment(text).len() <= NAME_MAX_BYTES;
    fits && !text.chars().any(|c| c == '/' || c.is_control())
}

/// Names that begin with it are not those of documents or publishers: `_unknown` and the like take the
/// place of subscriptions in keys of dead letters, and `_replays` and others are folders beside them.
pub const RESERVED: char = '_';

impl TopicName {
    /// The topic of records that name none.
    #[must_use]
    pub fn nameless() -> Self {
        Self { namespace: NAMELESS.to_owned(), topic: NAMELESS.to_owned() }
    }

    /// The topic that a publisher names. Of what is not the name of a topic, as much is kept as can be;
    /// nothing of a name that is reserved.
    #[must_use]
    pub fn published(named: &str) -> Self {
        let may_be = |name: &str| is_name(name) && !name.starts_with(RESERVED);
        match named.split_once('/') {
            Some((namespace, topic)) if may_be(namespace) && may_be(topic) => {
                Self { namespace: namespace.to_owned(), topic: topic.to_owned() }
            }
            // Most likely a topic whose namespace was forgotten.
            None if may_be(named) => Self { topic: named.to_owned(), ..Self::nameless() },
            _ => Self::nameless(),
        }
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.topic)
    }
}

impl fmt::Display for SubscriptionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.name)
    }
}

impl From<TopicName> for String {
    fn from(topic: TopicName) -> Self {
        topic.to_string()
    }
}

impl TryFrom<String> for TopicName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for TopicName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, topic)) if is_name(namespace) && is_name(topic) => {
                Ok(Self { namespace: namespace.to_owned(), topic: topic.to_owned() })
            }
            _ => Err(format!(
                "\"{text}\" is not a topic: namespace/topic is expected, and {NAME_RULE}"
            )),
        }
    }
}

impl FromStr for SubscriptionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "\"{text}\" is not a subscription: namespace/topic/name is expected, and {NAME_RULE}"
            )
        };
        let (topic, name) = text.rsplit_once('/').ok_or_else(expected)?;
        if !is_name(name) {
            return Err(expected());
        }
        Ok(Self { topic: topic.parse().map_err(|_| expected())?, name: name.to_owned() })
    }
}

/// The segment for an unknown name.
pub const NAMELESS: &str = "_";

/// Not encoded in a segment: `[A-Za-z0-9._-]`.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// One segment of a key: percent-encoded outside `[A-Za-z0-9._-]`; `.` and `..` are encoded, since
/// they would change the path.
#[must_use]
pub fn segment(text: &str) -> Cow<'_, str> {
    match text {
        "" => NAMELESS.into(),
        "." => "%2E".into(),
        ".." => "%2E%2E".into(),
        text => utf8_percent_encode(text, SEGMENT).into(),
    }
}

/// The name that a segment of a key stands for: the reverse of [`segment`].
#[must_use]
pub fn name_of_segment(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_read_back_as_its_name() {
        for name in ["orders", "a b/c", "..", "é%"] {
            assert_eq!(name_of_segment(&segment(name)), name);
        }
    }

    #[test]
    fn the_ranges_of_a_range_are_together_all_of_it() {
        let range = |from: &str, before: Option<&str>| NameRange {
            from: from.to_owned(),
            before: before.map(ToOwned::to_owned),
        };
        assert_eq!(ALL_NAMES.cut_at(&[]), [NameRange::default()]);
        let cut = ALL_NAMES.cut_at(&["b", "d"]);
        assert_eq!(cut, [range("", Some("b")), range("b", Some("d")), range("d", None)]);
        let again = range("b", Some("d")).cut_at(&["c"]);
        assert_eq!(again, [range("b", Some("c")), range("c", Some("d"))]);
        assert!(cut[1].ends_before("d") && cut[1].ends_before("e") && !cut[1].ends_before("cz"));
    }

    #[test]
    fn a_publisher_names_no_topic_that_is_reserved() {
        for (named, topic) in [
            ("shop/orders", "shop/orders"),
            ("shop/or_ders_", "shop/or_ders_"),
            ("orders", "_/orders"),
            ("", "_/_"),
            ("a/b/c", "_/_"),
            ("_replays/orders", "_/_"),
            ("shop/_unknown", "_/_"),
            ("_/orders", "_/_"),
            ("_destinations", "_/_"),
            ("_", "_/_"),
        ] {
            assert_eq!(TopicName::published(named).to_string(), topic, "{named}");
        }
    }

    #[test]
    fn a_segment_cannot_change_the_path() {
        for (text, written) in [
            ("orders", "orders"),
            ("A-b_c.9", "A-b_c.9"),
            ("", "_"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("...", "..."),
            ("a/b", "a%2Fb"),
            ("a b%", "a%20b%25"),
            ("ö", "%C3%B6"),
        ] {
            assert_eq!(segment(text), written);
        }
    }

    #[test]
    fn names_are_read_back_and_bad_ones_are_explained() {
        for text in ["shop/orders/billing", "a b/ö/日本"] {
            assert_eq!(
                text.parse::<SubscriptionName>().map(|name| name.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "shop", "shop/orders", "shop//billing", "a/b/c/d", "a/b/", "a/b/\u{7}"] {
            let error = text.parse::<SubscriptionName>().expect_err(text);
            assert!(error.contains("namespace/topic/name"), "{error}");
        }
    }
}
