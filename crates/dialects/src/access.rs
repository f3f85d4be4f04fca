//! Authentication, trusted authorities and limits of a destination: a file of others asks for them, and an entry of a
//! `Destinations` document supplies them.
//!
//! Separate because neither has all of it: a cluster or a cloud has identities of its own, so its files name at most for
//! whom a token is, and the entry of the destination says who asks for it, and where.
//!
//! Promises: what a file asks for and nothing supplies is a warning, with the entry that would supply it.

use serde_json::Value as Json;
use url::Url;

use super::destination_entry::{Client, DestinationEntry, Supplied};
use delivery::document::findings::{Message, Needed, ReferenceUse};
use delivery::document::reader::Cursor;
use delivery::document::record::Record as _;
use delivery::subscription::Tls;
use delivery::subscription::auth::Auth;
use delivery::subscription::auth::oauth2::{ClientCredentials, Style};
use delivery::subscription::tls::CaBundle;

/// What a request to a sink lacks.
pub(super) const SINK_ACCESS: &str = "dead letters are sent without a token and without limits, and only to certificates that everybody trusts";
/// What a request to an address of replies lacks.
pub(super) const REPLY_ACCESS: &str = "replies are sent without a token and without limits, and only to certificates that everybody trusts";

/// What an entry says besides an address, and where.
#[derive(Clone, Default)]
pub(super) struct Access<'a> {
    auth: Option<(Supplied, Cursor<'a>)>,
    /// The authorities of its certificate.
    pub(super) tls: Option<(Tls, Cursor<'a>)>,
    /// Limits of the destination: the field, its value and where that is written.
    pub(super) limits: Vec<(&'static str, Json, Cursor<'a>)>,
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
    /// The position of the request.
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

    /// The names of its fields.
    pub(super) fn fields(&self) -> Vec<&'static str> {
        let auth = self.auth.is_some().then_some("auth");
        let tls = self.tls.is_some().then_some("tls");
        let limits = self.limits.iter().map(|(name, ..)| *name);
        auth.into_iter().chain(tls).chain(limits).collect()
    }

    /// Whether it says who is calling.
    pub(super) fn has_auth(&self) -> bool {
        self.auth.is_some()
    }

    /// How the destination of an entry learns who is calling; the error is what the entry lacks, and the file too.
    pub(super) fn auth_for(
        &self,
        asked: &Asked<'_>,
    ) -> Option<Result<(Auth, &Cursor<'a>), Message>> {
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
    pub(super) fn warn_missing(&self, key: &str, is_mapped: bool) {
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
