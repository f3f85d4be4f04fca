//! [`ClientCredentials`]: a token of OAuth 2.0 that is fetched with the credentials of a client.
//!
//! Separate because it is the one kind whose secret goes to another server than the destination. What is asked of that
//! server, and what its answer means, is `request::token`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;
use url::form_urlencoded::byte_serialize;

use crate::subscription::header::check_value;
use crate::subscription::secret::SecretName;

/// The fields of the form that are stated by name, and so cannot be among its further parameters.
pub const NAMED_PARAMETERS: [&str; 6] =
    ["grant_type", "client_id", "client_secret", "scope", "audience", "resource"];
/// The most further parameters of a form.
pub const PARAMETERS_MAX: usize = 10;

words! {
    /// Where a client shows its secret (RFC 6749, 2.3.1).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Style {
        /// In the header `authorization`.
        Basic = "basic",
        /// In the form.
        Post = "post",
    }
}

/// Where a token is fetched, and for what (RFC 6749, 4.4).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientCredentials {
    /// The address of the token server.
    pub token_url: Url,
    /// Who is calling.
    pub client_id: String,
    /// Proves it.
    pub client_secret: SecretName,
    /// What the token is for (RFC 6749, 3.3).
    pub scope: Option<String>,
    /// For whom it is, as Auth0 and others call it.
    pub audience: Option<String>,
    /// The same as an address (RFC 8707).
    pub resource: Option<String>,
    /// Where the secret is shown.
    pub style: Style,
    /// Further fields of the form.
    pub parameters: Vec<(String, String)>,
}

impl ClientCredentials {
    /// The header `authorization` that shows its secret. Both parts are encoded as in a form before they are joined
    /// (RFC 6749, 2.3.1).
    #[must_use]
    pub fn basic(&self, secret: &str) -> String {
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(&self.client_id), encoded(secret));
        format!("Basic {}", STANDARD.encode(pair))
    }
}

/// Whether a text can be the value of a field of the form.
///
/// # Errors
/// What is wrong.
pub fn check_parameter(value: &str) -> Result<(), String> {
    if value.is_empty() || check_value(value).is_err() {
        return Err(
            "has to be 1 to 4096 bytes without control characters and without spaces around it"
                .to_owned(),
        );
    }
    Ok(())
}

/// Whether a text can be the name of a further parameter.
///
/// # Errors
/// What is wrong.
pub fn check_parameter_name(name: &str) -> Result<(), String> {
    if NAMED_PARAMETERS.contains(&name) {
        return Err(format!("{name} is a field of its own, or is sent anyway"));
    }
    check_parameter(name)
}
