//! Names of topics and subscriptions, and their encoding in keys of dead letters.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// The full name of a topic, written `namespace/topic`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TopicName {
    /// The namespace: the first part of the full name.
    pub namespace: String,
    /// The name within the namespace: the second part of the full name.
    pub topic: String,
}

/// The full name of a subscription, written `namespace/topic/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriptionName {
    /// The topic whose events the subscription receives.
    pub topic: TopicName,
    /// The name within the topic: the third part of the full name.
    pub name: String,
}

/// A range of subscription names within one topic, in byte order. The default contains all names.
/// The field names are part of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NameRange {
    /// The first name of the range. An empty text comes before every name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The first name after the range; `None` if the range has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// The range that contains all names.
pub static ALL_NAMES: NameRange = NameRange { from: String::new(), before: None };

impl NameRange {
    /// Returns true if the range contains this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        *self.from <= *name && !self.ends_before(name)
    }

    /// Returns true if this name comes after the end of the range.
    #[must_use]
    pub fn ends_before(&self, name: &str) -> bool {
        self.before.as_deref().is_some_and(|before| before <= name)
    }

    /// Splits this range before each of these names, which must be in byte order.
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

/// Maximum length of a percent-encoded name. With this limit, a key of three names, an hour and a
/// GUID is shorter than the 1,024 bytes that S3 allows. Each encoded name is also a valid file
/// name.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>
pub const NAME_MAX_BYTES: usize = 255;

/// The rule for names, for error messages.
pub const NAME_RULE: &str =
    "a name has 1 to 255 bytes when percent-encoded, without / and control characters";

/// Returns the text that directly follows a name in byte order. It is not a valid name, because
/// names have no control characters.
#[must_use]
pub fn after(name: &str) -> String {
    format!("{name}\0")
}

/// Returns true if a text is valid as the name of a namespace, a topic or a subscription.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let fits = !text.is_empty() && segment(text).len() <= NAME_MAX_BYTES;
    fits && !text.chars().any(|c| c == '/' || c.is_control())
}

/// First character of reserved names, which documents and publishers cannot use. If a dead letter
/// belongs to no subscription, its key contains a reserved name instead, such as `_unknown`. The
/// bucket of dead letters also contains reserved folders, such as `_replays`. Without this rule, a
/// publisher could choose a topic whose dead letters are stored in such a folder.
pub const RESERVED: char = '_';

impl TopicName {
    /// Returns the placeholder topic of records that name no topic.
    #[must_use]
    pub fn nameless() -> Self {
        Self { namespace: NAMELESS.to_owned(), topic: NAMELESS.to_owned() }
    }

    /// Returns the topic for a text that a publisher stated. If a part of the text is invalid or
    /// reserved, placeholders replace both the namespace and the topic. If the text is a valid name
    /// without a namespace, a placeholder replaces only the namespace.
    #[must_use]
    pub fn published(named: &str) -> Self {
        let may_be = |name: &str| is_name(name) && !name.starts_with(RESERVED);
        match named.split_once('/') {
            Some((namespace, topic)) if may_be(namespace) && may_be(topic) => {
                Self { namespace: namespace.to_owned(), topic: topic.to_owned() }
            }
            // The text is probably a topic whose namespace was forgotten.
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
            _ => Err(format!("\"{text}\" is not a topic: expected namespace/topic; {NAME_RULE}")),
        }
    }
}

impl FromStr for SubscriptionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!("\"{text}\" is not a subscription: expected namespace/topic/name; {NAME_RULE}")
        };
        let (topic, name) = text.rsplit_once('/').ok_or_else(expected)?;
        if !is_name(name) {
            return Err(expected());
        }
        Ok(Self { topic: topic.parse().map_err(|_| expected())?, name: name.to_owned() })
    }
}

/// The placeholder for an empty or unknown name in a key, where no segment may be empty.
pub const NAMELESS: &str = "_";

/// Characters that are percent-encoded in a segment of a key: all except `[A-Za-z0-9._-]`.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// Percent-encodes a name as one segment of a key. The names `.` and `..` are encoded too, because
/// as path segments they would change the path.
#[must_use]
pub fn segment(text: &str) -> Cow<'_, str> {
    match text {
        "" => NAMELESS.into(),
        "." => "%2E".into(),
        ".." => "%2E%2E".into(),
        text => utf8_percent_encode(text, SEGMENT).into(),
    }
}

/// Decodes a segment of a key that [`segment`] encoded.
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
