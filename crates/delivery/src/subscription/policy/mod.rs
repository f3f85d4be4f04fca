//! Lists the effective policy of a subscription as settings with names, for display and comparison.
//!
//! This module is separate because `explain` and `diff` must use the same name for the same field.
//! A setting has the name of its field in the native dialect. Its value is the effective one, which
//! comes from a document or a default.
//!
//! Settings never contain values of headers, because these may be secrets. A secret is shown by
//! name. The position of a value is not part of a setting; the reader of documents provides it.

use serde_json::{Value, json};

use crate::document::record::{Record as _, Shown};
use crate::subscription::{DeliverySettings, ReplyTo, Subscription, shown};

/// A field of the effective policy, with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The path of the field in the native dialect.
    pub field: String,
    /// The value as JSON, without secrets.
    pub value: Value,
    /// The value as text for people, without secrets.
    pub text: String,
}

/// Returns the name of the setting for this path of fields. The prefixes `destination` and `retry`
/// are omitted.
pub(crate) fn setting_name(path: &str) -> String {
    let own = ["destination.", "retry."].iter().find_map(|room| path.strip_prefix(room));
    own.unwrap_or(path).to_owned()
}

/// Lists all settings of a subscription in display order, except the URL and `paused`.
#[must_use]
pub fn settings(subscription: &Subscription) -> Vec<Setting> {
    let mut all = Vec::new();
    DeliverySettings::from(subscription).show("", &mut all);
    // References that are not set are not shown.
    let is_shown = |shown: &Shown| match shown.path.as_str() {
        "destination.url" | "paused" => false,
        "destination.reference" | "deadLetter.reference" => !shown.value.is_null(),
        _ => true,
    };
    let settings = all.into_iter().filter(is_shown).map(|Shown { path, value, text }| Setting {
        field: setting_name(&path),
        value,
        text,
    });
    settings.chain([reply(subscription)]).collect()
}

/// Returns the setting for the recipient of replies. An address is shown without query and
/// credentials.
pub(crate) fn reply(subscription: &Subscription) -> Setting {
    let (value, text) = match &subscription.reply {
        None => (Value::Null, "none".to_owned()),
        Some(ReplyTo::Address(url)) => {
            let address = shown(url, subscription.destination.hide_path);
            (json!(address), address)
        }
        Some(ReplyTo::Topic(topic)) => (json!(topic.to_string()), format!("topic {topic}")),
    };
    Setting { field: "reply".to_owned(), value, text }
}

#[cfg(test)]
mod tests;
