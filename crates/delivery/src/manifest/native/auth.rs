//! `destination.auth`: how a destination learns who is calling.
//!
//! Separate because each kind has fields of its own, and because what it sends may be a header that is listed
//! as well.

use super::super::findings::{Message, quoted};
use super::super::headers;
use super::super::reader::{Cursor, Fields};
use super::destination::secret;
use super::oauth2;
use crate::subscription::Destination;
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

/// Reads the fields of one kind.
type ReadKind = fn(&Fields<'_>) -> Option<Auth>;

const KINDS: [(&str, ReadKind); 5] = [
    ("basic", basic),
    ("bearer", bearer),
    ("header", header),
    ("oauth2", oauth2::read),
    ("clientCertificate", client_certificate),
];

/// Reads `auth`, which is one kind, beside the headers of the same destination.
pub(super) fn read(fields: &Fields<'_>, headers: &[Header]) -> Option<Auth> {
    let at = fields.given("auth")?;
    let auth = at.mapping(one_kind).flatten()?;
    let name = auth.header_name().unwrap_or_default();
    if headers.iter().any(|header| header.name.eq_ignore_ascii_case(name)) {
        let message = format!("the header {} is listed in headers too", quoted(name));
        // What a Topic states is silent here.
        let own = fields.own("auth").or_else(|| fields.own("headers")).unwrap_or(at);
        return own.refuse(Message::new(message).help("leave it to auth, or to headers"));
    }
    Some(auth)
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

/// Reads the fields of `tls`.
pub(super) fn tls(fields: &Fields<'_>) -> Option<CaBundle> {
    let at = fields.required("caBundle")?;
    CaBundle::new(at.text()?).map_or_else(|problem| at.refuse(problem), Some)
}

/// Reports a certificate that would not be shown, since the address has no TLS.
pub(super) fn report_in_clear(at: Option<&Cursor<'_>>, destination: &Destination) {
    let is_shown_by_tls = matches!(destination.auth, Some(Auth::ClientCertificate { .. }));
    if let Some(at) = at.filter(|_| is_shown_by_tls && destination.url.scheme() == "http") {
        at.error(Message::new("a certificate is shown by https only").help("url: https://…"));
    }
}

fn header(fields: &Fields<'_>) -> Option<Auth> {
    let name = fields.required("name").and_then(|at| headers::name(&at));
    let value = fields.required("value").and_then(|at| secret(&at));
    Some(Auth::Header { name: name?, value: value? })
}
