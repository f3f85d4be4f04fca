//! [`RenderedCredentials`]: the credentials in a request that templates rendered from an event.
//!
//! This module is separate because the response may repeat these values, and the request is dropped
//! before the response arrives.

use url::Url;

use super::Request;
use crate::subscription::Destination;
use crate::subscription::credentials::{Credentials, is_credential, is_credential_parameter};
use crate::subscription::header::Value;

/// The credentials in a request that templates rendered. The type has no `Debug`, because the
/// values are secrets.
#[derive(Clone, Default)]
pub struct RenderedCredentials {
    headers: Vec<String>,
    url: Option<Url>,
    is_path_hidden: bool,
}

impl RenderedCredentials {
    /// Collects rendered credentials of a request: headers and query parameters whose names mark
    /// them as credentials, and a path that is hidden.
    #[must_use]
    pub fn collect(destination: &Destination, request: &Request) -> Self {
        let rendered = destination.headers.iter().filter(|header| {
            matches!(header.value, Value::Template(_)) && is_credential(&header.name)
        });
        let sent = rendered.flat_map(|header| {
            let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(&header.name);
            request.headers.iter().filter(named).map(|(_, value)| value.clone())
        });
        let is_path_hidden = destination.hide_path && destination.url.path.is_some();
        let has_url = is_path_hidden
            || destination.query.iter().any(|parameter| is_credential_parameter(&parameter.name));
        let url = has_url.then(|| request.url.clone());
        Self { headers: sent.collect(), url, is_path_hidden }
    }

    /// Adds the rendered credentials to those that are hidden in the response.
    pub(crate) fn add_to(&self, credentials: &mut Credentials) {
        self.headers.iter().for_each(|value| credentials.add_header_of_event(value));
        self.url.iter().for_each(|url| credentials.add_url_of_event(url, self.is_path_hidden));
    }
}
