//! How a destination learns who is calling, and whose certificates it may have: what a file of others asks for, and what
//! an entry of a `Destinations` document supplies.
//!
//! Separate because neither has all of it: a cluster or a cloud has identities of its own, so its files name at most for
//! whom a token is, and the entry of the destination says who asks for it, and where.
//!
//! Promises: what a file asks for and nothing supplies is a warning, with the entry that would supply it.

use serde_json::Value as Json;
use url::Url;

use super::destination_entry::{Client, DestinationEntry, Supplied};
use super::destinations::Destinations;
use delivery::document::findings::{Message, Needed, ReferenceUse};
use delivery::document::kind::{Kind as _, OneOf};
use delivery::document::node::Node;
use delivery::document::reader::Cursor;
use delivery::document::record::Record as _;
use delivery::subscription::Tls;
use delivery::subscription::auth::Auth;
use delivery::subscription::auth::oauth2::{ClientCredentials, Style};
use delivery::subscription::kinds::auth::obstacle;
use delivery::subscription::tls::CaBundle;
use delivery::subscription::topic_address::topic_of;

/// What a request to a sink lacks.
pub(super) const SINK_ACCESS: &str =
    "dead letters are sent without a token, and only to certificates that everybody trusts";

/// What an entry says besides an address, and where.
#[derive(Clone, Default)]
pub(super) struct Access<'a> {
    auth: Option<(Supplied, Cursor<'a>)>,
    tls: Option<(Tls, Cursor<'a>)>,
    /// Limits of the destination: the field, its value and where that is written.
    limits: Vec<(&'static str, Json, Cursor<'a>)>,
}

/// What a file says itself about a destination.
#[derive(Clone, Default)]
pub(super) struct Asked<'a> {
    /// It asks for a token.
    pub(super) token: Option<AskedToken<'a>>,
    /// It trusts these authorities.
    pub(super) ca_bundle: Option<(CaBundle, Cursor<'a>)>,
}

/// A token that a file of others asks for, as far as it says which.
#[derive(Clone)]
pub(super) struct AskedToken<'a> {
    /// Where it asks.
    pub(super) at: Cursor<'a>,
    /// Where a token is fetched.
    pub(super) token_url: Option<Url>,
    /// For what or for whom it is.
    pub(super) wanted: Wanted,
    /// How its server is shown the secret.
    pub(super) style: Style,
}

/// For what or for whom a token is.
#[derive(Clone)]
pub(super) enum Wanted {
    /// The audience.
    Audience(String),
    /// The scope, where it is known.
    Scope(Option<String>),
}

impl<'a> Access<'a> {
    /// What an entry says besides its address; `at` is the entry.
    pub(super) fn of(entry: DestinationEntry, at: &Cursor<'a>) -> Self {
        let written = entry.write();
        let limit = |name: &'static str| Some((name, written.get(name)?.clone(), at.peek(name)?));
        let limits = ["maxPerSecond", "maxConcurrency"].into_iter().filter_map(limit).collect();
        Self { limits, auth: entry.auth.zip(at.peek("auth")), tls: entry.tls.zip(at.peek("tls")) }
    }

    /// Whether it says who is calling.
    pub(super) fn has_auth(&self) -> bool {
        self.auth.is_some()
    }

    /// How the destination of an entry learns who is calling; the error is what the entry lacks, and the file too.
    fn auth_for(&self, asked: &Asked<'_>) -> Option<Result<(Auth, &Cursor<'a>), Message>> {
        let (supplied, at) = self.auth.as_ref()?;
        Some(match supplied {
            Supplied::Whole(auth) => Ok((auth.clone(), at)),
            Supplied::Client(client) => match completed(client, asked.token.as_ref()) {
                Ok(client) => Ok((Auth::OAuth2(Box::new(client)), at)),
                Err(needed) => {
                    let entry = at.location();
                    Err(Message::new(format!(
                        "neither this file nor the Destinations document at {entry} has the {} of its oauth2",
                        needed.as_str()
                    ))
                    .help(format!("{entry}: oauth2: {{{}, …}}", needed.example())))
                }
            },
        })
    }
}

