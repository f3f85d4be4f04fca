//! What all objects have in common: API version, kind, `metadata`, and our annotations.
//!
//! Separate because it is read twice: first without findings, to know which objects the files hold,
//! then field by field with findings.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::translation::Translation;
use super::located::Located;
use delivery::document::findings::{Message, quoted};
use delivery::document::hint::hint;
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::dead_letter_format::Response;
use delivery::subscription::kinds::{limits, names, statuses};
use delivery::subscription::name::TopicName;
use delivery::subscription::profile::StatusSet;

/// The namespace of an object that names none.
const NAMESPACE: &str = "default";
/// The prefix of our annotations.
const OURS: &str = "lastmile.dev/";
/// Statuses that are retried, whatever the profile says.
const RETRY_ON: &str = "lastmile.dev/retry-on";
/// Statuses that are never retried, whatever the profile says.
const NEVER_RETRY: &str = "lastmile.dev/never-retry";

/// How many requests a second the subscriber takes.
const MAX_PER_SECOND: &str = "lastmile.dev/max-per-second";
/// Whether the path of the subscriber's address is a credential.
const HIDE_PATH: &str = "lastmile.dev/hide-path";
/// How much of the last answer dead letters store.
const RESPONSE: &str = "lastmile.dev/dead-letter-response";
/// How many deliveries replies to a broker or channel may lead to.
const MAX_REPLIES: &str = "lastmile.dev/max-replies";
/// The annotation of Knative by which a trigger of a Kafka broker keeps the order of events.
const ORDER: &str = "kafka.eventing.knative.dev/delivery.order";
/// The annotation of Knative by which a Kafka broker has the events of a topic that is there already.
const EXTERNAL_TOPIC: &str = "kafka.eventing.knative.dev/external.topic";
/// The annotation of Knative by which a trigger of a RabbitMQ broker says how many events are sent at once.
const PARALLELISM: &str = "rabbitmq.eventing.knative.dev/parallelism";
/// All of ours.
const ANNOTATIONS: [&str; 6] =
    [RETRY_ON, NEVER_RETRY, MAX_PER_SECOND, MAX_REPLIES, HIDE_PATH, RESPONSE];

/// The values of an annotation that is a switch: Kubernetes allows only strings.
const BOOLEANS: [(&str, bool); 2] = [("true", true), ("false", false)];

/// An object before its fields are read.
pub(super) struct Object<'a> {
    /// Its outermost mapping.
    pub(super) document: Cursor<'a>,
    /// `apiVersion`; empty where there is none.
    pub(super) api_version: &'a str,
    /// `kind`; empty where there is none.
    pub(super) kind: &'a str,
    /// The namespace and name.
    pub(super) name: TopicName,
    /// Of a broker or channel, the topic: its name, unless another object has that.
    pub(super) topic: TopicName,
}

impl<'a> Object<'a> {
    /// Inspects a document; reports nothing.
    pub(super) fn of(document: Cursor<'a>) -> Self {
        let namespace = document.peek("metadata.namespace").and_then(|name| name.peek_text());
        let namespace = namespace.filter(|name| !name.is_empty());
        let name = TopicName {
            namespace: namespace.unwrap_or(NAMESPACE).to_owned(),
            topic: document.text_at("metadata.name").to_owned(),
        };
        let [api_version, kind] = ["apiVersion", "kind"].map(|field| document.text_at(field));
        Self { api_version, kind, topic: name.clone(), name, document }
    }

    /// The group of its API; empty where there is none.
    pub(super) fn group(&self) -> &'a str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// True if the field at a path is there and not `null`; reports nothing.
    pub(super) fn states(&self, path: &str) -> bool {
        self.document.peek(path).is_some_and(|at| !at.is_null())
    }

