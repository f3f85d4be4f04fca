//! How the address of a destination is shown: without what may be a credential.
//!
//! Separate because whoever names an address in a log, a message or a blob has to write it in the same way.

use url::Url;

use crate::subscription::credentials::HIDDEN;

/// Host and port of an address; without the port where it is that of the scheme.
#[must_use]
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// An address without credentials and without the query, which may hold secrets: for logs, blobs
/// and messages.
#[must_use]
pub fn display(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    without_credentials(&url)
}

/// An address without credentials and query, and without its path where that is one.
#[must_use]
pub fn shown(url: &Url, hide_path: bool) -> String {
    if !hide_path {
        return display(url);
    }
    let mut url = url.clone();
    url.set_path(HIDDEN);
    display(&url)
}

/// An address without credentials; without path and query where the path is one.
#[must_use]
pub fn addressed(url: &Url, hide_path: bool) -> String {
    if hide_path { shown(url, true) } else { without_credentials(url) }
}

/// An address without credentials: no user info, and of the query the names only.
fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    // Neither call can fail: a destination is http or https and has a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    if let Some(query) = url.query() {
        let hidden: Vec<String> = query.split('&').map(without_value).collect();
        url.set_query(Some(&hidden.join("&")));
    }
    url.into()
}

/// A parameter of a query; a name without a value may be one.
fn without_value(part: &str) -> String {
    match part.split_once('=') {
        Some((name, value)) if !value.is_empty() => format!("{name}={HIDDEN}"),
        Some(_) | None if part.is_empty() => String::new(),
        Some(_) | None => HIDDEN.to_owned(),
    }
}
