//! Formats URLs of destinations for display. Omits or hides parts that may contain credentials.
//!
//! This module is separate so that logs, messages and blobs write a URL in the same form.

use url::Url;

use crate::subscription::credentials::HIDDEN;

/// Returns the host of a URL, with the port unless it is the default of the scheme.
#[must_use]
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns a URL without credentials, query and fragment, because they may contain secrets. Logs,
/// blobs and messages use this form.
#[must_use]
pub fn display(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    without_credentials(&url)
}

/// Returns a URL without credentials and query. If `hide_path` is true, the path is hidden too.
#[must_use]
pub fn shown(url: &Url, hide_path: bool) -> String {
    if !hide_path {
        return display(url);
    }
    let mut url = url.clone();
    url.set_path(HIDDEN);
    display(&url)
}

/// Returns a URL without user info, and hides the values of its query parameters. If `hide_path` is
/// true, the path is hidden too, and the query and the fragment are omitted.
#[must_use]
pub fn addressed(url: &Url, hide_path: bool) -> String {
    if hide_path { shown(url, true) } else { without_credentials(url) }
}

/// Removes the user info, and hides the values of query parameters. The names of parameters with a
/// value remain.
fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    // Both calls fail only for a URL without a host, such as `topic:…`, which has no credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    if let Some(query) = url.query() {
        let hidden: Vec<String> = query.split('&').map(without_value).collect();
        url.set_query(Some(&hidden.join("&")));
    }
    url.into()
}

/// Hides the value of a query parameter. A parameter without a value is hidden as a whole, because
/// it may be a credential.
fn without_value(part: &str) -> String {
    match part.split_once('=') {
        Some((name, value)) if !value.is_empty() => format!("{name}={HIDDEN}"),
        Some(_) | None if part.is_empty() => String::new(),
        Some(_) | None => HIDDEN.to_owned(),
    }
}
