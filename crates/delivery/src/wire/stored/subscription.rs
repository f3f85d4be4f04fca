//! A subscription, and what has no file of its own: batches, dead letters, replies.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::destination::DestinationV1;
use super::field::{address, at_least_one, of_field};
use super::filter::FilterV1;
use super::retry::RetryV1;
use super::version::Version;
use super::words::{DialectV1, ErrorDataV1, FormatV1, LayoutV1, OnRefusedV1, ResponseV1};
use crate::event::mapping::Mapping;
use crate::subscription::filter::Filter;
use crate::subscription::name::SubscriptionName;
use crate::subscription::sink::Sink;
use crate::subscription::{Batch, DeadLetterPolicy, ReplyTo, Subscription};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SubscriptionV1 {
    v: Version,
    dialect: DialectV1,
    destination: DestinationV1,
    /// Absent: every event.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<FilterV1>,
    retry: RetryV1,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<BatchV1>,
    dead_letter: DeadLetterV1,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<ReplyV1>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BatchV1 {
    max_events: u32,
    preferred_bytes: u64,
    on_refused: OnRefusedV1,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeadLetterV1 {
    sink: SinkV1,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hide_path: bool,
    format: FormatV1,
    layout: LayoutV1,
    error_data: ErrorDataV1,
    response: ResponseV1,
    events_per_blob: u32,
    delay_ms: u64,
    keep_trying_for_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum SinkV1 {
    Default,
    Container(String),
    Queue(String),
    Url(String),
    Topic(String),
    None,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ReplyV1 {
    Url(String),
    Topic(String),
}

impl From<&Subscription> for SubscriptionV1 {
    fn from(subscription: &Subscription) -> Self {
        let Subscription {
            name: _,
            dialect,
            destination,
            mapping: _,
            filter,
            retry,
            batch,
            dead_letter,
            paused,
            reply,
            reply_reference,
            expires_ms,
        } = subscription;
        Self {
            v: Version,
            dialect: DialectV1(*dialect),
            destination: destination.into(),
            filter: (*filter != Filter::EVERYTHING).then(|| filter.into()),
            retry: retry.into(),
            batch: batch.map(BatchV1::from),
            dead_letter: dead_letter.into(),
            paused: *paused,
            reply: reply.as_ref().map(ReplyV1::from),
            reply_reference: reply_reference.clone(),
            expires_ms: *expires_ms,
        }
    }
}

impl SubscriptionV1 {
    pub(super) fn into_subscription(
        self,
        name: SubscriptionName,
        mapping: &Arc<Mapping>,
    ) -> Result<Subscription, String> {
        let Self { v: Version, dialect: DialectV1(dialect), filter, .. } = self;
        Ok(Subscription {
            name,
            dialect,
            destination: self.destination.into_destination()?,
            mapping: Arc::clone(mapping),
            filter: filter.map_or(Ok(Filter::EVERYTHING), FilterV1::into_filter)?,
            retry: self.retry.into_policy()?,
            batch: self.batch.map(BatchV1::into_batch).transpose()?,
            dead_letter: self.dead_letter.into_policy()?,
            paused: self.paused,
            reply: self.reply.map(ReplyV1::into_reply).transpose()?,
            reply_reference: self.reply_reference,
            expires_ms: self.expires_ms,
        })
    }
}

impl From<Batch> for BatchV1 {
    fn from(Batch { max_events, preferred_bytes, on_refused }: Batch) -> Self {
        Self { max_events, preferred_bytes, on_refused: OnRefusedV1(on_refused) }
    }
}

impl BatchV1 {
    fn into_batch(self) -> Result<Batch, String> {
        let Self { max_events, preferred_bytes, on_refused: OnRefusedV1(on_refused) } = self;
        let max_events = at_least_one("batch.maxEvents", max_events)?;
        Ok(Batch { max_events, preferred_bytes, on_refused })
    }
}

impl From<&DeadLetterPolicy> for DeadLetterV1 {
    fn from(policy: &DeadLetterPolicy) -> Self {
        let DeadLetterPolicy {
            sink,
            reference,
            hide_path,
            format,
            layout,
            error_data,
            response,
            events_per_blob,
            delay_ms,
            keep_trying_for_ms,
        } = policy;
        Self {
            sink: sink.into(),
            reference: reference.clone(),
            hide_path: *hide_path,
            format: FormatV1(*format),
            layout: LayoutV1(*layout),
            error_data: ErrorDataV1(*error_data),
            response: ResponseV1(*response),
            events_per_blob: *events_per_blob,
            delay_ms: *delay_ms,
            keep_trying_for_ms: *keep_trying_for_ms,
        }
    }
}

impl DeadLetterV1 {
    fn into_policy(self) -> Result<DeadLetterPolicy, String> {
        Ok(DeadLetterPolicy {
            sink: self.sink.into_sink()?,
            reference: self.reference,
            hide_path: self.hide_path,
            format: self.format.0,
            layout: self.layout.0,
            error_data: self.error_data.0,
            response: self.response.0,
            events_per_blob: at_least_one("deadLetter.eventsPerBlob", self.events_per_blob)?,
            delay_ms: self.delay_ms,
            keep_trying_for_ms: self.keep_trying_for_ms,
        })
    }
}

impl From<&Sink> for SinkV1 {
    fn from(sink: &Sink) -> Self {
        match sink {
            Sink::DefaultContainer => Self::Default,
            Sink::Container(container) => Self::Container(container.to_string()),
            Sink::Queue(queue) => Self::Queue(queue.to_string()),
            Sink::Address(url) => Self::Url(url.to_string()),
            Sink::Topic(topic) => Self::Topic(topic.to_string()),
            Sink::None => Self::None,
        }
    }
}

impl SinkV1 {
    fn into_sink(self) -> Result<Sink, String> {
        const FIELD: &str = "deadLetter.sink";
        Ok(match self {
            Self::Default => Sink::DefaultContainer,
            Self::Container(text) => Sink::Container(of_field(FIELD, text.parse())?),
            Self::Queue(text) => Sink::Queue(of_field(FIELD, text.parse())?),
            Self::Url(text) => Sink::Address(address(FIELD, &text)?),
            Self::Topic(text) => Sink::Topic(of_field(FIELD, text.parse())?),
            Self::None => Sink::None,
        })
    }
}

impl From<&ReplyTo> for ReplyV1 {
    fn from(reply: &ReplyTo) -> Self {
        match reply {
            ReplyTo::Address(url) => Self::Url(url.to_string()),
            ReplyTo::Topic(topic) => Self::Topic(topic.to_string()),
        }
    }
}

impl ReplyV1 {
    fn into_reply(self) -> Result<ReplyTo, String> {
        match self {
            Self::Url(text) => address("reply", &text).map(ReplyTo::Address),
            Self::Topic(text) => of_field("reply", text.parse()).map(ReplyTo::Topic),
        }
    }
}
