//! Whether the `auth` of a destination can be shown to it.
//!
//! Separate because it depends on the other fields of the destination: its headers, and its address.

use crate::document::findings::{Message, quoted};
use crate::document::reader::{Cursor, Fields};
use crate::subscription::Destination;
use crate::subscription::auth::Auth;

/// Checks the `auth` that a document states; the address may have more, which is checked with it.
pub(crate) fn check(destination: &Destination, fields: &Fields<'_>) -> Option<()> {
    let Some(message) = listed_too(destination) else { return Some(()) };
    // The values of a Topic report nothing here.
    let own = fields.own("auth").or_else(|| fields.own("headers"));
    own.unwrap_or_else(|| fields.parent().clone()).refuse(message)
}

/// Returns true if the `auth` of a destination can be shown to it; otherwise that is reported at the cursor.
pub(crate) fn can_be_shown(destination: &Destination, at: &Cursor<'_>) -> bool {
    let problem = listed_too(destination).or_else(|| in_clear(destination));
    problem.map(|message| at.error(message)).is_none()
}

/// Why `auth` and the headers beside it cannot both be sent.
fn listed_too(destination: &Destination) -> Option<Message> {
    let auth = destination.auth.as_ref()?;
    let listed = destination.headers.iter().find(|header| auth.has_header(&header.name))?;
    let name = quoted(&listed.name.to_ascii_lowercase());
    let message = Message::new(format!("the header {name} is listed in headers too"));
    Some(message.help("leave it to auth, or to headers"))
}

/// Why a certificate would not be shown: the address has no TLS.
fn in_clear(destination: &Destination) -> Option<Message> {
    let is_shown_by_tls = matches!(destination.auth, Some(Auth::ClientCertificate(_)));
    let message = || Message::new("a certificate is shown by https only").help("url: https://…");
    (is_shown_by_tls && destination.url.scheme() == "http").then(message)
}
