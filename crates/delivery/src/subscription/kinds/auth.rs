//! Whether the `auth` of a destination can be shown to it.
//!
//! Separate because it depends on the other fields of the destination: its headers, and its address.

use crate::document::findings::{Message, quoted};
use crate::subscription::auth::Auth;

/// Why `auth` cannot be shown beside headers of these names, at this address; and the field that prevents it.
pub fn obstacle<'h>(
    auth: &Auth,
    mut headers: impl Iterator<Item = &'h str>,
    url: &str,
) -> Option<(&'static str, Message)> {
    if let Some(name) = headers.find(|name| auth.has_header(name)) {
        let name = quoted(&name.to_ascii_lowercase());
        let message = Message::new(format!("auth sends the header {name} too"));
        return Some(("headers", message.help("leave it to auth, or to headers")));
    }
    let is_in_clear = url.starts_with("http://");
    (matches!(auth, Auth::ClientCertificate(_)) && is_in_clear).then(|| {
        ("url", Message::new("a certificate is shown by https only").help("url: https://…"))
    })
}