    /// An annotation, if it is there and not `null`; reports nothing.
    pub(super) fn annotation(&self, name: &str) -> Option<Cursor<'a>> {
        let annotations = self.document.peek("metadata.annotations").filter(Cursor::is_mapping)?;
        let annotation = annotations.entries()?.into_iter().find(|entry| entry.name == name)?;
        Some(annotation.value).filter(|at| !at.is_null())
    }

    /// Reads the object: its metadata, and its spec, if it has one, with `read`.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Metadata<'a>, Option<&Fields<'a>>) -> T,
    ) -> Option<(Metadata<'a>, T)> {
        self.document.mapping(|fields| {
            fields.accept(&["apiVersion", "kind", "status"]);
            let metadata =
                fields.required("metadata").and_then(|metadata| metadata.mapping(Metadata::read));
            let metadata = metadata.unwrap_or_default();
            let spec = fields.get("spec").filter(|spec| !spec.is_null());
            let value = match spec {
                Some(spec) => spec.mapping(|spec| read(&metadata, Some(spec)))?,
                None => read(&metadata, None),
            };
            Some((metadata, value))
        })?
    }
}

/// The field `namespace`; as in Kubernetes an empty one is none.
pub(super) fn namespace<'a>(fields: &Fields<'a>) -> Option<Cursor<'a>> {
    fields.given("namespace").filter(|at| at.peek_text() != Some(""))
}

/// The contents of `metadata`.
#[derive(Default)]
pub(super) struct Metadata<'a> {
    /// Where the name is written; `None` where the object has no usable one.
    pub(super) named_at: Option<Cursor<'a>>,
    /// How many deliveries replies may lead to, for each event of a broker or channel.
    pub(super) max_replies: Option<Located<'a, u32>>,
    /// The statuses with another meaning.
    pub(super) overrides: Overrides<'a>,
}

impl<'a> Metadata<'a> {
    fn read(fields: &Fields<'a>) -> Self {
        fields.accept(&[
            "labels",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
        ]);
        fields.accept(&[
            "deletionGracePeriodSeconds",
            "finalizers",
            "ownerReferences",
            "managedFields",
            "selfLink",
        ]);
        let named = fields.required("name").filter(|name| names::read(name).is_some());
        let in_namespace =
            namespace(fields).is_none_or(|namespace| names::read(&namespace).is_some());
        let entries = fields
            .given("annotations")
            .and_then(|annotations| annotations.entries())
            .unwrap_or_default();
        let annotations: BTreeMap<&str, Cursor<'a>> = entries
            .into_iter()
            .filter(|entry| !entry.value.is_null())
            .map(|entry| (entry.name, entry.value))
            .collect();
        for (name, at) in annotations.iter().filter(|(name, _)| name.starts_with(OURS)) {
            if !ANNOTATIONS.contains(name) {
                let message = Message::new(format!("unknown annotation {}", quoted(name)));
                at.warn(message.help(hint(name, &ANNOTATIONS)));
            }
        }
        report_unkept(&annotations);
        Self {
            named_at: named.filter(|_| in_namespace),
            max_replies: annotations.get(MAX_REPLIES).and_then(|at| {
                Some(Located { value: limits::text(at, limits::REPLIES)?, at: at.clone() })
            }),
            overrides: Overrides::read(&annotations),
        }
    }
}

/// Reports what annotations of Knative promise and is not kept here.
fn report_unkept(annotations: &BTreeMap<&str, Cursor<'_>>) {
    if let Some(at) = annotations.get(ORDER).filter(|at| at.peek_text() != Some("unordered")) {
        let message = "the order of events is not kept here: one that is retried is overtaken";
        at.warn(
            Message::new(message).help("let the subscriber compare times or numbers of events"),
        );
    }
    if let Some(at) = annotations.get(PARALLELISM) {
        report_parallelism(at);
    }
    if let Some(at) = annotations.get(EXTERNAL_TOPIC) {
        let message = "not used: no topic of Kafka is read";
        at.warn(Message::new(message).help("publish its events to this broker"));
    }
}