impl Destinations<'_> {
    /// Adds to the `destination` of a native document what its entry supplies and its file asks for. What the document
    /// states itself stays. `None` where that cannot be used, which is reported at the cursor, where the address is
    /// written; `key` is that of the entry.
    pub(super) fn complete(
        &self,
        document: &mut Node,
        asked: &Asked<'_>,
        (key, at): (&str, &Cursor<'_>),
    ) -> Option<()> {
        let states = |document: &Node, field: &str| {
            document.get(&format!("{DESTINATION}.{field}")).is_some_and(|of| !of.is_null())
        };
        if document.get(URL).and_then(Node::text).is_some_and(is_topic) {
            asked.warn_unused("the destination is a topic, which is not called");
            return Some(());
        }
        let supplied = self.access(key);
        if !states(document, "auth") {
            match supplied.and_then(|access| access.auth_for(asked)) {
                Some(Ok((auth, of_entry))) => {
                    let [headers, url] = [HEADERS, URL].map(|path| document.get(path));
                    let url = url.and_then(Node::text).unwrap_or_default();
                    if let Some(message) = obstacle(&auth, header_names(headers), url) {
                        return at.refuse(message);
                    }
                    let auth = OneOf::<Auth>::new().write(&auth);
                    document.set(&format!("{DESTINATION}.auth"), of_entry.translation(&auth));
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

    /// Warns of a token that is asked for and that nothing supplies.
    pub(super) fn warn_missing_token(&self, asked: &Asked<'_>, key: &str) {
        let is_supplied = self.access(key).is_some_and(Access::has_auth);
        if let Some(token) = asked.token.as_ref().filter(|_| !is_supplied) {
            token.warn_missing(key, self.maps(key));
        }
    }

    /// Warns of what the entry of an address has that gets no events, besides that address; and why that is not used.
    pub(super) fn warn_unused_access(&self, key: &str, at: &Cursor<'_>, why: &str) {
        let has_more = |of: &Access<'_>| of.auth.is_some() || of.tls.is_some();
        if self.access(key).is_some_and(has_more) {
            at.warn(format!("auth and tls of its Destinations entry are not used: {why}"));
        }
    }
}

/// The field that an entry completes.
const DESTINATION: &str = "spec.destination";
/// Its address.
const URL: &str = "spec.destination.url";
/// Its headers.
const HEADERS: &str = "spec.destination.headers";

/// Whether an address is a topic.
fn is_topic(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| topic_of(&url).is_some())
}

/// The names of the headers in a list.
fn header_names(headers: Option<&Node>) -> impl Iterator<Item = &str> {
    let headers = headers.into_iter().flat_map(Node::elements);
    headers.filter_map(|header| header.get("name").and_then(Node::text))
}

impl Asked<'_> {
    /// Warns of everything that is asked for, since none of it is used, for this reason.
    pub(super) fn warn_unused(&self, why: &str) {
        let token = self.token.as_ref().map(|token| &token.at);
        let bundle = self.ca_bundle.as_ref().map(|(_, at)| at);
        token.into_iter().chain(bundle).for_each(|at| at.warn(format!("not used: {why}")));
    }
}

impl AskedToken<'_> {
    /// Warns that requests carry no token, and says what an entry has to supply.
    fn warn_missing(&self, key: &str, is_mapped: bool) {
        let mut needed = Vec::new();
        needed.extend(self.token_url.is_none().then_some(Needed::TokenUrl));
        needed.extend([Needed::ClientId, Needed::ClientSecret]);
        needed.extend(matches!(self.wanted, Wanted::Scope(None)).then_some(Needed::Scope));
        let names: Vec<&str> = needed.iter().map(|of| of.as_str()).collect();
        let message = Message::new(format!(
            "requests show no token, because nothing says {} of the client that asks for one",
            names.join(", ")
        ));
        let examples: Vec<&str> = needed.iter().map(|of| of.example()).collect();
        let is_secret = may_hold_secret(key);
        // The whole key, however long, so that it can be copied.
        let shown = if is_secret { "its address".to_owned() } else { format!("\"{key}\"") };
        let message = message.help(format!(
            "spec of a Destinations document: {{{shown}: {{url: \"https://…\", auth: {{oauth2: {{{}}}}}}}}}",
            examples.join(", ")
        ));
        // An entry that is there is completed by hand: a key is written once.
        let is_written = is_mapped || is_secret;
        let about = |message: Message| message.about(key, ReferenceUse::Token).needs(needed);
        self.at.warn(if is_written { message } else { about(message) });
    }
}

/// Whether a key is an address with more than host and path, which is shown nowhere.
fn may_hold_secret(key: &str) -> bool {
    let has_more =
        |url: Url| url.query().is_some() || !url.username().is_empty() || url.password().is_some();
    Url::parse(key).is_ok_and(has_more)
}

/// The client with what the file says of its token, or what neither has.
fn completed(client: &Client, asked: Option<&AskedToken<'_>>) -> Result<ClientCredentials, Needed> {
    let Client { credentials: client, has_token_url, has_style } = client.clone();
    let names_whom = client.audience.is_some() || client.resource.is_some();
    let (audience, scope) = match asked.map(|asked| &asked.wanted) {
        Some(Wanted::Audience(audience)) if !names_whom => (Some(audience.clone()), None),
        Some(Wanted::Scope(scope)) => {
            let scope = client.scope.clone().or_else(|| scope.clone());
            (None, Some(scope.ok_or(Needed::Scope)?))
        }
        Some(Wanted::Audience(_)) | None => (None, None),
    };
    let own = has_token_url.then(|| client.token_url.clone());
    let token_url = own.or_else(|| asked?.token_url.clone());
    Ok(ClientCredentials {
        token_url: token_url.ok_or(Needed::TokenUrl)?,
        scope: client.scope.or(scope),
        audience: client.audience.or(audience),
        style: asked.filter(|_| !has_style).map_or(client.style, |asked| asked.style),
        ..client
    })
}

#[cfg(test)]
mod tests;
