//! [`ClientCredentials`]: an OAuth 2.0 token that is fetched with the credentials of a client.
//!
//! This module is separate because only this type of authentication sends its secret to a server
//! other than the destination. `request::token` composes the token request and reads its response.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use url::Url;
use url::form_urlencoded::byte_serialize;

use crate::document::findings::{Message, quoted};
use crate::document::kind::{Checked, Kind, Word};
use crate::document::reader::{Cursor, Entry};
use crate::document::record::{Optional, Or, Required};
use crate::subscription::header::{HEADER_VALUE_MAX_BYTES, check_value};
use crate::subscription::kinds::address::Endpoint;
use crate::subscription::kinds::headers::STATED_PATTERN;
use crate::subscription::kinds::secrets::SECRET;
use crate::subscription::secret::SecretName;

/// Form fields of a token request that have their own field in documents, or that are always sent.
/// `parameters` must not contain them.
pub const NAMED_PARAMETERS: [&str; 6] =
    ["grant_type", "client_id", "client_secret", "scope", "audience", "resource"];
/// Maximum number of additional form fields in a token request.
pub const PARAMETERS_MAX: usize = 10;

words! {
    /// The part of a token request that contains the client secret (RFC 6749, 2.3.1).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Style {
        /// The client secret is in the header `authorization`.
        Basic = "basic",
        /// The client secret is a field of the form.
        Post = "post",
    }
}

record! {
    /// Client credentials for a token server (RFC 6749, 4.4).
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct ClientCredentials {
        /// URL of the token server: http://… or https://….
        "tokenUrl" => pub token_url: Url = Required(Endpoint::OTHER),
        /// Id of the client at the token server.
        "clientId" => pub client_id: String = Required(PARAMETER),
        /// Name of the secret with the client secret. Only the token server receives the client
        /// secret.
        "clientSecret" => pub client_secret: SecretName = Required(SECRET),
        /// Scopes of the token, separated by spaces (RFC 6749, 3.3).
        "scope" => pub scope: Option<String> = Optional(PARAMETER, "none"),
        /// Audience of the token, if the token server requires one.
        "audience" => pub audience: Option<String> = Optional(PARAMETER, "none"),
        /// Resource that the token is for, if the token server requires one (RFC 8707).
        "resource" => pub resource: Option<String> = Optional(PARAMETER, "none"),
        /// Part of the token request that contains the client secret: the header `authorization`
        /// (`basic`) or the form (`post`).
        "style" => pub style: Style = Or(Word(&Style::ALL, Style::as_str), Style::Basic),
        /// Additional form fields of the token request, by name. Values are text, numbers, true or
        /// false.
        "parameters" => pub parameters: Vec<(String, String)> = Or(Parameters, Vec::new()),
    }
}

/// The field type of form field values.
pub(crate) const PARAMETER: Checked =
    Checked { max_chars: HEADER_VALUE_MAX_BYTES, check: check_parameter, schema: parameter_schema };

fn parameter_schema() -> Json {
    json!({ "minLength": 1, "pattern": STATED_PATTERN })
}

/// The field type of additional form fields: a mapping from names to values.
pub(crate) struct Parameters;

impl Kind for Parameters {
    type Value = Vec<(String, String)>;

    fn read(&self, at: &Cursor<'_>) -> Option<Self::Value> {
        let entries = at.entries()?;
        if entries.len() > PARAMETERS_MAX {
            at.error(format!(
                "at most {PARAMETERS_MAX} parameters are allowed, found {}",
                entries.len()
            ));
        }
        let mut parameters: Vec<_> = entries.into_iter().filter_map(parameter).collect();
        // The fields are sorted, as in the canonical form.
        parameters.sort();
        Some(parameters)
    }

    fn write(&self, value: &Self::Value) -> Json {
        Json::Object(value.iter().map(|(name, value)| (name.clone(), json!(value))).collect())
    }

    fn schema(&self) -> Json {
        json!({
            "type": "object",
            "maxProperties": PARAMETERS_MAX,
            "propertyNames": { "not": { "enum": NAMED_PARAMETERS } },
            "additionalProperties": {
                "type": ["string", "integer", "boolean"],
                "minLength": 1,
                "maxLength": HEADER_VALUE_MAX_BYTES,
                "pattern": STATED_PATTERN,
            },
        })
    }

    /// Returns only the names of the fields, because a value may be a secret.
    fn shown(&self, value: &Self::Value) -> Json {
        let shown = value.iter().map(|(name, _)| (name.clone(), json!("[secret]")));
        Json::Object(shown.collect())
    }
}

fn parameter(Entry { name, key, value }: Entry<'_>) -> Option<(String, String)> {
    if let Err(problem) = check_parameter_name(name) {
        let message = Message::new(format!("{} cannot be a parameter", quoted(name)));
        return key.refuse(message.help(problem));
    }
    let text = value.scalar()?;
    match check_parameter(&text) {
        Ok(()) => Some((name.to_owned(), text)),
        Err(problem) => value.refuse(problem),
    }
}

impl ClientCredentials {
    /// Returns the value of the header `authorization` with this client secret. The client id and
    /// the secret are form-encoded before they are joined (RFC 6749, 2.3.1).
    #[must_use]
    pub fn basic(&self, secret: &str) -> String {
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(&self.client_id), encoded(secret));
        format!("Basic {}", STANDARD.encode(pair))
    }
}

/// Checks that a text can be the value of a form field.
///
/// # Errors
/// A description of the problem, if the text is not a valid value.
pub fn check_parameter(value: &str) -> Result<(), String> {
    if value.is_empty() || check_value(value).is_err() {
        return Err(
            "must be 1 to 4096 bytes, without control characters and without spaces at either end"
                .to_owned(),
        );
    }
    Ok(())
}

/// Checks that a text can be the name of an additional form field.
///
/// # Errors
/// A description of the problem, if the text is not a valid name.
pub fn check_parameter_name(name: &str) -> Result<(), String> {
    if name == "grant_type" {
        return Err("grant_type is always sent; remove it".to_owned());
    }
    if NAMED_PARAMETERS.contains(&name) {
        return Err(format!("set {name} in its own field"));
    }
    check_parameter(name)
}
