//! The common fields of all objects: API version, kind and `metadata`.
//!
//! Separate because these fields are read twice: first without findings, to list the objects of the
//! files, and then field by field with findings.

use std::collections::BTreeMap;

use super::annotations::{self, MAX_PER_SECOND, MAX_REPLIES, Overrides};
use super::located::Located;
use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Fields};
use delivery::subscription::kinds::{limits, names};
use delivery::subscription::name::TopicName;

/// Namespace of an object that states none.
const NAMESPACE: &str = "default";
/// Annotation of Knative with which a trigger of a Kafka broker keeps the order of events.
const ORDER: &str = "kafka.eventing.knative.dev/delivery.order";
/// Annotation of Knative with which a Kafka broker uses the events of an existing topic.
const EXTERNAL_TOPIC: &str = "kafka.eventing.knative.dev/external.topic";
/// Annotation of Knative with the number of concurrent events of a RabbitMQ trigger.
const PARALLELISM: &str = "rabbitmq.eventing.knative.dev/parallelism";
/// An object whose fields are not read yet, except its name and its kind.
pub(super) struct Object<'a> {
    pub(super) document: Cursor<'a>,
    /// Value of `apiVersion`; empty if there is none.
    pub(super) api_version: &'a str,
    /// Value of `kind`; empty if there is none.
    pub(super) kind: &'a str,
    pub(super) name: TopicName,
    /// The topic of a broker or channel. It has the name of the object, unless another object has
    /// that topic.
    pub(super) topic: TopicName,
}

impl<'a> Object<'a> {
    /// Reads the common fields of a document without reporting anything.
    pub(super) fn new(document: Cursor<'a>) -> Self {
        let namespace = document.peek("metadata.namespace").and_then(|name| name.peek_text());
        let namespace = namespace.filter(|name| !name.is_empty());
        let name = TopicName {
            namespace: namespace.unwrap_or(NAMESPACE).to_owned(),
            topic: document.text_at("metadata.name").to_owned(),
        };
        let [api_version, kind] = ["apiVersion", "kind"].map(|field| document.text_at(field));
        Self { api_version, kind, topic: name.clone(), name, document }
    }

    /// Returns the API group of the object; empty if there is none.
    pub(super) fn group(&self) -> &'a str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// True if the object has a value other than `null` at this path. Reports nothing.
    pub(super) fn states(&self, path: &str) -> bool {
        self.document.peek(path).is_some_and(|at| !at.is_null())
    }

    /// Returns an annotation; `None` if it is missing or `null`. Reports nothing.
    pub(super) fn annotation(&self, name: &str) -> Option<Cursor<'a>> {
        let annotations = self.document.peek("metadata.annotations").filter(Cursor::is_mapping)?;
        let annotation = annotations.entries()?.into_iter().find(|entry| entry.name == name)?;
        Some(annotation.value).filter(|at| !at.is_null())
    }

    /// Reads an object. `read` is called with its metadata, and with its spec, if there is one.
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

/// Returns the field `namespace`. As in Kubernetes, an empty namespace counts as missing.
pub(super) fn namespace<'a>(fields: &Fields<'a>) -> Option<Cursor<'a>> {
    fields.given("namespace").filter(|at| at.peek_text() != Some(""))
}

#[derive(Default)]
pub(super) struct Metadata<'a> {
    /// Position of the object's name; `None` if the object has no usable name.
    pub(super) named_at: Option<Cursor<'a>>,
    /// The budget of replies of a broker or channel: the maximum number of deliveries that replies
    /// to replies cause for one published event.
    pub(super) max_replies: Option<Located<'a, u32>>,
    /// The values of our annotations.
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
        annotations::report_unknown(&annotations);
        report_unkept(&annotations);
        Self {
            named_at: named.filter(|_| in_namespace),
            max_replies: annotations::located(&annotations, MAX_REPLIES, |at| {
                limits::text(at, limits::REPLIES)
            }),
            overrides: Overrides::read(&annotations),
        }
    }
}

/// Reports annotations of Knative that request unsupported behaviour.
fn report_unkept(annotations: &BTreeMap<&str, Cursor<'_>>) {
    if let Some(at) = annotations.get(ORDER).filter(|at| at.peek_text() != Some("unordered")) {
        let message = "lastmile does not keep the order of events: later events overtake an event \
                       that is retried";
        at.warn(
            Message::new(message)
                .help("compare the times or sequence numbers of events in the subscriber"),
        );
    }
    if let Some(at) = annotations.get(PARALLELISM) {
        report_parallelism(at);
    }
    if let Some(at) = annotations.get(EXTERNAL_TOPIC) {
        let message = "no effect: Kafka topics are not read";
        at.warn(Message::new(message).help("publish the events of the Kafka topic to this broker"));
    }
}

/// Reports a limit of concurrent events, which has no effect here.
pub(super) fn report_parallelism(at: &Cursor<'_>) {
    let message = match at.peek_text() {
        Some("1") => "no effect: events are sent concurrently, and their order is not kept",
        Some(_) | None => "no effect: this value does not limit concurrent requests",
    };
    at.warn(Message::new(message).help(format!("use {MAX_PER_SECOND} to limit the rate")));
}