/// Reports a limit of how many events are sent at once.
pub(super) fn report_parallelism(at: &Cursor<'_>) {
    let message = match at.peek_text() {
        Some("1") => "not used: events are sent at once, and their order is not kept",
        Some(_) | None => "not used: how many events are sent at once is not limited by it",
    };
    at.warn(Message::new(message).help(format!("{MAX_PER_SECOND} limits a rate")));
}

/// The annotations that change what a delivery does: the meaning of statuses, the rate, and what is kept
/// of it.
#[derive(Clone, Default)]
pub(super) struct Overrides<'a> {
    never_retry: Option<Located<'a, StatusSet>>,
    retry_on: Option<Located<'a, StatusSet>>,
    max_per_second: Option<Located<'a, u32>>,
    hide_path: Option<Located<'a, bool>>,
    response: Option<Located<'a, Response>>,
}

impl<'a> Overrides<'a> {
    fn read(annotations: &BTreeMap<&str, Cursor<'a>>) -> Self {
        let [never_retry, retry_on] = [NEVER_RETRY, RETRY_ON].map(|name| {
            let at = annotations.get(name)?;
            Some(Located { value: statuses::text(at)?, at: at.clone() })
        });
        if let (Some(never), Some(retry)) = (&never_retry, &retry_on)
            && let Some(status) = statuses::shared(&never.value, &retry.value)
        {
            retry.at.error(format!("{status} is in {NEVER_RETRY} too; it can be only one of them"));
        }
        Self {
            never_retry,
            retry_on,
            max_per_second: located(annotations, MAX_PER_SECOND, |at| {
                limits::text(at, limits::PER_SECOND)
            }),
            hide_path: located(annotations, HIDE_PATH, |at| at.choice(&BOOLEANS)),
            response: located(annotations, RESPONSE, |at| {
                at.word(&Response::ALL, Response::as_str)
            }),
        }
    }

    /// These settings, with `base` where they say nothing. A status that is listed here is removed
    /// from the lists of `base`.
    pub(super) fn with_fallback(self, base: &Self) -> Self {
        let stated = [&self.never_retry, &self.retry_on].map(set);
        let stated = stated[0].with(&stated[1]);
        let rest = |list: &Option<Located<'a, StatusSet>>| {
            list.clone().map(|list| Located { value: list.value.difference(&stated), ..list })
        };
        Self {
            never_retry: self.never_retry.or_else(|| rest(&base.never_retry)),
            retry_on: self.retry_on.or_else(|| rest(&base.retry_on)),
            max_per_second: self.max_per_second.or_else(|| base.max_per_second.clone()),
            hide_path: self.hide_path.or_else(|| base.hide_path.clone()),
            response: self.response.or_else(|| base.response.clone()),
        }
    }

    /// Translates them.
    pub(super) fn translate(&self, to: &mut Translation) {
        let lists = [("retry.neverRetry", &self.never_retry), ("retry.retryOn", &self.retry_on)];
        for (path, list) in lists {
            if let Some(Located { value, at }) = list {
                to.set(path, &json!(value.ranges()), at);
            }
        }
        if let Some(Located { value, at }) = &self.max_per_second {
            to.set("destination.maxPerSecond", &json!(value), at);
        }
        if let Some(Located { value, at }) = &self.hide_path {
            to.set("destination.hidePath", &json!(value), at);
            to.set("deadLetter.hidePath", &json!(value), at);
        }
        if let Some(Located { value, at }) = &self.response {
            to.set("deadLetter.response", &json!(value.as_str()), at);
        }
    }
}

/// The value of an annotation, and where it is.
fn located<'a, T>(
    annotations: &BTreeMap<&str, Cursor<'a>>,
    name: &str,
    read: impl FnOnce(&Cursor<'a>) -> Option<T>,
) -> Option<Located<'a, T>> {
    let at = annotations.get(name)?;
    Some(Located { value: read(at)?, at: at.clone() })
}

fn set(located: &Option<Located<'_, StatusSet>>) -> StatusSet {
    located.as_ref().map(|list| list.value.clone()).unwrap_or_default()
}
