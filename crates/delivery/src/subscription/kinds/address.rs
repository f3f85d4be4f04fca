//! Addresses of endpoints, containers and queues, as documents write them.
//!
//! Separate because destinations, sinks, token servers and `Destinations` documents have them. It does not check whether
//! anything is at an address.

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

/// The longest prefix within a container. Three names and an hour take up to 830 bytes of a key of
/// 1,024.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>
const PREFIX_MAX_BYTES: usize = 180;
/// Lengths of a bucket's name.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>
const BUCKET_BYTES: std::ops::RangeInclusive<usize> = 3..=63;
/// The rule for names of buckets.
pub const BUCKET_RULE: &str = "a bucket's name is 3 to 63 letters, digits, points and hyphens";

/// All forms of addresses, for messages.
pub const ADDRESSES: &str = "https://…, http://…, s3://bucket/prefix or sqs://host/account/name";
/// The addresses that an entry of a `Destinations` document may have.
pub const ADDRESS_PATTERN: &str = "^([hH][tT][tT][pP][sS]?|[sS]3|[sS][qQ][sS])://.";
/// The form of a queue's address, for messages.
const QUEUE: &str = "sqs://sqs.REGION.amazonaws.com/ACCOUNT/NAME";

/// What an address is.
#[derive(Clone)]
pub enum Target {
    /// An HTTP endpoint.
    Endpoint(Url),
    /// A container for dead letters.
    Container(Container),
    /// A queue for dead letters.
    Queue(SinkQueue),
}

impl Target {
    /// The endpoint that events are sent to; targets for dead letters only are reported.
    pub fn for_events(self, at: &Cursor<'_>) -> Option<Url> {
        let what = match self {
            Self::Endpoint(url) => return Some(url),
            Self::Container(_) => "a container",
            Self::Queue(_) => "a queue",
        };
        let message =
            Message::new(format!("{what} is not a destination for events, only for dead letters"));
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

/// The result of resolving an address.
pub enum Resolved {
    /// It can be used.
    Target(Target),
    /// It cannot be used, which has been reported where it is written.
    Reported,
    /// It is neither an address nor a key of a `Destinations` document.
    Unknown,
}

impl Resolved {
    /// The target; without one there is a finding, for an unknown address this one. Of a mistyped URL it names the
    /// mistake.
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

/// The address of an HTTP endpoint.
pub struct Endpoint {
    /// What is wrong with a text that is none.
    unknown: &'static str,
    /// The right spelling or value.
    rule: &'static str,
    /// It may also be a topic of the files, as `topic:namespace/topic`.
    or_topic: bool,
}

impl Endpoint {
    /// Where events go.
    pub const OF_EVENTS: Self = Self {
        unknown: "neither an address nor a key of a Destinations document",
        rule: "http://… or https://…",
        or_topic: true,
    };
    /// Where else requests go.
    pub const OTHER: Self =
        Self { unknown: "not an address", rule: "https://… or http://…", or_topic: false };
}

impl Endpoint {
    /// Reads the address that a text is, and reports at its place in a file.
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

/// An address. The text of a URL is in no message: it may hold credentials.
pub fn address(text: &str, at: &Cursor<'_>) -> Resolved {
    match parsed(text) {
        None => Resolved::Unknown,
        Some(Ok(target)) => {
            if let Target::Endpoint(url) = &target
                && (!url.username().is_empty() || url.password().is_some())
            {
                at.warn(
                    "the URL holds credentials in clear text; everyone who can read the file can read them",
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

/// The address of this text, or what is wrong with it; `None` if it does not look like one.
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
        return Err("expressions are possible only in the path of destination.url itself".into());
    }
    let url =
        Url::parse(text).map_err(|error| Message::new(format!("not a valid URL: {error}")))?;
    match url.host_str() {
        None | Some("") => Err("the URL has no host".into()),
        // As in https://https://host: no host has this name.
        Some("http" | "https") => Err("the URL has two schemes".into()),
        Some(_) => Ok(url),
    }
}

/// Returns true for a text that can be the name of a bucket.
pub fn is_bucket(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    BUCKET_BYTES.contains(&name.len()) && name.chars().all(allowed)
}

fn container(text: &str) -> Result<Container, Message> {
    let container: Container =
        text.parse().map_err(|_| Message::new("a bucket is missing after s3://"))?;
    if !is_bucket(&container.bucket) {
        return Err(BUCKET_RULE.into());
    }
    let Container { prefix, .. } = &container;
    if prefix.len() > PREFIX_MAX_BYTES || prefix.chars().any(char::is_control) {
        return Err(format!(
            "a prefix is at most {PREFIX_MAX_BYTES} bytes, without control characters"
        )
        .into());
    }
    if !prefix.is_empty() && prefix.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err("no segment of a prefix is empty, . or ..".into());
    }
    check_prefix(prefix)?;
    Ok(container)
}
