//! A delivery that ended without success, enriched with why.
//!
//! A [`DeadLetter`] holds all that its blob will say: whoever writes it needs no subscription file. Its
//! blob is made in [`crate::deadletter`], its travelling form in [`crate::wire`].

use std::fmt;

use crate::delivery::reason::Reason;
use crate::delivery::{Delivery, DeliveryTarget, History};
use crate::event::Shape;
use crate::event::mapping::Mapped;
use crate::subscription::dead_letter_format::{ErrorData, Format, Layout};
use crate::subscription::sink::{Container, Sink, SinkQueue};
use crate::subscription::{DeadLetterPolicy, ReplyTo, Subscription, without_user};
use crate::time::duration::DAY_MS;

/// A detail is for people; what is longer has been quoted from an event.
const DETAIL_MAX_CHARS: usize = 500;

/// Where a letter is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// In the container of the deployment.
    DefaultContainer,
    /// In a container of its subscription's.
    Container(Container),
    /// In a queue of somebody else's.
    Queue(SinkQueue),
}

impl Store {
    /// Its container, if it is one of its subscription's.
    #[must_use]
    pub fn container(&self) -> Option<&Container> {
        match self {
            Self::Container(container) => Some(container),
            Self::DefaultContainer | Self::Queue(_) => None,
        }
    }
}

/// How a letter fared that was to be delivered to its sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The sink's address in full, without credentials; `None` where nobody could say it any more.
    pub address: Option<String>,
    /// Why it did not take the letter.
    pub reason: Reason,
    /// What the reason's name does not say.
    pub detail: Option<String>,
    /// Attempts made.
    pub attempts: u32,
    /// What happened.
    pub history: History,
    /// The beginning of its last answer's body.
    pub last_response: Option<Vec<u8>>,
}

/// A dead letter: the delivery, why it ended, and how it wants to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
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
    /// Where it is kept.
    pub store: Store,
    /// Why it is not where its subscription wants it.
    pub sink_error: Option<String>,
    /// How it fared at its sink, when that did not take it.
    pub returned: Option<Returned>,
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

impl DeadLetter {
    /// A letter about a delivery that no subscription speaks for: the deployment's container, two
    /// days. A delivery that brought a letter to its sink gives that letter back.
    #[must_use]
    pub fn without_subscription(delivery: Delivery, reason: Reason, decided_ms: u64) -> Self {
        if let DeliveryTarget::Sink(letter) = delivery.target {
            let Delivery { attempts, history, last_response, .. } = delivery;
            let returned =
                Returned { address: None, reason, detail: None, attempts, history, last_response };
            return Self {
                decided_ms,
                not_before_ms: decided_ms,
                returned: Some(returned),
                ..*letter
            };
        }
        Self {
            delivery,
            reason,
            detail: None,
            decided_ms,
            not_before_ms: decided_ms,
            store: Store::DefaultContainer,
            sink_error: None,
            returned: None,
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
    pub fn new(
        delivery: Delivery,
        subscription: &Subscription,
        reason: Reason,
        decided_ms: u64,
    ) -> Self {
        let (policy, destination) = (&subscription.dead_letter, &subscription.destination);
        let format = policy.format.of(delivery.event.shape(), destination.schema);
        let headers = destination.headers.iter().filter_map(|header| header.shown(&delivery.event));
        Self {
            store: match &policy.sink {
                Sink::Container(container) => Store::Container(container.clone()),
                Sink::Queue(queue) => Store::Queue(queue.clone()),
                Sink::DefaultContainer | Sink::Address(_) | Sink::Topic(_) | Sink::None => {
                    Store::DefaultContainer
                }
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

    /// The same with a detail of its newest reason; a long one is cut.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        let detail = Some(cut(&detail.to_string()));
        match &mut self.returned {
            Some(returned) => returned.detail = detail,
            None => self.detail = detail,
        }
        self
    }

    /// Why its last delivery ended: the one to its sink, if there was one.
    #[must_use]
    pub fn newest_reason(&self) -> Reason {
        self.returned.as_ref().map_or(self.reason, |returned| returned.reason)
    }

    /// The same for the deployment's container, because its sink cannot take it.
    #[must_use]
    pub fn store_in_default(self, why: impl fmt::Display) -> Self {
        Self { store: Store::DefaultContainer, sink_error: Some(cut(&why.to_string())), ..self }
    }
}

/// A text for people, no longer than they read.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(DETAIL_MAX_CHARS).collect()
}

/// The later of the decision and the delay after the last attempt; at once where there was none
/// (Event Grid, "message delivery and retry", dead-letter events).
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
    asked_for.then(|| delivery.mapped(&subscription.mapping))
}

/// The addresses in full: only Knative's format asks for them, and a query may hold what others
/// need not see.
fn addresses(
    delivery: &Delivery,
    subscription: &Subscription,
    format: Format,
) -> Option<Addresses> {
    match format {
        Format::Knative => {}
        Format::Namespace | Format::EventGrid | Format::CloudEvents | Format::Custom => {
            return None;
        }
    }
    let subscriber = without_user(&subscription.destination.url);
    let failed = match (&delivery.target, &subscription.reply) {
        (DeliveryTarget::Reply, Some(ReplyTo::Address(url))) => without_user(url),
        (DeliveryTarget::Reply, Some(ReplyTo::Topic(_)) | None)
        | (DeliveryTarget::Destination | DeliveryTarget::Sink(_), _) => subscriber.clone(),
    };
    Some(Addresses { subscriber, failed })
}
