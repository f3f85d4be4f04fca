//! Checks that the `auth` of a destination can be used together with its other fields.
//!
//! This module is separate because the check depends on the destination's headers and URL.

use url::Url;

use crate::document::findings::{Message, quoted};
use crate::subscription::auth::Auth;

/// Returns the name of the field that prevents the use of this `auth`, with a message; `None` if no
/// field does.
pub fn obstacle<'h>(
    auth: &Auth,
    mut headers: impl Iterator<Item = &'h str>,
    url: &Url,
) -> Option<(&'static str, Message)> {
    if let Some(name) = headers.find(|name| auth.has_header(name)) {
        let name = quoted(&name.to_ascii_lowercase());
        let message = Message::new(format!("auth also sets the header {name}"));
        return Some(("headers", message.help("set the header only in auth or only in headers")));
    }
    if auth.signing_scope().is_some_and(|scope| scope.is_of_api(url)) {
        let message =
            Message::new("a URL of the Lambda API cannot be a destination: use destination.aws");
        return Some(("url", message.help("destination: {aws: {arn: …, action: Invoke}}")));
    }
    let is_in_clear = url.scheme() == "http";
    (matches!(auth, Auth::ClientCertificate(_)) && is_in_clear).then(|| {
        ("url", Message::new("a client certificate requires https").help("url: https://…"))
    })
}
