//! A delivery that ended without success, enriched with why.
//!
//! A [`Letter`] holds all that its blob will say: whoever writes it needs no subscription file. Its blob is made in
//! [`crate::blob`], its travelling form in [`crate::wire`].

mod format;

use std::fmt;
use std::str::FromStr;

use crate::delivery::{Delivery, Leg};
use crate::duration::DAY_MS;
use crate::event::Shape;
use crate::mapping::Mapped;
use crate::sink::Sink;
use crate::subscription::{DeadLetterPolicy, ReplyTo, Subscription, without_user};

pub use format::{ErrorData, Format, Layout, LetterFormat};

/// A detail is for people; what is longer has been quoted from an event.
const DETAIL_MAX_CHARS: usize = 500;

/// Why a delivery ended without success: log field, metric dimension, dead-letter field and filter in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// All allowed attempts failed.
    MaxDeliveryAttemptsExceeded,
    /// Too old when an attempt was due.
    TimeToLiveExceeded,
    /// 400.
    UndeliverableDueToHttpBadRequest,
    /// 401.
    UndeliverableDueToHttpUnauthorized,
    /// 403.
    UndeliverableDueToHttpForbidden,
    /// 404.
    UndeliverableDueToHttpNotFound,
    /// 405.
    UndeliverableDueToHttpMethodNotAllowed,
    /// 410: the destination is retired.
    UndeliverableDueToHttpGone,
    /// 413.
    UndeliverableDueToHttpPayloadTooLarge,
    /// 415.
    UndeliverableDueToHttpUnsupportedMediaType,
    /// 422.
    UndeliverableDueToHttpUnprocessable,
    /// Any other status that is never retried.
    UndeliverableDueToHttpStatus(u16),
    /// 3xx: redirects are never followed.
    UndeliverableDueToRedirect,
    /// The certificate was refused.
    UndeliverableDueToTls,
    /// The address is one we do not send to.
    UndeliverableDueToBlockedAddress,
    /// No request could be built.
    UndeliverableDueToInvalidRequest,
    /// No document has the subscription any more.
    SubscriptionNotFound,
    /// No document has the topic.
    TopicNotFound,
    /// Not an event.
    MalformedEvent,
    /// Our own processing failed again and again.
    ProcessingFailed,
    /// Its state no longer fits beside it in one message.
    EventTooLargeToResend,
    /// Replies to replies to replies.
    ReplyLoop,
}

impl Reason {
    /// Every reason that needs no number.
    pub const NAMED: [Self; 21] = [
        Self::MaxDeliveryAttemptsExceeded,
        Self::TimeToLiveExceeded,
        Self::UndeliverableDueToHttpBadRequest,
        Self::UndeliverableDueToHttpUnauthorized,
        Self::UndeliverableDueToHttpForbidden,
        Self::UndeliverableDueToHttpNotFound,
        Self::UndeliverableDueToHttpMethodNotAllowed,
        Self::UndeliverableDueToHttpGone,
        Self::UndeliverableDueToHttpPayloadTooLarge,
        Self::UndeliverableDueToHttpUnsupportedMediaType,
        Self::UndeliverableDueToHttpUnprocessable,
        Self::UndeliverableDueToRedirect,
        Self::UndeliverableDueToTls,
        Self::UndeliverableDueToBlockedAddress,
        Self::UndeliverableDueToInvalidRequest,
        Self::SubscriptionNotFound,
        Self::TopicNotFound,
        Self::MalformedEvent,
        Self::ProcessingFailed,
        Self::EventTooLargeToResend,
        Self::ReplyLoop,
    ];

    /// The reason that a never-retried status gives.
    #[must_use]
    pub const fn of_status(status: u16) -> Self {
        match status {
            300..=399 => Self::UndeliverableDueToRedirect,
            400 => Self::UndeliverableDueToHttpBadRequest,
            401 => Self::UndeliverableDueToHttpUnauthorized,
            403 => Self::UndeliverableDueToHttpForbidden,
            404 => Self::UndeliverableDueToHttpNotFound,
            405 => Self::UndeliverableDueToHttpMethodNotAllowed,
            410 => Self::UndeliverableDueToHttpGone,
            413 => Self::UndeliverableDueToHttpPayloadTooLarge,
            415 => Self::UndeliverableDueToHttpUnsupportedMediaType,
            422 => Self::UndeliverableDueToHttpUnprocessable,
            other => Self::UndeliverableDueToHttpStatus(other),
        }
    }

