//! The records that publishers send, both valid and invalid.
//!
//! Every element carries a unique mark, so that a request, a message and a blob can be traced to
//! their element.

use delivery::ports::{Attribute, MESSAGE_MAX_BYTES};

use super::faults::SeededRandom;
use super::forgery;
use super::rules::{TOPIC, WANTED_TYPE};
use super::sinks::{FIRST_SINK_TOPIC, SECOND_SINK_TOPIC};

/// The kind of one element of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementKind {
    /// A CloudEvent of the type that filters match.
    Wanted,
    /// Any other event.
    Other,
    /// Not an event.
    Malformed,
}

/// One element of a record.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    /// The text, as published.
    pub(crate) text: String,
    pub(crate) kind: ElementKind,
}

/// A published record.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    /// The publication time.
    pub(crate) at_ms: u64,
    /// The `topic` attribute.
    pub(crate) topic: Option<&'static str>,
    pub(crate) body: String,
    pub(crate) elements: Vec<Element>,
    /// True if the body leaves no room for our attributes.
    pub(crate) big: bool,
    /// A forged attribute, which only our functions may write.
    pub(crate) forged: Option<Attribute>,
    /// The message group of SQS.
    pub(crate) group: Option<&'static str>,
    /// The `deliverat` of the only element.
    pub(crate) deliver_at_ms: Option<u64>,
}

impl Published {
    /// True if the topic has subscriptions. A record without a topic belongs to the default topic,
    /// which has some.
    pub(crate) fn is_known(&self) -> bool {
        self.topic.is_none_or(|topic| topic == TOPIC || topic.starts_with("shop/t"))
    }
}

/// The record of this number; a large one leaves no room for our attributes.
pub(crate) fn record(number: usize, at_ms: u64, big: bool, random: &mut SeededRandom) -> Published {
    let topic = match random.below(12) {
        0 => Some("shop/nowhere"),
        1 => None,
        _ => Some(TOPIC),
    };
    if big {
        return big_record(number, at_ms);
    }
    let (body, elements) = match random.below(10) {
        0 => {
            let text = format!("hello, {} is no event", mark(number, 0));
            (text.clone(), vec![Element { text, kind: ElementKind::Malformed }])
        }
        1 | 2 => {
            // Some records have more elements than one invocation handles in place.
            let count = if random.percent(5) { 60 } else { 4 };
            array(number, 1 + random.below(count) as usize, random)
        }
        _ => {
            let element = element(number, 0, random);
            (element.text.clone(), vec![element])
        }
    };
    let group = random.pick(&[None, Some("quiet"), Some("noisy"), Some("noisy")]);
    let forged = random.percent(8).then(|| forgery::choose(number, topic, random));
    Published { at_ms, topic, body, elements, big, forged, group, deliver_at_ms: None }
}

/// The body and the elements of a record with `count` elements.
fn array(number: usize, count: usize, random: &mut SeededRandom) -> (String, Vec<Element>) {
    let elements: Vec<Element> = (0..count).map(|index| element(number, index, random)).collect();
    let texts: Vec<&str> = elements.iter().map(|element| element.text.as_str()).collect();
    (format!(" [{}]\n", texts.join(" , ")), elements)
}

/// A record with `count` elements.
pub(crate) fn large_record(
    number: usize,
    at_ms: u64,
    count: usize,
    random: &mut SeededRandom,
) -> Published {
    let (body, elements) = array(number, count, random);
    Published { body, elements, ..plain_record(number, at_ms) }
}

/// A dead letter that is published on a topic. Its delivery decides which subscriptions get it.
pub(crate) fn published_letter_text(topic: &str, text: &str) -> Published {
    let topic =
        [TOPIC, FIRST_SINK_TOPIC, SECOND_SINK_TOPIC].into_iter().find(|name| *name == topic);
    let elements = vec![Element { text: text.to_owned(), kind: ElementKind::Wanted }];
    Published { topic, body: text.to_owned(), elements, ..plain_record(0, 0) }
}

/// A record with one CloudEvent.
pub(crate) fn plain_record(number: usize, at_ms: u64) -> Published {
    let text = format!(
        r#"{{"specversion":"1.0","id":"{}","source":"s","type":"{WANTED_TYPE}"}}"#,
        mark(number, 0)
    );
    let elements = vec![Element { text: text.clone(), kind: ElementKind::Wanted }];
    Published {
        at_ms,
        topic: Some(TOPIC),
        body: text,
        elements,
        big: false,
        forged: None,
        group: None,
        deliver_at_ms: None,
    }
}

/// A record with one CloudEvent that has this `deliverat`. For an invalid value, `deliver_at_ms` is
/// `None`.
pub(crate) fn record_for(
    number: usize,
    at_ms: u64,
    deliver_at: &str,
    deliver_at_ms: Option<u64>,
) -> Published {
    let attribute = format!(r#","deliverat":"{deliver_at}"}}"#);
    let text = plain_record(number, at_ms).body.replace('}', &attribute);
    let kind = if deliver_at_ms.is_some() { ElementKind::Wanted } else { ElementKind::Malformed };
    let elements = vec![Element { text: text.clone(), kind }];
    Published { body: text, elements, deliver_at_ms, ..plain_record(number, at_ms) }
}

/// A CloudEvent that just fits into a message by itself.
fn big_record(number: usize, at_ms: u64) -> Published {
    let head = format!(
        r#"{{"specversion":"1.0","id":"{}","source":"s","type":"big","data":""#,
        mark(number, 0)
    );
    let attribute = "topic".len() + "String".len() + TOPIC.len();
    let filling = "x".repeat(MESSAGE_MAX_BYTES - attribute - head.len() - 2);
    let text = format!(r#"{head}{filling}"}}"#);
    let elements = vec![Element { text: text.clone(), kind: ElementKind::Other }];
    Published {
        at_ms,
        topic: Some(TOPIC),
        body: text,
        elements,
        big: true,
        forged: None,
        group: None,
        deliver_at_ms: None,
    }
}

fn element(number: usize, index: usize, random: &mut SeededRandom) -> Element {
    let mark = mark(number, index);
    let cloud_event = |kind: &str| {
        format!(
            r#"{{"specversion":"1.0", "id":"{mark}","source":"/söurce","type":"{kind}","data":{{"n":1.50}}}}"#
        )
    };
    let (text, kind) = match random.below(8) {
        0 => (format!(r#"{{"specversion":"7","id":"{mark}"}}"#), ElementKind::Malformed),
        1 | 2 => (
            format!(
                r#"{{"id":"{mark}","subject":"s","eventType":"t","eventTime":"2026-11-20T07:03:00Z","data":{{}}}}"#
            ),
            ElementKind::Other,
        ),
        3 => (cloud_event("order.paid"), ElementKind::Other),
        _ => (cloud_event(WANTED_TYPE), ElementKind::Wanted),
    };
    Element { text, kind }
}

/// The mark of an element.
pub(crate) fn mark(number: usize, index: usize) -> String {
    format!("ev-{number}-{index}.")
}

/// The record and element numbers of the marks in a text, in order.
pub(crate) fn marked(text: &str) -> impl Iterator<Item = (usize, usize)> {
    text.match_indices("ev-").filter_map(|(at, _)| mark_at(&text[at..]))
}

fn mark_at(text: &str) -> Option<(usize, usize)> {
    let rest = text.strip_prefix("ev-")?;
    let (number, rest) = rest.split_once('-')?;
    let (index, _) = rest.split_once('.')?;
    Some((number.parse().ok()?, index.parse().ok()?))
}
