//! The message about one cause: a JSON object, and a subject for mail. Pure.

use std::cmp::Reverse;

use delivery::subscription::sink::Container;
use delivery::time::moment::rfc3339;
use serde::Serialize;

use crate::cause;
use crate::group::Group;

/// Maximum number of subscriptions that a message names.
const NAMED_MAX: usize = 10;
/// Maximum length of a subject, in ASCII characters.
/// <https://docs.aws.amazon.com/sns/latest/api/API_Publish.html>
const SUBJECT_MAX: usize = 99;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) subject: String,
    pub(crate) text: String,
}

/// The JSON object of a message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    title: &'a str,
    cause: &'a str,
    count: usize,
    subscriptions: Vec<Named<'a>>,
    /// Number of subscriptions beyond [`NAMED_MAX`].
    other_subscriptions: usize,
    first: Option<String>,
    command: String,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    count: u64,
}

impl Message {
    /// Creates the message about one group of dead letters.
    pub(crate) fn new(group: &Group, container: &Container) -> Self {
        let Group { cause, title, subscriptions, first_ms, blobs: _ } = group;
        let named = subscriptions.iter().map(|(name, count)| Named { name, count: *count });
        let mut named: Vec<Named<'_>> = named.collect();
        // Stable, so that subscriptions with equal counts stay in alphabetical order.
        named.sort_by_key(|named| Reverse(named.count));
        named.truncate(NAMED_MAX);
        let body = Body {
            title,
            cause,
            count: group.count(),
            other_subscriptions: subscriptions.len() - named.len(),
            subscriptions: named,
            first: first_ms.map(rfc3339),
            command: cause::command(container, cause, *first_ms),
        };
        let text = serde_json::to_string(&body).expect("texts and numbers are JSON");
        Self { subject: subject(group.count(), title), text }
    }
}

/// Writes the subject. Replaces all characters except printable ASCII with `?`, because SNS refuses
/// them.
fn subject(count: usize, title: &str) -> String {
    let noun = if count == 1 { "dead letter" } else { "dead letters" };
    let text = format!("{count} {noun}: {title}");
    let printable = |letter: char| if matches!(letter, ' '..='~') { letter } else { '?' };
    text.chars().map(printable).take(SUBJECT_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn group() -> Group {
        Group {
            cause: "6c1f0f7c9e0b".to_owned(),
            title: "422 Größe is required".to_owned(),
            subscriptions: [("n/t/a".to_owned(), 1), ("n/t/b".to_owned(), 12)].into(),
            first_ms: Some(1_795_158_180_000),
            blobs: (0..13).collect(),
        }
    }

    #[test]
    fn a_message_names_the_cause_its_count_and_the_command_that_opens_it() {
        let container = Container { bucket: "letters".to_owned(), prefix: String::new() };
        let Message { subject, text } = Message::new(&group(), &container);
        assert_eq!(subject, "13 dead letters: 422 Gr??e is required");
        let first = "2026-11-20T07:03:00.0000000Z";
        let expected = json!({
            "title": "422 Größe is required",
            "cause": "6c1f0f7c9e0b",
            "count": 13,
            "subscriptions": [{"name": "n/t/b", "count": 12}, {"name": "n/t/a", "count": 1}],
            "otherSubscriptions": 0,
            "first": first,
            "command": format!("lastmile deadletters list --cause 6c1f0f7c9e0b --container s3://letters --since {first}"),
        });
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    }

    #[test]
    fn a_message_stays_small_however_many_subscriptions_there_are() {
        let subscriptions = (0..5_000).map(|number| (format!("n/t/s{number:04}"), 1)).collect();
        let group = Group { subscriptions, title: "x".repeat(500), ..group() };
        let container = Container { bucket: "letters".to_owned(), prefix: String::new() };
        let Message { subject, text } = Message::new(&group, &container);
        let body: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(body["otherSubscriptions"], 4_990);
        assert!(subject.len() < 100 && text.len() < 2_000, "{} {}", subject.len(), text.len());
    }
}