    /// The sentence that Event Grid namespaces write for this reason; other reasons are written by name.
    #[must_use]
    pub fn sentence(self) -> String {
        match self {
            Self::MaxDeliveryAttemptsExceeded => "Maximum delivery attempts was exceeded.".to_owned(),
            Self::TimeToLiveExceeded => "Time to live was exceeded.".to_owned(),
            Self::UndeliverableDueToHttpBadRequest
            | Self::UndeliverableDueToHttpUnauthorized
            | Self::UndeliverableDueToHttpForbidden
            | Self::UndeliverableDueToHttpNotFound
            | Self::UndeliverableDueToHttpMethodNotAllowed
            | Self::UndeliverableDueToHttpGone
            | Self::UndeliverableDueToHttpPayloadTooLarge
            | Self::UndeliverableDueToHttpUnsupportedMediaType
            | Self::UndeliverableDueToHttpUnprocessable
            | Self::UndeliverableDueToHttpStatus(400..=499) => "Undeliverable due to client error".to_owned(),
            Self::UndeliverableDueToHttpStatus(_)
            | Self::UndeliverableDueToRedirect
            | Self::UndeliverableDueToTls
            | Self::UndeliverableDueToBlockedAddress
            | Self::UndeliverableDueToInvalidRequest
            | Self::SubscriptionNotFound
            | Self::TopicNotFound
            | Self::MalformedEvent
            | Self::ProcessingFailed
            | Self::EventTooLargeToResend
            | Self::ReplyLoop => self.to_string(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::UndeliverableDueToHttpStatus(status) = self {
            return write!(f, "UndeliverableDueToHttpStatus{status}");
        }
        // The names of the variants are the names of the vocabulary.
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Reason {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("\"{text}\" is no dead-letter reason");
        if let Some(status) = text.strip_prefix("UndeliverableDueToHttpStatus") {
            return status.parse().map(Self::UndeliverableDueToHttpStatus).map_err(|_| unknown());
        }
        Self::NAMED.into_iter().find(|reason| reason.to_string() == text).ok_or_else(unknown)
    }
}

/// Where dead letters are stored: a bucket and a prefix within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The bucket.
    pub bucket: String,
    /// What every key begins with, without slashes at its ends; may be empty.
    pub prefix: String,
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

impl FromStr for Container {
    type Err = String;

    /// Reads `bucket` or `bucket/prefix`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (bucket, prefix) = text.split_once('/').unwrap_or((text, ""));
        if bucket.is_empty() {
            return Err(format!("\"{text}\" is no container: bucket or bucket/prefix is expected"));
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.trim_matches('/').to_owned() })
    }
}

/// A dead letter: the delivery, why it ended, and how it wants to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The delivery as it ended.
    pub delivery: Delivery,
    /// Why it ended.
    pub reason: Reason,
    /// What the reason's name does not say, for people: where the event is malformed, say.
    pub detail: Option<String>,
    /// When that was decided.
    pub decided_ms: u64,
    /// It is not written before this.
    pub not_before_ms: u64,
    /// Its container; `None` means that of the deployment.
    pub container: Option<Container>,
    /// How it is written.
    pub format: Format,
    /// How the namespace format is laid out.
    pub layout: Layout,
    /// How the Knative format tells the last answer.
    pub error_data: ErrorData,
    /// At most so many letters stand in its blob.
    pub events_per_blob: u32,
    /// When storage refuses, keep trying this long after the decision.
    pub keep_trying_for_ms: u64,
    /// The headers that were sent, never the secret ones.
    pub headers: Vec<(String, String)>,
    /// The destination without query and credentials.
    pub destination: Option<String>,
    /// What the topic's mapping says of a custom event, where the format asks for it.
    pub mapped: Option<Mapped>,
    /// The addresses in full, where the format asks for them.
    pub addresses: Option<Addresses>,
}

/// The addresses of a delivery with their queries, without user names and passwords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// The subscriber's.
    pub subscriber: String,
    /// Where the request went that failed, or would have gone.
    pub failed: String,
}

impl Letter {
    /// A letter about a delivery that no subscription speaks for: the deployment's container, two days.
    #[must_use]
    pub fn without_subscription(delivery: Delivery, reason: Reason, decided_ms: u64) -> Self {
        Self {
            delivery,
            reason,
            detail: None,
            decided_ms,
            not_before_ms: decided_ms,
            container: None,
            format: Format::Namespace,
            layout: Layout::Nested,
            error_data: ErrorData::Text,
            events_per_blob: 1,
            keep_trying_for_ms: 2 * DAY_MS,
            headers: Vec::new(),
            destination: None,
            mapped: None,
            addresses: None,
        }
    }

