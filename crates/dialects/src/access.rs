//! Combines the access settings that a foreign file requests for a destination with those that an
//! entry of a `Destinations` document supplies. Access settings are authentication and certificate
//! authorities. Only an entry may also supply limits.
//!
//! Separate because neither the file nor the entry contains all of the values. A cluster or a cloud
//! has its own identities, so its files name at most the audience of a token. The entry contains
//! the token server, and the client that requests the token. If no entry supplies a token that the
//! file requests, a warning shows the missing entry.

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

/// Reason in the warning that access settings of a dead-letter sink have no effect.
pub(super) const SINK_ACCESS: &str =
    "dead letters are sent without tokens, limits and additional certificate authorities";
/// Reason in the warning that access settings of a reply address have no effect.
pub(super) const REPLY_ACCESS: &str =
    "replies are sent without tokens, limits and additional certificate authorities";

/// The fields of an entry in a `Destinations` document, except its address, with their positions.
#[derive(Clone, Default)]
pub(super) struct Access<'a> {
    auth: Option<(Supplied, Cursor<'a>)>,
    /// Certificate authorities that the entry adds.
    pub(super) tls: Option<(Tls, Cursor<'a>)>,
    /// Limits of the destination: field name, value and position of each.
    pub(super) limits: Vec<(&'static str, Json, Cursor<'a>)>,
}

/// The values that a file requests or states for one destination, in addition to its address.
#[derive(Clone, Default)]
pub(super) struct Asked<'a> {
    /// The token that requests need; `None` if the file requests no token.
    pub(super) token: Option<AskedToken<'a>>,
    /// Certificate authorities that the destination's certificate needs, with their position.
    pub(super) ca_bundle: Option<(CaBundle, Cursor<'a>)>,
}

/// A token that a foreign file requests. A `Destinations` entry supplies the values that the file
/// does not state.
#[derive(Clone)]
pub(super) struct AskedToken<'a> {
    /// Position at which the file requests the token.
    pub(super) at: Cursor<'a>,
    /// Address of the token server.
    pub(super) token_url: Option<Url>,
    /// The audience or scope that the token must have.
    pub(super) wanted: Wanted,
    /// The form in which the client sends its secret to the token server.
    pub(super) style: Style,
}

/// The audience or scope that a token must have.
#[derive(Clone)]
pub(super) enum Wanted {
    Audience(String),
    /// The scope; `None` if the file does not state it.
    Scope(Option<String>),
}

impl<'a> Access<'a> {
    /// Keeps all fields of an entry except its address. `at` is the position of the entry.
    pub(super) fn new(entry: DestinationEntry, at: &Cursor<'a>) -> Self {
        let written = entry.write();
        let limit = |name: &'static str| Some((name, written.get(name)?.clone(), at.peek(name)?));
        let limits = ["maxPerSecond", "maxConcurrency"].into_iter().filter_map(limit).collect();
        Self { limits, auth: entry.auth.zip(at.peek("auth")), tls: entry.tls.zip(at.peek("tls")) }
    }

    /// Returns the names of the fields that the entry has.
    pub(super) fn fields(&self) -> Vec<&'static str> {
        let auth = self.auth.is_some().then_some("auth");
        let tls = self.tls.is_some().then_some("tls");
        let limits = self.limits.iter().map(|(name, ..)| *name);
        auth.into_iter().chain(tls).chain(limits).collect()
    }

    /// True if the entry supplies authentication.
    pub(super) fn has_auth(&self) -> bool {
        self.auth.is_some()
    }

    /// Returns the authentication that the entry supplies, completed with the values of the file;
    /// `None` if the entry has no authentication. The error names a value that both the entry and
    /// the file lack.
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
                        "{} of oauth2 is missing, both in the Destinations document at {entry} and \
                         in this file",
                        needed.as_str()
                    ))
                    .help(format!("{entry}: oauth2: {{{}, …}}", needed.example())))
                }
            },
        })
    }
}

impl Asked<'_> {
    /// Adds the warning `no effect` at the position of each requested value. `why` states the
    /// reason.
    pub(super) fn warn_unused(&self, why: &str) {
        let token = self.token.as_ref().map(|token| &token.at);
        let bundle = self.ca_bundle.as_ref().map(|(_, at)| at);
        token.into_iter().chain(bundle).for_each(|at| at.warn(format!("no effect: {why}")));
    }
}

impl AskedToken<'_> {
    /// Adds a warning that requests contain no token. The warning lists the values that an entry
    /// has to supply. `is_mapped` is true if the key already has an entry.
    pub(super) fn warn_missing(&self, key: &str, is_mapped: bool) {
        let mut needed = Vec::new();
        needed.extend(self.token_url.is_none().then_some(Needed::TokenUrl));
        needed.extend([Needed::ClientId, Needed::ClientSecret]);
        needed.extend(matches!(self.wanted, Wanted::Scope(None)).then_some(Needed::Scope));
        let names: Vec<&str> = needed.iter().map(|need| need.as_str()).collect();
        let message = Message::new(format!(
            "requests contain no token, because the settings of the OAuth client are missing: {}",
            names.join(", ")
        ));
        let examples: Vec<&str> = needed.iter().map(|need| need.example()).collect();
        let is_secret = may_hold_secret(key);
        // Show the whole key, however long it is, so that people can copy it.
        let shown = if is_secret { "the address".to_owned() } else { format!("\"{key}\"") };
        let message = message.help(format!(
            "add to the spec of a Destinations document: {{{shown}: {{url: \"https://…\", auth: \
             {{oauth2: {{{}}}}}}}}}",
            examples.join(", ")
        ));
        // A person has to complete an existing entry, because each key may have only one entry.
        let is_written = is_mapped || is_secret;
        let about = |message: Message| message.about(key, ReferenceUse::Token).needs(needed);
        self.at.warn(if is_written { message } else { about(message) });
    }
}

/// True if a key is an address with a query or credentials, which no message may show.
fn may_hold_secret(key: &str) -> bool {
    let has_more =
        |url: Url| url.query().is_some() || !url.username().is_empty() || url.password().is_some();
    Url::parse(key).is_ok_and(has_more)
}

/// Returns the client of an entry, completed with the values of the file. The error names a
/// required value that both the entry and the file lack.
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
