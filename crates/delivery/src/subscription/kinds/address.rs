//! Parses addresses of endpoints, containers and queues, as documents state them.
//!
//! This module is separate because destinations, sinks, token servers and `Destinations` documents
//! state addresses. It does not check that an address exists.

use serde_json::{Value as Json, json};
use url::Url;

use crate::address::mistake;
use crate::document::findings::Message;
use crate::document::kind::Kind;
use crate::document::reader::Cursor;
use crate::subscription::display;
use crate::subscription::sink::{Container, Sink, SinkQueue, check_prefix};
use crate::subscription::topic_address::topic_of;
use crate::template::has_tags;

/// Maximum length of a key prefix within a container. The rest of a key needs up to 830 of the
/// 1,024 bytes: three names, the hour and the id.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>
const PREFIX_MAX_BYTES: usize = 180;
/// Allowed lengths of a bucket's name.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>
const BUCKET_BYTES: std::ops::RangeInclusive<usize> = 3..=63;
/// The rule for names of buckets, for error messages.
pub const BUCKET_RULE: &str = "a bucket name is 3 to 63 letters, digits, dots and hyphens";

/// All forms of addresses, for error messages.
pub const ADDRESSES: &str = "https://…, http://…, s3://bucket/prefix or sqs://host/account/name";
/// JSON Schema pattern of the addresses in a `Destinations` document.
pub const ADDRESS_PATTERN: &str = "^([hH][tT][tT][pP][sS]?|[sS]3|[sS][qQ][sS])://.";
/// The form of an SQS queue's address, for error messages.
const QUEUE: &str = "sqs://sqs.REGION.amazonaws.com/ACCOUNT/NAME";

/// The resource that an address identifies.
#[derive(Clone)]
pub enum Target {
    /// An HTTP endpoint, for events or dead letters.
    Endpoint(Url),
    /// A container in which dead letters are stored.
    Container(Container),
    /// An SQS queue to which dead letters are sent.
    Queue(SinkQueue),
}

impl Target {
    /// Returns the URL if events can be sent to the resource. Reports an error for a container or a
    /// queue, because they accept only dead letters.
    pub fn for_events(self, at: &Cursor<'_>) -> Option<Url> {
        let resource = match self {
            Self::Endpoint(url) => return Some(url),
            Self::Container(_) => "a container",
            Self::Queue(_) => "a queue",
        };
        let message = Message::new(format!("{resource} can receive only dead letters, not events"));
        at.refuse(message.help("https://… or http://…"))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Endpoint(url) => f.write_str(url.as_str()),
            Self::Container(container) => write!(f, "s3://{container}"),
            Self::Queue(queue) => write!(f, "sqs://{queue}"),
        }
    }
}

impl From<Target> for Sink {
    fn from(target: Target) -> Self {
        match target {
            Target::Endpoint(url) => Self::Address(url),
            Target::Container(container) => Self::Container(container),
            Target::Queue(queue) => Self::Queue(queue),
        }
    }
}

/// The result of parsing an address.
pub enum Resolved {
    /// The text is a valid address of this resource.
    Target(Target),
    /// The text is an invalid address. The problem has already been reported.
    Reported,
    /// The text is neither an address nor a key of a `Destinations` document.
    Unknown,
}

impl Resolved {
    /// Returns the resource, or reports why there is none. `unknown` is the message for a text that
    /// is not an address. If the text looks like a mistyped URL, the message describes the mistake
    /// instead.
    pub fn or_refuse(self, at: &Cursor<'_>, unknown: Message) -> Option<Target> {
        match self {
            Self::Target(target) => Some(target),
            Self::Reported => None,
            Self::Unknown => at.refuse(match at.peek_text().and_then(mistake) {
                Some(mistake) => unknown.with_text(mistake),
                None => unknown,
            }),
        }
    }
}

/// The field type of the URL of an HTTP endpoint.
pub struct Endpoint {
    /// The error message for a text that is not an address.
    unknown: &'static str,
    /// The valid forms of the URL, for error messages.
    rule: &'static str,
    /// True if a topic is valid too, written `topic:namespace/topic`.
    or_topic: bool,
}

