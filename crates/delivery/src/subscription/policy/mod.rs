//! The effective policy of a subscription as named settings, to show and to compare.
//!
//! Separate because `explain` and `diff` have to use the same names for the same fields. A setting
//! is the value in effect, whatever document or default it came from; the names are those of the
//! native dialect.
//!
//! Promises: it never contains values of headers, since they may be secrets; secrets are given by
//! name.
//!
//! Does not know where a value was written; the reader of documents does.

use serde_json::{Value, json};

use crate::document::record::{Record as _, Shown};
use crate::subscription::{DeliverySettings, ReplyTo, Subscription, shown};

/// One field of a policy and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its name.
    pub field: String,
    /// The value for tools.
    pub value: Value,
    /// The value for people.
    pub text: String,
}

/// The name of the setting at this path of fields: those of destinations and retries need no more than their own.
pub(crate) fn setting_name(path: &str) -> String {
    let own = ["destination.", "retry."].iter().find_map(|room| path.strip_prefix(room));
    own.unwrap_or(path).to_owned()
}

/// All settings of a subscription, in the order in which they are shown. The address is none of them, nor whether it is paused.
#[must_use]
pub fn settings(subscription: &Subscription) -> Vec<Setting> {
    let mut all = Vec::new();
    DeliverySettings::from(subscription).show("", &mut all);
    // A reference is shown where there is one.
    let is_shown = |of: &Shown| match of.path.as_str() {
        "destination.url" | "paused" => false,
        "destination.reference" | "deadLetter.reference" => !of.value.is_null(),
        _ => true,
    };
    let settings = all.into_iter().filter(is_shown).map(|Shown { path, value, text }| Setting {
        field: setting_name(&path),
        value,
        text,
    });
    settings.chain([reply(subscription)]).collect()
}

/// Where replies go; an address is shown without query and credentials.
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