    /// A letter as the subscription wants it. The caller has looked whether it wants one at all.
    #[must_use]
    pub fn new(delivery: Delivery, subscription: &Subscription, reason: Reason, decided_ms: u64) -> Self {
        let (policy, destination) = (&subscription.dead_letter, &subscription.destination);
        let format = policy.format.of(delivery.event.shape(), destination.schema);
        let headers = destination.headers.iter().filter_map(|header| header.shown(&delivery.event));
        Self {
            container: match &policy.sink {
                Sink::Container(container) => Some(container.clone()),
                Sink::DefaultContainer | Sink::Queue(_) | Sink::Address(_) | Sink::Topic(_) | Sink::None => None,
            },
            not_before_ms: not_before_ms(&delivery, policy, decided_ms),
            format,
            layout: policy.layout,
            error_data: policy.error_data,
            events_per_blob: policy.events_per_blob,
            keep_trying_for_ms: policy.keep_trying_for_ms,
            headers: headers.collect(),
            destination: Some(destination.display()),
            mapped: mapped(&delivery, subscription, format),
            addresses: addresses(&delivery, subscription, format),
            ..Self::without_subscription(delivery, reason, decided_ms)
        }
    }

    /// The same with a detail; a long one is cut.
    #[must_use]
    pub fn because(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(detail.to_string().chars().take(DETAIL_MAX_CHARS).collect());
        self
    }
}

/// The later of the decision and the delay after the last attempt; at once where there was none (Event Grid, "message
/// delivery and retry", dead-letter events).
fn not_before_ms(delivery: &Delivery, policy: &DeadLetterPolicy, decided_ms: u64) -> u64 {
    let last = delivery.history.newest_attempt();
    last.map_or(decided_ms, |attempt| attempt.at_ms.saturating_add(policy.delay_ms).max(decided_ms))
}

/// What a mapping says of a custom event: told now, for whoever writes the letter knows no mapping.
fn mapped(delivery: &Delivery, subscription: &Subscription, format: Format) -> Option<Mapped> {
    let asked_for = match format {
        Format::Namespace => false,
        Format::EventGrid | Format::CloudEvents | Format::Custom | Format::Knative => {
            delivery.event.shape() == Shape::Custom
        }
    };
    asked_for.then(|| Mapped::of(delivery, &subscription.mapping))
}

/// The addresses in full: only Knative's format asks for them, and a query may hold what others need not see.
fn addresses(delivery: &Delivery, subscription: &Subscription, format: Format) -> Option<Addresses> {
    match format {
        Format::Knative => {}
        Format::Namespace | Format::EventGrid | Format::CloudEvents | Format::Custom => return None,
    }
    let subscriber = without_user(&subscription.destination.url);
    let failed = match (delivery.leg, &subscription.reply) {
        (Leg::Reply, Some(ReplyTo::Address(url))) => without_user(url),
        (Leg::Reply, Some(ReplyTo::Topic(_)) | None) | (Leg::Event, _) => subscriber.clone(),
    };
    Some(Addresses { subscriber, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_read_back_from_its_name() {
        for reason in Reason::NAMED.into_iter().chain((100..1_000).map(Reason::of_status)) {
            assert_eq!(reason.to_string().parse(), Ok(reason));
        }
        assert!("Nothing".parse::<Reason>().is_err());
        assert!("UndeliverableDueToHttpStatusX".parse::<Reason>().is_err());
    }

    #[test]
    fn the_sentences_of_event_grid_namespaces_are_used() {
        for (reason, sentence) in [
            (Reason::of_status(401), "Undeliverable due to client error"),
            (Reason::of_status(418), "Undeliverable due to client error"),
            (Reason::of_status(501), "UndeliverableDueToHttpStatus501"),
            (Reason::MaxDeliveryAttemptsExceeded, "Maximum delivery attempts was exceeded."),
            (Reason::TimeToLiveExceeded, "Time to live was exceeded."),
            (Reason::UndeliverableDueToTls, "UndeliverableDueToTls"),
        ] {
            assert_eq!(reason.sentence(), sentence);
        }
    }

    #[test]
    fn a_container_is_a_bucket_and_perhaps_a_prefix() {
        for (text, bucket, prefix) in [("b", "b", ""), ("b/", "b", ""), ("b/x/y/", "b", "x/y")] {
            let container: Container = text.parse().unwrap();
            assert_eq!((container.bucket.as_str(), container.prefix.as_str()), (bucket, prefix));
        }
        assert!("/x".parse::<Container>().is_err());
    }
}