impl Endpoint {
    /// The field type for destinations and recipients of replies, which may also be topics.
    pub const OF_EVENTS: Self = Self {
        unknown: "not an address, and not a key of a Destinations document",
        rule: "http://… or https://…",
        or_topic: true,
    };
    /// The field type for all other endpoints, such as token servers.
    pub const OTHER: Self =
        Self { unknown: "not an address", rule: "https://… or http://…", or_topic: false };
}

impl Endpoint {
    /// Parses a text as a URL, and reports errors at this position of the document.
    pub fn read_text(&self, text: &str, at: &Cursor<'_>) -> Option<Url> {
        let topic = || Url::parse(text).ok().filter(|url| topic_of(url).is_some());
        if let Some(topic) = self.or_topic.then(topic).flatten() {
            return Some(topic);
        }
        let unknown = Message::new(self.unknown).help(self.rule);
        address(text, at).or_refuse(at, unknown)?.for_events(at)
    }
}

impl Kind for Endpoint {
    type Value = Url;

    fn read(&self, at: &Cursor<'_>) -> Option<Url> {
        self.read_text(at.text()?, at)
    }

    fn write(&self, value: &Url) -> Json {
        json!(value.as_str())
    }

    fn schema(&self) -> Json {
        match self.or_topic {
            true => json!({ "type": "string", "minLength": 1 }),
            false => json!({ "type": "string", "pattern": "^[hH][tT][tT][pP][sS]?://[^/?#]" }),
        }
    }

    fn shown(&self, value: &Url) -> Json {
        json!(display(value))
    }
}

/// Parses an address, and reports an invalid one. No message quotes a URL, because it may contain
/// credentials.
pub fn address(text: &str, at: &Cursor<'_>) -> Resolved {
    match parsed(text) {
        None => Resolved::Unknown,
        Some(Ok(target)) => {
            if let Target::Endpoint(url) = &target
                && (!url.username().is_empty() || url.password().is_some())
            {
                at.warn(
                    "the URL contains credentials in clear text, which everyone with access to the \
                     file can read",
                );
            }
            Resolved::Target(target)
        }
        Some(Err(message)) => {
            at.error(message);
            Resolved::Reported
        }
    }
}

/// Parses an address, and returns a message about the problem if it is invalid. Returns `None` if
/// the text has no supported scheme.
pub fn parsed(text: &str) -> Option<Result<Target, Message>> {
    let (scheme, rest) = text.split_once("://")?;
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => Some(endpoint(text).map(Target::Endpoint)),
        "s3" => Some(container(rest).map(Target::Container)),
        "sqs" => {
            let queue = rest.parse().map(Target::Queue);
            Some(queue.map_err(|problem: String| Message::new(problem).help(QUEUE)))
        }
        _ => None,
    }
}

fn endpoint(text: &str) -> Result<Url, Message> {
    if has_tags(text) {
        return Err("expressions are supported only in the path of destination.url".into());
    }
    let url =
        Url::parse(text).map_err(|error| Message::new(format!("not a valid URL: {error}")))?;
    match url.host_str() {
        None | Some("") => Err("the URL has no host".into()),
        // A host with the name of a scheme results from a doubled scheme, as in
        // https://https://host.
        Some("http" | "https") => Err("the URL has two schemes".into()),
        Some(_) => Ok(url),
    }
}

/// Returns true if the text is a valid name of a bucket.
pub fn is_bucket(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    BUCKET_BYTES.contains(&name.len()) && name.chars().all(allowed)
}

fn container(text: &str) -> Result<Container, Message> {
    let container: Container =
        text.parse().map_err(|_| Message::new("the bucket name is missing after s3://"))?;
    if !is_bucket(&container.bucket) {
        return Err(BUCKET_RULE.into());
    }
    let Container { prefix, .. } = &container;
    if prefix.len() > PREFIX_MAX_BYTES || prefix.chars().any(char::is_control) {
        return Err(format!(
            "a prefix must have at most {PREFIX_MAX_BYTES} bytes, and no control characters"
        )
        .into());
    }
    if !prefix.is_empty() && prefix.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err("a segment of a prefix must not be empty, . or ..".into());
    }
    check_prefix(prefix)?;
    Ok(container)
}
