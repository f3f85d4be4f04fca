//! Addresses of destinations for display, without possible credentials.
//!
//! This module is separate so that logs, messages and blobs write an address in the same form.

use url::Url;

use crate::subscription::credentials::HIDDEN;

/// Returns the host of an address, with the port unless it is the scheme's default.
#[must_use]
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns an address without credentials and query, which may contain secrets. Logs, blobs and
/// messages use this form.
#[must_use]
pub fn display(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    without_credentials(&url)
}

/// Returns an address without credentials and query. `hide_path` hides the path too.
#[must_use]
pub fn shown(url: &Url, hide_path: bool) -> String {
    if !hide_path {
        return display(url);
    }
    let mut url = url.clone();
    url.set_path(HIDDEN);
    display(&url)
}

/// Returns an address without credentials. `hide_path` hides path and query too.
#[must_use]
pub fn addressed(url: &Url, hide_path: bool) -> String {
    if hide_path { shown(url, true) } else { without_credentials(url) }
}

/// Removes the user info and the query values; the names of query parameters stay.
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

/// Hides the value of a query parameter. A parameter without a value is hidden as a whole: it may
/// be a credential.
fn without_value(part: &str) -> String {
    match part.split_once('=') {
        Some((name, value)) if !value.is_empty() => format!("{name}={HIDDEN}"),
        Some(_) | None if part.is_empty() => String::new(),
        Some(_) | None => HIDDEN.to_owned(),
    }
}
