//! The dialect and the name of an event subscription.
//!
//! Separate because both depend on many fields: the resource's id, its type, its version, its name,
//! the name of the file, and the optional `lastmile` section. That section overrides everything
//! else, since it is written for this program.

use super::super::findings::Message;
use super::super::reader::{Cursor, Fields};
use super::super::{Draft, batches, limits, names, statuses};
use super::Context;
use super::template::Resource;
use crate::subscription::dead_letter_format::Response;
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::profile::{Dialect, StatusSet};
use crate::subscription::{Batch, OnRefused};

/// The version of the resources that Event Grid on Kubernetes takes.
const KUBERNETES_VERSION: &str = "2020-10-15-preview";

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
    /// Whether the path of the destination is a credential.
    pub(super) hide_path: bool,
    /// How much of the last answer dead letters store.
    pub(super) response: Response,
    on_refused: Option<(OnRefused, Cursor<'a>)>,
    topic: Option<TopicName>,
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
            hide_path: hide_path.and_then(|cursor| cursor.boolean()).unwrap_or(false),
            response: response
                .and_then(|cursor| cursor.word(&Response::ALL, Response::as_str))
                .unwrap_or_default(),
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

/// Detects the dialect from a resource's own fields; whether the endpoint is a resource is decided
/// later.
pub(super) fn detect_dialect(resource: &Resource<'_>) -> Dialect {
    let cursor = &resource.cursor;
    let id = cursor.text_at("id").to_ascii_lowercase();
    if cursor.peek("properties.deliveryConfiguration").is_some()
        || id.contains("/namespaces/") && id.contains("/topics/")
        || resource.kind.starts_with("microsoft.eventgrid/namespaces/topics/")
    {
        return Dialect::EventGridNamespace;
    }
    let schema_inside = cursor.peek("properties.destination.properties.eventDeliverySchema");
    let version = cursor.text_at("apiVersion").trim();
    if schema_inside.is_some() || version.eq_ignore_ascii_case(KUBERNETES_VERSION) {
        return Dialect::EventGridKubernetes;
    }
    Dialect::EventGrid
}

/// The full name of a subscription, registered in the draft: that of `lastmile`, else the
/// resource's own, else the file's.
pub(super) fn name<'a>(
    resource: &Resource<'a>,
    fields: &Fields<'a>,
    own: &LastmileSection<'a>,
    draft: &mut Draft<'a>,
) -> Option<SubscriptionName> {
    let topic = topic_of(resource, fields, own);
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
fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The topic: that of `lastmile`, else of the id, else of a full name.
fn topic_of(
    resource: &Resource<'_>,
    fields: &Fields<'_>,
    own: &LastmileSection<'_>,
) -> Option<TopicName> {
    let [id, group] = ["id", "resourceGroup"].map(|field| fields.given(field));
    if let Some(topic) = &own.topic {
        return Some(topic.clone());
    }
    let text = id.as_ref().and_then(Cursor::text).unwrap_or_default();
    let topic_names =
        topic_of_id(text).map(|names| (names, id.as_ref().unwrap_or(&resource.cursor)));
    let group = group.as_ref().and_then(Cursor::peek_text);
    let topic_names = topic_names
        .or_else(|| topic_of_path(resource, group).map(|names| (names, &resource.cursor)));
    let Some(((namespace, topic), at)) = topic_names else {
        let message =
            Message::new("neither an id nor lastmile names the topic of this subscription");
        return resource.cursor.refuse(
            message.help("add \"lastmile\": {\"topic\": \"namespace/topic\"} beside properties"),
        );
    };
    Some(TopicName { namespace: names::checked(namespace, at)?, topic: names::checked(topic, at)? })
}

/// The names in a full name, `topic/subscription`, by its type: the topic, and the namespace or
/// domain that holds it, else the resource group. An extension's name has its own provider in
/// between, `account/Microsoft.EventGrid/subscription`.
fn topic_of_path<'r>(
    resource: &'r Resource<'_>,
    group: Option<&'r str>,
) -> Option<(&'r str, &'r str)> {
    let kind = resource.kind.strip_suffix("/eventsubscriptions")?;
    let names: Vec<&str> = resource.path.split('/').collect();
    let (kind, around) = match (kind.strip_suffix("/providers"), names.as_slice()) {
        (Some(kind), [around @ .., provider, _])
            if provider.eq_ignore_ascii_case("Microsoft.EventGrid") =>
        {
            (kind, around)
        }
        (None, [around @ .., _]) => (kind, around),
        (_, _) => return None,
    };
    // A type is its provider and one word for each name.
    if kind.split('/').skip(1).count() != around.len() {
        return None;
    }
    match around {
        [.., holder, topic] if kind.ends_with("/topics") => Some((holder, topic)),
        [.., topic] => Some((group?, topic)),
        [] => None,
    }
}

/// The names in an id,
/// `/subscriptions/…/resourceGroups/G/providers/P/type/name/…/eventSubscriptions/S`: the topic, and
/// the namespace or domain that holds it, else the resource group.
fn topic_of_id(id: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = id.split('/').filter(|part| !part.is_empty()).collect();
    let position = |name: &str| parts.iter().position(|part| part.eq_ignore_ascii_case(name));
    let group = position("resourceGroups").and_then(|at| parts.get(at + 1)).copied();
    let end = parts
        .iter()
        .rposition(|part| part.eq_ignore_ascii_case("eventSubscriptions"))
        .unwrap_or(parts.len());
    // Types and names of the subscription's source; an extension's own provider is at the end.
    let source = parts.get(position("providers")? + 2..end)?;
    let source = match source {
        [source @ .., providers, _] if providers.eq_ignore_ascii_case("providers") => source,
        source => source,
    };
    match source {
        [.., _, holder, kind, topic] if kind.eq_ignore_ascii_case("topics") => {
            Some((holder, topic))
        }
        [.., _, topic] => Some((group?, topic)),
        [] | [_] => None,
    }
}
