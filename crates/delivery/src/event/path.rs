//! JSON paths to single values of an event.
//!
//! Paths are the singular queries of RFC 9535. They consist of member names and indexes, and cannot
//! contain wildcards, slices or filters. A path therefore yields at most one value, as headers and
//! mapped fields require. Event Grid's `data.order.id` is the same as `$.data.order.id`. Values
//! keep the publisher's spelling: a number with 23 digits keeps all of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::value::RawValue;

use crate::event::{Members, json_text};

/// A path to one value of an event. Its first step is a top-level member of the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    first: String,
    rest: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Index(usize),
}

/// The syntax of paths, for error messages.
pub const PATH_RULE: &str =
    "a path selects one value, such as $.data.order.id, $['data']['a b'] or $.data.items[0]";

impl Path {
    /// Returns the raw value at the path, in the publisher's spelling; `None` if the event has no
    /// such value.
    #[must_use]
    pub fn find<'a>(&self, members: &Members<'a>) -> Option<&'a str> {
        self.rest.iter().try_fold(members.get(&self.first)?, |value, step| step.below(value))
    }

    /// Returns the value at the path as text if it is a string, a number or a boolean; otherwise
    /// `None`.
    #[must_use]
    pub fn scalar(&self, members: &Members<'_>) -> Option<String> {
        scalar(self.find(members)?).map(Cow::into_owned)
    }
}

/// Returns a raw JSON string, number or boolean as text; `None` for other values.
#[must_use]
pub fn scalar(raw: &str) -> Option<Cow<'_, str>> {
    match raw.as_bytes().first()? {
        b'"' => json_text(raw),
        b'{' | b'[' | b'n' => None,
        _ => Some(Cow::Borrowed(raw)),
    }
}

impl Step {
    fn below<'a>(&self, value: &'a str) -> Option<&'a str> {
        let found = match self {
            Self::Member(name) => {
                serde_json::from_str::<BTreeMap<String, &RawValue>>(value).ok()?.remove(name)?
            }
            Self::Index(index) => {
                *serde_json::from_str::<Vec<&RawValue>>(value).ok()?.get(*index)?
            }
        };
        Some(found.get())
    }
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("\"{text}\" is not a valid path: {PATH_RULE}");
        let mut steps = match text.strip_prefix('$') {
            Some(rest) => steps(rest),
            None => steps(&format!(".{text}")),
        }
        .ok_or_else(invalid)?;
        match (!steps.is_empty()).then(|| steps.remove(0)) {
            Some(Step::Member(first)) => Ok(Self { first, rest: steps }),
            Some(Step::Index(_)) | None => Err(invalid()),
        }
    }
}

fn steps(mut text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !text.is_empty() {
        let (step, rest) = match text.strip_prefix('.') {
            Some(named) => dotted(named)?,
            None => bracketed(text.strip_prefix('[')?)?,
        };
        steps.push(step);
        text = rest;
    }
    Some(steps)
}

fn dotted(text: &str) -> Option<(Step, &str)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let plain = !name.is_empty() && !name.contains([']', '*', '\'', '"', '?', '@', '$', ' ']);
    plain.then(|| (Step::Member(name.to_owned()), rest))
}

fn bracketed(text: &str) -> Option<(Step, &str)> {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '\'' | '"')) else {
        let (index, rest) = text.split_once(']')?;
        let plain = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
        return Some((Step::Index(index.parse().ok().filter(|_| plain)?), rest));
    };
    let mut name = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                name.push(
                    characters
                        .next()
                        .map(|(_, escaped)| escaped)
                        .filter(|c| matches!(c, '\\' | '\'' | '"'))?,
                );
            }
            _ if character == quote => {
                return Some((Step::Member(name), text.get(at + 1..)?.strip_prefix(']')?));
            }
            _ => name.push(character),
        }
    }
    None
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |name: &str| name.replace('\\', "\\\\").replace('\'', "\\'");
        write!(f, "$['{}']", quoted(&self.first))?;
        self.rest.iter().try_for_each(|step| match step {
            Step::Member(name) => write!(f, "['{}']", quoted(name)),
            Step::Index(index) => write!(f, "[{index}]"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_one_value_in_the_publishers_spelling() {
        let event = r#"{"id":"7","data":{"n":12345678901234567890123,"a b":{"it's":true},"items":[{"x":1.50},null],"t":"gr\u00fc\u00dfe"}}"#;
        let members = Members::parse(event).unwrap();
        for (path, value) in [
            ("id", Some("7")),
            ("$.id", Some("7")),
            ("data.n", Some("12345678901234567890123")),
            ("$['data'][\"a b\"]['it\\'s']", Some("true")),
            ("$.data.items[0].x", Some("1.50")),
            ("$.data.items[1]", None),
            ("$.data.items[2]", None),
            ("$.data.items", None),
            ("$.data.t", Some("grüße")),
            ("$.data.t.more", None),
            ("$.nothing", None),
        ] {
            let path: Path = path.parse().unwrap();
            assert_eq!(path.scalar(&members).as_deref(), value, "{path}");
            assert_eq!(path.to_string().parse(), Ok(path));
        }
    }

    #[test]
    fn what_may_lead_to_several_values_is_no_path() {
        for text in [
            "",
            "$",
            "$.",
            "$..id",
            "$.*",
            "$[*]",
            "$[0]",
            "$.a[1:2]",
            "$.a[?@.b]",
            "$.a[-1]",
            "$.a['b'",
            "a..b",
            "a.",
            "$x",
        ] {
            assert!(text.parse::<Path>().expect_err(text).contains("$.data.order.id"));
        }
    }
}
