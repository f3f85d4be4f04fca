//! Completes a native document with values from the `Destinations` entry of its destination.
//!
//! Separate because this step needs the entries as well as the values that a file requests.

use delivery::document::kind::Alternatives as _;
use delivery::document::node::Node;
use delivery::document::reader::Cursor;
use delivery::document::record::Record as _;
use delivery::subscription::Tls;
use delivery::subscription::auth::Auth;
use delivery::subscription::topic_address::topic_of;
use serde_json::{Value as Json, json};
use url::Url;

use super::access::{Access, Asked};
use super::destinations::Destinations;

impl Destinations<'_> {
    /// Adds two kinds of values to the `destination` of a native document: those of the entry, and
    /// those that the file requests. Values of the document take precedence. `key` is the key of
    /// the entry, and the cursor is at the address. Returns `None` and reports an error at the
    /// cursor if the values are unusable.
    pub(super) fn complete(
        &self,
        document: &mut Node,
        asked: &Asked<'_>,
        (key, at): (&str, &Cursor<'_>),
    ) -> Option<()> {
        let address = document.get(URL).and_then(Node::text).map(str::to_owned);
        if let Some(key) = address.and_then(|address| self.reference(key, &address)) {
            document.set(&format!("{DESTINATION}.reference"), at.translation(&json!(key)));
        }
        let states = |document: &Node, field: &str| {
            document.get(&format!("{DESTINATION}.{field}")).is_some_and(|value| !value.is_null())
        };
        if document.get(URL).and_then(Node::text).is_some_and(is_topic) {
            let why = "the destination is a topic, so no request is sent";
            asked.warn_unused(why);
            self.warn_unused_access(key, at, why);
            return Some(());
        }
        let supplied = self.access(key);
        if !states(document, "auth") {
            match supplied.and_then(|access| access.auth_for(asked)) {
                Some(Ok((auth, of_entry))) => {
                    document.set(&format!("{DESTINATION}.auth"), with_positions(&auth, of_entry));
                }
                Some(Err(message)) => return at.refuse(message),
                None => self.warn_missing_token(asked, key),
            }
        }
        let of_entry = supplied.and_then(|access| access.tls.clone());
        let of_file = || asked.ca_bundle.clone().map(|(ca_bundle, at)| (Tls { ca_bundle }, at));
        if let Some((tls, at)) = of_entry.or_else(of_file).filter(|_| !states(document, "tls")) {
            let tls = Json::Object(tls.write());
            document.set(&format!("{DESTINATION}.tls"), at.translation(&tls));
        }
        for (field, value, at) in supplied.into_iter().flat_map(|access| &access.limits) {
            if !states(document, field) {
                document.set(&format!("{DESTINATION}.{field}"), at.translation(value));
            }
        }
        Some(())
    }

    /// Adds a warning if the file requests a token that the entry does not supply.
    pub(super) fn warn_missing_token(&self, asked: &Asked<'_>, key: &str) {
        let is_supplied = self.access(key).is_some_and(Access::has_auth);
        if let Some(token) = asked.token.as_ref().filter(|_| !is_supplied) {
            token.warn_missing(key, self.maps(key));
        }
    }

    /// Adds a warning that lists all fields of an entry except its address, because these fields
    /// are not used here. Does nothing if there are none. `why` states the reason.
    pub(super) fn warn_unused_access(&self, key: &str, at: &Cursor<'_>, why: &str) {
        let unused = self.access(key).map(Access::fields).unwrap_or_default();
        if !unused.is_empty() {
            let verb = if unused.len() == 1 { "is" } else { "are" };
            let unused = unused.join(", ");
            at.warn(format!("{unused} of its Destinations entry {verb} not used: {why}"));
        }
    }
}

/// Returns the `auth` of an entry with its positions. Values from the file get the position of the
/// entry.
fn with_positions(auth: &Auth, of_entry: &Cursor<'_>) -> Node {
    let mut copy = of_entry.copied();
    let (kind, fields) = auth.write();
    for (name, value) in &fields {
        let path = format!("{kind}.{name}");
        if copy.get(&path).is_none() {
            copy.set(&path, of_entry.translation(value));
        }
    }
    copy
}

/// Path of the section that an entry of a `Destinations` document completes.
const DESTINATION: &str = "spec.destination";
/// Path of the destination's address.
const URL: &str = "spec.destination.url";

/// True if the URL is the address of a topic, not of an endpoint.
fn is_topic(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| topic_of(&url).is_some())
}
