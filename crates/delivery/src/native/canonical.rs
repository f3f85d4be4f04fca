//! Writes the canonical form: every subscription as a native document, whatever its dialect.
//!
//! This module is separate because it only writes documents; most of `native` reads them. `spec`
//! states only the differences from the defaults of a profile. The document also contains the name
//! of the profile and its defaults, so that the document keeps its meaning when a later version has
//! different defaults. Members are sorted. Secrets are written as names. Credentials that a file
//! has in clear text, in a URL or a hidden header, are written unchanged.
//!
//! Reading the documents yields the same topics and subscriptions. Writing these again yields the
//! same documents.

use serde_json::{Map, Value as Json, json};

use super::defaults::written_defaults;
use super::metadata::{SubscriptionMetadata, TopicMetadata};
use super::notifications::NotificationsSpec;
use super::secret_policy::SecretPolicySpec;
use super::selection::Selection;
use crate::document::record::Record as _;
use crate::subscription::catalogue::{Catalogue, Topic};
use crate::subscription::name::TopicName;
use crate::subscription::policy;
use crate::subscription::profile::StatusSet;
use crate::subscription::secret_policy::SecretRule;
use crate::subscription::{DeliverySettings, ReplyTo, Subscription};

/// The `apiVersion` of native documents.
pub const API_VERSION: &str = "lastmile.dev/v1";

/// Returns every document of a catalogue: settings, topics and subscriptions, each group sorted by
/// name.
#[must_use]
pub fn documents(catalogue: &Catalogue) -> Vec<Json> {
    let topics = catalogue.topics().map(topic);
    let subscriptions = catalogue.subscriptions().map(|listed| subscription(listed));
    settings(catalogue).into_iter().chain(topics).chain(subscriptions).collect()
}

/// Returns the documents with settings of the whole deployment.
fn settings(catalogue: &Catalogue) -> Vec<Json> {
    let settings = catalogue.settings();
    let secrets = settings.secrets.rules().map(secret_policy);
    let notices = settings.notices.clone().map(notifications);
    secrets.into_iter().chain(notices).collect()
}

/// Returns the SecretPolicy document with these rules.
pub(crate) fn secret_policy(rules: &[SecretRule]) -> Json {
    document("SecretPolicy", Json::Object(SecretPolicySpec { secrets: rules.to_vec() }.write()))
}

/// Returns the Notifications document that names this topic.
pub(crate) fn notifications(topic: TopicName) -> Json {
    document("Notifications", Json::Object(NotificationsSpec { topic }.write()))
}

fn document(kind: &str, spec: Json) -> Json {
    json!({ "apiVersion": API_VERSION, "kind": kind, "spec": spec })
}

/// Returns the `spec` of a topic: the settings that differ from the defaults.
pub(crate) fn topic_spec(topic: &Topic) -> Json {
    Json::Object(topic.settings.write())
}

pub(crate) fn topic(topic: &Topic) -> Json {
    let mut document = document("Topic", topic_spec(topic));
    document["metadata"] = Json::Object(TopicMetadata::from(&topic.name).write());
    document
}

/// Returns the `spec` of a subscription: the values that differ from the defaults of its profile.
pub(crate) fn spec(subscription: &Subscription) -> Json {
    let own = DeliverySettings::from(subscription);
    let defaults = DeliverySettings::new(subscription.dialect, (*own.destination.url).clone());
    with_own(differences(&own, &defaults), subscription)
}

/// Returns all values of a subscription as a `spec`, with the name of the profile.
pub(crate) fn whole_spec(subscription: &Subscription) -> Json {
    let mut spec =
        with_own(Json::Object(DeliverySettings::from(subscription).write()), subscription);
    spec["profile"] = json!(subscription.dialect.profile());
    spec
}

/// Returns all values of a subscription as a `spec` for display, without secrets.
pub(crate) fn shown_spec(subscription: &Subscription) -> Json {
    let mut spec =
        with_own(Json::Object(DeliverySettings::from(subscription).shown()), subscription);
    spec["profile"] = json!(subscription.dialect.profile());
    if let Some(ReplyTo::Address(_)) = subscription.reply {
        spec["reply"] = policy::reply(subscription).value;
    }
    spec
}

fn with_own(mut spec: Json, subscription: &Subscription) -> Json {
    if let Some(fields) = spec.as_object_mut() {
        fields.extend(Selection::from(subscription).write());
    }
    spec
}

pub(crate) fn subscription(subscription: &Subscription) -> Json {
    let mut document = document("Subscription", spec(subscription));
    document["metadata"] = Json::Object(SubscriptionMetadata::from(&subscription.name).write());
    document["profile"] = json!(subscription.dialect.profile());
    document["defaults"] = written_defaults(subscription.dialect);
    document
}

/// Returns the fields of a subscription whose values differ from the defaults.
fn differences(own: &DeliverySettings, defaults: &DeliverySettings) -> Json {
    let (mut written, base) = (own.write(), defaults.write());
    if let Some(retry) = written.get_mut("retry").and_then(Json::as_object_mut) {
        let (own, base) = (&own.retry, &defaults.retry);
        let ranges = |set: StatusSet| json!(set.ranges());
        let retried = base.never_retry.difference(&own.never_retry).with(&own.retry_on);
        retry
            .insert("neverRetry".to_owned(), ranges(own.never_retry.difference(&base.never_retry)));
        retry.insert("retryOn".to_owned(), ranges(retried));
        let is_empty_list = |name: &str, value: &Json| {
            matches!(name, "neverRetry" | "retryOn") && value.as_array().is_some_and(Vec::is_empty)
        };
        retry.retain(|name, value| !is_empty_list(name, value));
    }
    let mut spec = Map::new();
    for (section, content) in written {
        let different = match (content, base.get(&section)) {
            (Json::Object(fields), Some(Json::Object(of_base))) => {
                let is_stated = |(name, value): &(String, Json)| {
                    matches!(name.as_str(), "url" | "neverRetry")
                        || of_base.get(name) != Some(value)
                };
                let stated: Map<String, Json> = fields.into_iter().filter(is_stated).collect();
                (!stated.is_empty()).then_some(Json::Object(stated))
            }
            (content, base) => (base != Some(&content)).then_some(content),
        };
        spec.extend(different.map(|content| (section, content)));
    }
    Json::Object(spec)
}
