//! The canonical form: every subscription as a native document, whatever dialect it was written in.
//!
//! Separate because it writes what the rest of this module reads. A document has `spec`, which states what differs from the
//! defaults of its profile, and beside it the name of the profile and these defaults: what was written keeps its meaning
//! when the defaults of a later version are others. Members are sorted. Secrets are given by their names; credentials that a file has in
//! clear text, in a URL or a hidden header, are printed as they are.
//!
//! Promises: reading the documents gives the same topics and subscriptions, and writing those gives the same documents.

use std::sync::LazyLock;

use serde_json::{Map, Value as Json, json};

use crate::document::record::Record as _;
use crate::event::envelope::Publisher;
use crate::event::mapping::{Field, Mapping};
use crate::subscription::catalogue::{Catalogue, Topic};
use crate::subscription::filter::Filter;
use crate::subscription::kinds::{conditions, replies};
use crate::subscription::profile::{Dialect, StatusSet};
use crate::subscription::{DeliverySettings, Subscription};
use crate::time::moment;

use super::family::NATIVE;

/// Every document of a catalogue: settings, topics, subscriptions, each by name.
#[must_use]
pub fn documents(catalogue: &Catalogue) -> Vec<Json> {
    let topics = catalogue.topics().map(topic);
    let subscriptions = catalogue.subscriptions().map(|of| subscription(of));
    settings(catalogue).into_iter().chain(topics).chain(subscriptions).collect()
}

/// The settings of the deployment.
fn settings(catalogue: &Catalogue) -> Vec<Json> {
    let settings = catalogue.settings();
    let secrets = settings.secrets.rules().map(|rules| {
        let rule = |rule: &crate::subscription::secret_policy::SecretRule| {
            let hosts: Vec<String> = rule.hosts.iter().map(ToString::to_string).collect();
            json!({ "name": rule.name.to_string(), "hosts": hosts })
        };
        let rules: Vec<Json> = rules.iter().map(rule).collect();
        document("SecretPolicy", json!({ "secrets": rules }))
    });
    let notices = settings.notices.as_ref();
    let notices =
        notices.map(|topic| document("Notifications", json!({ "topic": topic.to_string() })));
    secrets.into_iter().chain(notices).collect()
}

fn document(kind: &str, spec: Json) -> Json {
    json!({ "apiVersion": NATIVE, "kind": kind, "spec": spec })
}

fn topic(Topic { name, input, mapping, from, max_replies }: &Topic) -> Json {
    let mut spec = json!({ "input": input.as_str(), "maxReplies": max_replies });
    if !from.is_empty() {
        spec["from"] = from.iter().map(publisher).collect();
    }
    let mapping = mapped(mapping);
    if !mapping.is_empty() {
        spec["mapping"] = Json::Object(mapping);
    }
    let mut document = document("Topic", spec);
    document["metadata"] = json!({ "namespace": name.namespace, "name": name.topic });
    document
}

fn publisher(publisher: &Publisher) -> Json {
    match publisher {
        Publisher::SnsTopic(arn) => json!({ "snsTopic": arn }),
        Publisher::EventSource(source) => json!({ "eventSource": source }),
        Publisher::Bucket(name) => json!({ "bucket": name }),
    }
}

fn mapped(mapping: &Mapping) -> Map<String, Json> {
    let written = mapping.fields().into_iter().filter(|(_, of)| **of != Field::default());
    written.map(|(name, of)| (name.to_owned(), field(of))).collect()
}

fn field(Field { path, default }: &Field) -> Json {
    let path = path.as_ref().map(|path| ("field".to_owned(), json!(path.to_string())));
    let default = default.as_ref().map(|default| ("default".to_owned(), json!(default)));
    Json::Object(path.into_iter().chain(default).collect())
}

fn subscription(of: &Subscription) -> Json {
    let Subscription { name, dialect, filter, reply, expires_ms, .. } = of;
    let own = DeliverySettings::from(of);
    let defaults = DeliverySettings::of(*dialect, own.destination.url.clone());
    let mut spec = differences(&own, &defaults);
    if *filter != Filter::EVERYTHING {
        spec["filter"] = conditions::written(filter);
    }
    if let Some(reply) = reply {
        spec["reply"] = replies::written(reply);
    }
    if let Some(expires_ms) = expires_ms {
        spec["expires"] = json!(moment::written(*expires_ms));
    }
    let mut document = document("Subscription", spec);
    document["metadata"] = json!({
        "namespace": name.topic.namespace,
        "topic": name.topic.topic,
        "name": name.name,
    });
    document["profile"] = json!(dialect.profile());
    document["defaults"] = written_defaults(*dialect);
    document
}

/// The defaults of each profile, which are the same for every subscription.
static DEFAULTS: LazyLock<Vec<(Dialect, Json)>> =
    LazyLock::new(|| Dialect::ALL.map(|dialect| (dialect, defaults_of(dialect))).to_vec());

/// The defaults of a profile as a document, without an address.
pub(super) fn written_defaults(dialect: Dialect) -> Json {
    let found = DEFAULTS.iter().find(|(of, _)| *of == dialect);
    found.map_or_else(|| defaults_of(dialect), |(_, defaults)| defaults.clone())
}

fn defaults_of(dialect: Dialect) -> Json {
    let address = url::Url::parse(NO_ADDRESS).expect("a URL");
    let mut written = Json::Object(DeliverySettings::of(dialect, address).write());
    if let Some(destination) = written["destination"].as_object_mut() {
        destination.remove("url");
    }
    written
}

/// An address of settings that have none.
pub(super) const NO_ADDRESS: &str = "https://subscriber.invalid/";

/// The fields of these settings that differ from the defaults.
fn differences(own: &DeliverySettings, defaults: &DeliverySettings) -> Json {
    let (mut written, base) = (own.write(), defaults.write());
    if let Some(retry) = written.get_mut("retry").and_then(Json::as_object_mut) {
        let (own, base) = (&own.retry, &defaults.retry);
        let ranges = |set: StatusSet| json!(set.ranges());
        let retried = base.never_retry.difference(&own.never_retry).with(&own.retry_on);
        retry
            .insert("neverRetry".to_owned(), ranges(own.never_retry.difference(&base.never_retry)));
        retry.insert("retryOn".to_owned(), ranges(retried));
        let lists = |name: &str, of: &Json| {
            matches!(name, "neverRetry" | "retryOn") && of.as_array().is_some_and(Vec::is_empty)
        };
        retry.retain(|name, of| !lists(name, of));
    }
    let mut spec = Map::new();
    for (section, of) in written {
        let different = match (of, base.get(&section)) {
            (Json::Object(fields), Some(Json::Object(of_base))) => {
                let is_stated = |(name, value): &(String, Json)| {
                    matches!(name.as_str(), "url" | "neverRetry")
                        || of_base.get(name) != Some(value)
                };
                let stated: Map<String, Json> = fields.into_iter().filter(is_stated).collect();
                (!stated.is_empty()).then_some(Json::Object(stated))
            }
            (of, base) => (base != Some(&of)).then_some(of),
        };
        spec.extend(different.map(|of| (section, of)));
    }
    Json::Object(spec)
}
