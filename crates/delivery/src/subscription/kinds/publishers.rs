//! Reads the field `from`: publishers whose service cannot set the `topic` attribute.
//!
//! This module is separate because each type of publisher has a field of its own. It does not
//! detect that two topics claim the same publisher; the reader of all documents does.

use serde_json::{Value as Json, json};

use crate::document::findings::{Message, quoted};
use crate::document::kind::Kind;
use crate::document::reader::{Cursor, Fields, read_each};
use crate::event::Input;
use crate::event::envelope::{Publisher, input_of};
use crate::subscription::kinds::address::{BUCKET_RULE, is_bucket};

/// Maximum number of publishers in the field `from` of one topic.
const PUBLISHERS_MAX: usize = 100;
/// Maximum length in bytes of an SNS topic's name. The suffix `.fifo` does not count.
/// <https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html>
const SNS_NAME_MAX_BYTES: usize = 256;
/// Number of digits of an AWS account id.
const ACCOUNT_DIGITS: usize = 12;
/// Maximum length of the name of an EventBridge source.
/// <https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_CreateEventBus.html>
const SOURCE_MAX_BYTES: usize = 256;

/// Example of an SNS topic's ARN, for error messages.
const ARN_RULE: &str = "such as arn:aws:sns:eu-central-1:123456789012:orders";

/// The field type of the field `from`.
pub struct Publishers;

impl Kind for Publishers {
    type Value = Vec<Publisher>;

    const NULL_IS_ABSENT: bool = true;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        let elements = at.list()?;
        if elements.len() > PUBLISHERS_MAX {
            at.error(format!(
                "a topic has at most {PUBLISHERS_MAX} publishers, found {}",
                elements.len()
            ));
        }
        read_each(&elements, |element| element.mapping(publisher).flatten())
    }

    fn write(&self, value: &Self::Value) -> Json {
        let written = |publisher: &Publisher| match publisher {
            Publisher::SnsTopic(arn) => json!({ "snsTopic": arn }),
            Publisher::EventSource(source) => json!({ "eventSource": source }),
            Publisher::Bucket(name) => json!({ "bucket": name }),
        };
        value.iter().map(written).collect()
    }

    fn schema(&self) -> Json {
        json!({
            "type": ["array", "null"],
            "maxItems": PUBLISHERS_MAX,
            "items": { "$ref": "#/$defs/publisher" },
        })
    }
}

/// Reads a publisher. Exactly one of three fields must identify it.
fn publisher(fields: &Fields<'_>) -> Option<Publisher> {
    match ["snsTopic", "eventSource", "bucket"].map(|name| fields.get(name)) {
        [Some(arn), None, None] => Some(Publisher::SnsTopic(sns_topic(&arn)?)),
        [None, Some(source), None] => Some(Publisher::EventSource(event_source(&source)?)),
        [None, None, Some(name)] => Some(Publisher::Bucket(bucket(&name)?)),
        [None, None, None] => fields.parent().refuse(
            Message::new("snsTopic, eventSource or bucket is missing").help("bucket: uploads"),
        ),
        [_, _, _] => {
            let message = Message::new("set only one of snsTopic, eventSource and bucket");
            fields.parent().refuse(message.help("use a separate list element for each publisher"))
        }
    }
}

/// Returns the publishers of a field `from`, with the positions of their names.
pub fn located<'a, 'p>(
    from: Option<&Cursor<'a>>,
    publishers: &'p [Publisher],
) -> Vec<(&'p Publisher, Cursor<'a>)> {
    let elements = from.and_then(Cursor::list).unwrap_or_default();
    let named = elements.iter().filter_map(|element| Some(element.entries()?.pop()?.value));
    publishers.iter().zip(named).collect()
}

/// Adds warnings about publishers whose records do not have the input format of the topic.
pub fn report_unreadable(publishers: &[(&Publisher, Cursor<'_>)], input: Input) {
    // With other input formats, every publisher can send valid records.
    if !matches!(input, Input::Sns | Input::SnsWhole | Input::EventBridge | Input::S3) {
        return;
    }
    for (publisher, at) in publishers {
        let (word, needed) = (input.as_str(), input_of(publisher).as_str());
        let reads = if input == Input::SnsWhole { Input::Sns } else { input };
        if needed != reads.as_str() {
            let warning = format!(
                "the input of this topic is {word}, but records of this publisher require {needed}"
            );
            at.warn(Message::new(warning).help("use input: auto, which reads both"));
        }
    }
}

fn sns_topic(cursor: &Cursor<'_>) -> Option<String> {
    let text = cursor.text()?;
    if !is_sns_topic(text) {
        return cursor.refuse(
            Message::new(format!("{} is not the ARN of an SNS topic", quoted(text))).help(ARN_RULE),
        );
    }
    Some(text.to_owned())
}

/// Returns true if the text is the ARN of an SNS topic: `arn:partition:sns:region:account:name`.
fn is_sns_topic(arn: &str) -> bool {
    let ["arn", partition, "sns", region, account, name] = arn.split(':').collect::<Vec<_>>()[..]
    else {
        return false;
    };
    let is_word = |word: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !word.is_empty() && word.chars().all(allowed)
    };
    let is_account =
        account.len() == ACCOUNT_DIGITS && account.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.strip_suffix(".fifo").unwrap_or(name);
    let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_name = (1..=SNS_NAME_MAX_BYTES).contains(&name.len()) && name.chars().all(in_name);
    partition.starts_with("aws") && is_word(partition) && is_word(region) && is_account && is_name
}

fn event_source(cursor: &Cursor<'_>) -> Option<String> {
    let text = cursor.text()?;
    if !(1..=SOURCE_MAX_BYTES).contains(&text.len())
        || text.trim() != text
        || text.chars().any(char::is_control)
    {
        let rule = format!(
            "expected 1 to {SOURCE_MAX_BYTES} bytes, without control characters and without spaces \
             at either end"
        );
        return cursor.refuse(Message::new("not a valid event source").help(rule));
    }
    Some(text.to_owned())
}

fn bucket(cursor: &Cursor<'_>) -> Option<String> {
    let text = cursor.text()?;
    if !is_bucket(text) {
        return cursor.refuse(BUCKET_RULE);
    }
    Some(text.to_owned())
}
