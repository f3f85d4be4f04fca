//! `destination.auth`: how a destination learns who is calling.
//!
//! Separate because each kind has fields of its own, and because what it sends may be a header that is listed
//! as well.

use super::super::findings::{Message, quoted};
use super::super::headers;
use super::super::reader::{Cursor, Fields};
use super::destination::secret;
use super::oauth2::{self, Client};
use crate::subscription::Destination;
use crate::subscription::auth::identity::{
    LIFETIME_DEFAULT_MS, LIFETIMES_MS, WebIdentity, check_audience, check_lifetime,
};
use crate::subscription::auth::sigv4::{SigningScope, SigningService, check_region};
use crate::subscription::auth::{Auth, check_user};
use crate::subscription::header::Header;
use crate::subscription::tls::CaBundle;

/// Where `auth` names secrets.
pub(super) const SECRETS_AT: [&str; 6] = [
    "basic.password",
    "bearer.token",
    "header.value",
    "oauth2.clientSecret",
    "clientCertificate.certificate",
    "clientCertificate.key",
];

/// What an entry of a `Destinations` document says of `auth`.
#[derive(Clone)]
pub(in crate::manifest) enum Supplied {
    /// All of it.
    Whole(Auth),
    /// A client whose token the file that names the destination may say more about.
    Client(Client),
}

/// Reads the fields of one kind.
type ReadKind = fn(&Fields<'_>) -> Option<Auth>;

const KINDS: [(&str, ReadKind); 7] = [
    ("basic", basic),
    ("bearer", bearer),
    ("header", header),
    ("oauth2", oauth2::read),
    ("clientCertificate", client_certificate),
    ("sigv4", sigv4),
    ("awsIdentity", aws_identity),
];

/// Reads `auth`, which is one kind, beside the headers of the same destination.
pub(super) fn read(fields: &Fields<'_>, headers: &[Header]) -> Option<Auth> {
    let at = fields.given("auth")?;
    let auth = at.mapping(one_kind).flatten()?;
    if let Some(message) = listed_too(&auth, headers) {
        // What a Topic states is silent here.
        let own = fields.own("auth").or_else(|| fields.own("headers")).unwrap_or(at);
        return own.refuse(message);
    }
    Some(auth)
}

/// Reads `auth` of an entry of a `Destinations` document.
pub(in crate::manifest) fn supplied(at: &Cursor<'_>) -> Option<Supplied> {
    let client = at.peek("oauth2").filter(|_| at.entries().is_some_and(|all| all.len() == 1));
    match client {
        Some(at) => at.mapping(oauth2::supplied).flatten().map(Supplied::Client),
        None => at.mapping(one_kind).flatten().map(Supplied::Whole),
    }
}

/// Why `auth` and the headers beside it cannot both be sent.
fn listed_too(auth: &Auth, headers: &[Header]) -> Option<Message> {
    let listed = headers.iter().find(|header| auth.has_header(&header.name))?;
    let name = quoted(&listed.name.to_ascii_lowercase());
    let message = Message::new(format!("the header {name} is listed in headers too"));
    Some(message.help("leave it to auth, or to headers"))
}

/// Whether the `auth` of a destination can be shown to it; otherwise that is reported at the cursor.
pub(in crate::manifest) fn can_be_shown(destination: &Destination, at: &Cursor<'_>) -> bool {
    let Some(auth) = &destination.auth else { return true };
    let problem = listed_too(auth, &destination.headers).or_else(|| in_clear(destination));
    problem.map(|message| at.error(message)).is_none()
}

fn one_kind(fields: &Fields<'_>) -> Option<Auth> {
    let known = || KINDS.map(|(name, _)| name).join(", ");
    // All of them, so that none counts as unknown.
    let given: Vec<(Cursor<'_>, ReadKind)> =
        KINDS.into_iter().filter_map(|(name, read)| Some((fields.own(name)?, read))).collect();
    match &given[..] {
        [(at, read)] => at.mapping(read)?,
        [] => fields.parent().refuse(Message::new("the kind is missing").help(known())),
        [..] => fields.parent().refuse(Message::new("auth has one kind").help(known())),
    }
}

fn basic(fields: &Fields<'_>) -> Option<Auth> {
    let user = fields.required("user").and_then(|at| user(&at));
    let password = fields.required("password").and_then(|at| secret(&at));
    Some(Auth::Basic { user: user?, password: password? })
}

fn user(at: &Cursor<'_>) -> Option<String> {
    let user = at.text()?;
    check_user(user).map_or_else(|problem| at.refuse(problem), |()| Some(user.to_owned()))
}

fn bearer(fields: &Fields<'_>) -> Option<Auth> {
    let token = fields.required("token").and_then(|at| secret(&at));
    Some(Auth::Bearer { token: token? })
}

fn client_certificate(fields: &Fields<'_>) -> Option<Auth> {
    let [certificate, key] =
        ["certificate", "key"].map(|name| fields.required(name).and_then(|at| secret(&at)));
    Some(Auth::ClientCertificate { certificate: certificate?, key: key? })
}

fn sigv4(fields: &Fields<'_>) -> Option<Auth> {
    let service = fields.required("service");
    let service = service.and_then(|at| at.word(&SigningService::ALL, SigningService::as_str));
    let region = fields.required("region").and_then(|at| {
        let region = at.text()?;
        check_region(region).map_or_else(|problem| at.refuse(problem), |()| Some(region.to_owned()))
    });
    Some(Auth::Sigv4(SigningScope { service: service?, region: region? }))
}

fn aws_identity(fields: &Fields<'_>) -> Option<Auth> {
    let audience = fields.required("audience").and_then(|at| {
        let text = at.text()?;
        check_audience(text).map_or_else(|problem| at.refuse(problem), |()| Some(text.to_owned()))
    });
    let lifetime_ms = fields.read("lifetime", |at| {
        let lifetime_ms = at.duration_ms(LIFETIMES_MS)?;
        let checked = check_lifetime(lifetime_ms);
        checked.map_or_else(|problem| at.refuse(problem), |()| Some(lifetime_ms))
    });
    let lifetime_ms = lifetime_ms.unwrap_or(LIFETIME_DEFAULT_MS);
    Some(Auth::AwsIdentity(WebIdentity { audience: audience?, lifetime_ms }))
}

/// Reads the fields of `tls`.
pub(in crate::manifest) fn tls(fields: &Fields<'_>) -> Option<CaBundle> {
    let at = fields.required("caBundle")?;
    CaBundle::new(at.text()?).map_or_else(|problem| at.refuse(problem), Some)
}

/// Why a certificate would not be shown: the address has no TLS.
fn in_clear(destination: &Destination) -> Option<Message> {
    let is_shown_by_tls = matches!(destination.auth, Some(Auth::ClientCertificate { .. }));
    let message = || Message::new("a certificate is shown by https only").help("url: https://…");
    (is_shown_by_tls && destination.url.scheme() == "http").then(message)
}

fn header(fields: &Fields<'_>) -> Option<Auth> {
    let name = fields.required("name").and_then(|at| headers::name(&at));
    let value = fields.required("value").and_then(|at| secret(&at));
    Some(Auth::Header { name: name?, value: value? })
}
