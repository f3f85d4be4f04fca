//! The dialect and the name of an event subscription.
//!
//! Separate because both depend on many fields: what names the source, the resource's type, its version, its
//! name, the name of the file, and the optional `lastmile` section. That section overrides everything else, since
//! it is written for this program.

use super::super::findings::Message;
use super::super::reader::{Cursor, Fields};
use super::super::{Draft, batches, limits, names, statuses};
use super::source::{Located, Source};
use super::template::Resource;
use super::topics::SourceTopics;
use super::{Context, kubernetes};
use crate::subscription::dead_letter_format::Response;
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::profile::{Dialect, StatusSet};
use crate::subscription::{Batch, OnRefused};

/// The kind of the topics of namespaces.
const NAMESPACE_TOPICS: &str = "microsoft.eventgrid/namespaces/topics";

const DIALECTS: [(&str, Dialect); 3] = [
    ("eventgrid", Dialect::EventGrid),
    ("eventgrid-namespace", Dialect::EventGridNamespace),
    ("eventgrid-kubernetes", Dialect::EventGridKubernetes),
];

/// The `lastmile` section of a resource.
#[derive(Default)]
pub(super) struct LastmileSection<'a> {
    /// The dialect.
    pub(super) dialect: Option<Dialect>,
    /// Statuses that are never retried.
    pub(super) never_retry: StatusSet,
    /// Statuses that are retried.
    pub(super) retry_on: StatusSet,
    /// How many requests a second the destination takes.
    pub(super) max_per_second: Option<u32>,
    /// Whether the path of the destination is a credential, and that of an address for dead letters.
    pub(super) hide_path: Option<bool>,
    /// How much of the last answer dead letters store.
    pub(super) response: Option<Response>,
    /// The topic.
    pub(super) topic: Option<TopicName>,
    on_refused: Option<(OnRefused, Cursor<'a>)>,
    name: Option<(String, Cursor<'a>)>,
}

impl<'a> LastmileSection<'a> {
    /// Reads the fields of `lastmile`.
    pub(super) fn read(fields: &Fields<'a>, context: &mut Context<'_>) -> Self {
        let [never_retry, retry_on] = ["neverRetry", "retryOn"].map(|field| fields.given(field));
        context.note("neverRetry", never_retry.as_ref());
        context.note("retryOn", retry_on.as_ref());
        let per_second = fields.given("maxPerSecond");
        context.note("maxPerSecond", per_second.as_ref());
        let [hide_path, response] =
            ["hidePath", "deadLetterResponse"].map(|field| fields.given(field));
        context.note("hidePath", hide_path.as_ref());
        context.note("deadLetter.hidePath", hide_path.as_ref());
        context.note("deadLetter.response", response.as_ref());
        let on_refused = fields.given("onRefused");
        context.note("batch.onRefused", on_refused.as_ref());
        let list = |cursor: &Option<Cursor<'_>>| {
            cursor.as_ref().and_then(statuses::list).unwrap_or_default()
        };
        let (never, retried) = (list(&never_retry), list(&retry_on));
        if let (Some(status), Some(cursor)) = (statuses::shared(&never, &retried), &retry_on) {
            cursor.error(format!("{status} is in neverRetry too; it can be only one of them"));
        }
        Self {
            dialect: fields.given("dialect").and_then(|cursor| cursor.choice(&DIALECTS)),
            never_retry: never,
            retry_on: retried,
            max_per_second: per_second.and_then(|cursor| cursor.integer(limits::PER_SECOND)),
            hide_path: hide_path.and_then(|cursor| cursor.boolean()),
            response: response.and_then(|cursor| cursor.word(&Response::ALL, Response::as_str)),
            on_refused: on_refused.and_then(|cursor| Some((batches::on_refused(&cursor)?, cursor))),
            topic: fields.given("topic").and_then(|cursor| names::topic(&cursor)),
            name: fields.given("name").and_then(|cursor| Some((names::read(&cursor)?, cursor))),
        }
    }
}

impl LastmileSection<'_> {
    /// The batch settings of a resource, with `onRefused` of this section.
    pub(super) fn refine(&self, batch: Option<Batch>) -> Option<Batch> {
        match (batch, &self.on_refused) {
            (Some(batch), Some((on_refused, _))) => {
                Some(Batch { on_refused: *on_refused, ..batch })
            }
            (None, Some((_, at))) => {
                batches::report_without_batch(at, "maxEventsPerBatch: 100 enables batches");
                None
            }
            (batch, None) => batch,
        }
    }
}

/// Detects the dialect from a resource's own fields and from its source; whether the endpoint is a resource is
/// decided later.
pub(super) fn detect_dialect(resource: &Resource<'_>, source: Option<&Located<'_>>) -> Dialect {
    let is_namespace = source.is_some_and(|(source, _)| source.kind == NAMESPACE_TOPICS)
        || resource.kind.starts_with(NAMESPACE_TOPICS);
    if is_namespace || super::property(&resource.cursor, "deliveryConfiguration").is_some() {
        return Dialect::EventGridNamespace;
    }
    match kubernetes::sign(&resource.cursor, source) {
        Some(sign) => {
            kubernetes::report(&sign);
            Dialect::EventGridKubernetes
        }
        None => Dialect::EventGrid,
    }
}

/// The full name of a subscription, registered in the draft: that of `lastmile`, else the
/// resource's own, else the file's.
pub(super) fn name<'a>(
    resource: &Resource<'a>,
    fields: &Fields<'a>,
    topic: Option<TopicName>,
    own: &LastmileSection<'a>,
    draft: &mut Draft<'a>,
) -> Option<SubscriptionName> {
    let (name, at) = match (&own.name, fields.given("name")) {
        (Some((name, cursor)), _) => (name.clone(), cursor.clone()),
        (None, Some(cursor)) => (names::checked(last(cursor.text()?), &cursor)?, cursor),
        (None, None) => (
            names::checked(resource.cursor.file_stem(), &resource.cursor)?,
            resource.cursor.clone(),
        ),
    };
    let name = SubscriptionName { topic: topic?, name };
    draft.name_subscription(&name, &at).then_some(name)
}

/// The last part of a name such as `topic/subscription`.
pub(super) fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The topic of a source.
pub(super) fn topic_of(
    resource: &Resource<'_>,
    source: Option<&Located<'_>>,
    topics: &SourceTopics,
) -> Option<TopicName> {
    let help = |topic: &str| {
        format!("add \"lastmile\": {{\"topic\": \"namespace/{topic}\"}} beside properties")
    };
    match source {
        Some((source @ Source { namespace: Some(namespace), topic, .. }, at)) => {
            let namespace = names::checked(namespace, at)?;
            let name = TopicName { namespace, topic: names::checked(topic, at)? };
            Some(topics.spelled(name, source, at))
        }
        Some((Source { namespace: None, topic, .. }, at)) => {
            let message = format!(
                "the namespace of the topic {topic} is its resource group, which is not known here"
            );
            at.refuse(Message::new(message).help(help(topic)))
        }
        None => {
            let message =
                "neither an id, a topic, a scope nor lastmile names the topic of this subscription";
            resource.cursor.refuse(Message::new(message).help(help("topic")))
        }
    }
}
