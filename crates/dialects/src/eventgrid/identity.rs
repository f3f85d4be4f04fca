//! Determines the dialect and the name of an event subscription.
//!
//! Separate because both depend on many fields: the source, the resource's type, version and name,
//! the file name, and the optional section `lastmile`. This section takes precedence, because it is
//! written for this program.

use serde_json::json;

use super::context::Context;
use super::kubernetes;
use super::properties::property;
use super::source::{Located, Source};
use super::template::Resource;
use super::topics::SourceTopics;
use delivery::document::findings::Message;
use delivery::document::kind::Kind as _;
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::OnRefused;
use delivery::subscription::batch::ON_REFUSED;
use delivery::subscription::dead_letter_format::Response;
use delivery::subscription::kinds::{limits, names, statuses};
use delivery::subscription::name::{SubscriptionName, TopicName};
use delivery::subscription::profile::{Dialect, StatusSet};

/// Resource type of namespace topics, in lower case.
const NAMESPACE_TOPICS: &str = "microsoft.eventgrid/namespaces/topics";

const DIALECTS: [(&str, Dialect); 3] = [
    ("eventgrid", Dialect::EventGrid),
    ("eventgrid-namespace", Dialect::EventGridNamespace),
    ("eventgrid-kubernetes", Dialect::EventGridKubernetes),
];

#[derive(Default)]
pub(super) struct LastmileSection<'a> {
    pub(super) dialect: Option<Dialect>,
    pub(super) topic: Option<TopicName>,
    /// The treatment of refused batches, with the position of the field.
    pub(super) on_refused: Option<(OnRefused, Cursor<'a>)>,
    name: Option<(String, Cursor<'a>)>,
}

impl<'a> LastmileSection<'a> {
    /// Reads the fields of the section `lastmile`, and translates those about delivery.
    pub(super) fn read(fields: &Fields<'a>, context: &mut Context<'_>) -> Self {
        let [never_retry, retry_on] = ["neverRetry", "retryOn"].map(|field| fields.given(field));
        let list = |cursor: &Option<Cursor<'_>>| cursor.as_ref().and_then(statuses::list);
        let (never, retried) = (list(&never_retry), list(&retry_on));
        if let (Some(never), Some(retried)) = (&never, &retried)
            && let (Some(status), Some(cursor)) = (never.first_shared(retried), &retry_on)
        {
            cursor.error(format!("{status} is also in neverRetry; remove it from one list"));
        }
        let to = &mut context.to;
        let ranges = |list: StatusSet| json!(list.ranges());
        to.set_some("retry.neverRetry", never, ranges, never_retry.as_ref());
        to.set_some("retry.retryOn", retried, ranges, retry_on.as_ref());
        if let Some(at) = fields.given("maxPerSecond") {
            let most = at.integer(limits::PER_SECOND);
            to.set_some("destination.maxPerSecond", most, |maximum| json!(maximum), Some(&at));
        }
        if let Some(at) = fields.given("hidePath") {
            let is_hidden = at.boolean();
            to.set_some("destination.hidePath", is_hidden, |is_hidden| json!(is_hidden), Some(&at));
            to.set_some("deadLetter.hidePath", is_hidden, |is_hidden| json!(is_hidden), Some(&at));
        }
        if let Some(at) = fields.given("deadLetterResponse") {
            let response = at.word(&Response::ALL, Response::as_str);
            to.set_some(
                "deadLetter.response",
                response,
                |response| json!(response.as_str()),
                Some(&at),
            );
        }
        let on_refused = fields.given("onRefused");
        Self {
            dialect: fields.given("dialect").and_then(|cursor| cursor.choice(&DIALECTS)),
            on_refused: on_refused.and_then(|cursor| Some((ON_REFUSED.read(&cursor)?, cursor))),
            topic: fields.given("topic").and_then(|cursor| names::topic(&cursor)),
            name: fields.given("name").and_then(|cursor| Some((names::read(&cursor)?, cursor))),
        }
    }
}

/// Detects the dialect from a resource's own fields and its source. Does not consider the endpoint:
/// `settings::translate` replaces the dialect if the endpoint is an Azure resource.
pub(super) fn detect_dialect(resource: &Resource<'_>, source: Option<&Located<'_>>) -> Dialect {
    let is_namespace = source.is_some_and(|(source, _)| source.kind == NAMESPACE_TOPICS)
        || resource.kind.starts_with(NAMESPACE_TOPICS);
    if is_namespace || property(&resource.cursor, "deliveryConfiguration").is_some() {
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

/// Returns the full name of a subscription, with its position. The name comes from `lastmile`, else
/// from the resource, else from the file name.
pub(super) fn name<'a>(
    resource: &Resource<'a>,
    fields: &Fields<'a>,
    topic: Option<TopicName>,
    own: &LastmileSection<'a>,
) -> Option<(SubscriptionName, Cursor<'a>)> {
    let (name, at) = match (&own.name, fields.given("name")) {
        (Some((name, cursor)), _) => (name.clone(), cursor.clone()),
        (None, Some(cursor)) => (names::checked(last(cursor.text()?), &cursor)?, cursor),
        (None, None) => (
            names::checked(resource.cursor.file_stem(), &resource.cursor)?,
            resource.cursor.clone(),
        ),
    };
    Some((SubscriptionName { topic: topic?, name }, at))
}

/// Returns the last part of a name such as `topic/subscription`.
pub(super) fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the topic for a source. Reports a missing topic or namespace.
pub(super) fn topic_of(
    resource: &Resource<'_>,
    source: Option<&Located<'_>>,
    topics: &SourceTopics,
) -> Option<TopicName> {
    let help = |topic: &str| {
        format!("add \"lastmile\": {{\"topic\": \"namespace/{topic}\"}} next to properties")
    };
    match source {
        Some((source @ Source { namespace: Some(namespace), topic, .. }, at)) => {
            let namespace = names::checked(namespace, at)?;
            let name = TopicName { namespace, topic: names::checked(topic, at)? };
            Some(topics.spelled(name, source, at))
        }
        Some((Source { namespace: None, topic, .. }, at)) => {
            let message = format!(
                "the namespace of the topic {topic} is unknown, because the resource group is \
                 missing"
            );
            at.refuse(Message::new(message).help(help(topic)))
        }
        None => {
            let message = "the topic of this subscription is missing: no id, topic, scope or \
                           lastmile names it";
            resource.cursor.refuse(Message::new(message).help(help("topic")))
        }
    }
}
