//! `destination`: where requests go and what every one of them carries.
//!
//! Separate because it reads differently in a Topic, which has no address, and in a Subscription, which needs one.

use url::Url;

use crate::profile::RESPONSE_TIMEOUT_MAX_MS;

use super::super::destinations::{Destinations, Resolved, Target};
use super::super::findings::Message;
use super::super::headers;
use super::super::reader::{Cursor, Fields};
use super::settings::Scope;

/// What a document says about the destination.
#[derive(Clone, Default)]
pub(super) struct DestinationSettings {
    /// Where requests go.
    pub(super) url: Option<Url>,
    /// How long to wait for an answer.
    pub(super) timeout_ms: Option<u64>,
    /// Headers of every request.
    pub(super) headers: Option<Vec<(String, String)>>,
}

impl DestinationSettings {
    /// Reads the fields of `destination`.
    pub(super) fn read(fields: &Fields<'_>, scope: Scope, destinations: &Destinations<'_>) -> Self {
        if let Some(schema) = fields.get("schema") {
            schema.choice(
                "schema",
                &[
                    ("cloudevents-structured", Some(())),
                    ("cloudevents-binary", None),
                    ("eventgrid", None),
                    ("custom", None),
                ],
            );
        }
        for field in ["lateResponseWindow", "maxConcurrency", "signing"] {
            fields.unsupported(field);
        }
        Self {
            url: match scope {
                Scope::Topic => no_url(fields),
                Scope::Subscription => fields.required("url").and_then(|cursor| url(&cursor, destinations)),
            },
            timeout_ms: fields.get("timeout").and_then(|timeout| timeout.duration_ms(1..=RESPONSE_TIMEOUT_MAX_MS)),
            headers: fields.get("headers").and_then(|cursor| headers::list(&cursor, header)),
        }
    }

    /// These, and the other's where these say nothing.
    pub(super) fn over(self, base: &Self) -> Self {
        Self {
            url: self.url.or_else(|| base.url.clone()),
            timeout_ms: self.timeout_ms.or(base.timeout_ms),
            headers: self.headers.or_else(|| base.headers.clone()),
        }
    }
}

fn no_url(fields: &Fields<'_>) -> Option<Url> {
    if let Some(key) = fields.key("url") {
        key.error(Message::new("a topic has no url").help("it stands in each Subscription"));
    }
    None
}

fn url(cursor: &Cursor<'_>, destinations: &Destinations<'_>) -> Option<Url> {
    match destinations.resolve(cursor.text()?, cursor) {
        Resolved::Target(Target::Endpoint(url)) => Some(url),
        Resolved::Reported => None,
        Resolved::Target(Target::Container(_)) => {
            cursor.error(Message::new("a container is no destination for events").help("http://… or https://…"));
            None
        }
        Resolved::Unknown => {
            let message = Message::new("neither an address nor a key of a Destinations document");
            cursor.error(message.help("http://… or https://…"));
            None
        }
    }
}

fn header(fields: &Fields<'_>) -> Option<(String, String)> {
    let name = fields.required("name").and_then(|cursor| headers::name(&cursor));
    let dynamic = [fields.key("path"), fields.key("secret")];
    for key in dynamic.iter().flatten() {
        key.error("a header with a path or a secret is not supported by this version");
    }
    let is_static = dynamic.iter().all(Option::is_none) || fields.get("value").is_some();
    let value = if is_static { fields.required("value").and_then(|cursor| headers::value(&cursor)) } else { None };
    Some((name?, value?))
}
