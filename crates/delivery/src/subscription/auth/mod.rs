//! [`Auth`]: the authentication of requests to a destination.
//!
//! This module is separate from the headers of a subscription because authentication depends on
//! secrets and never on the event. Each type of authentication defines which secrets it needs and
//! which headers it adds.
//!
//! No error and no `Debug` output contains the value of a secret. This module does not load
//! secrets: it gets them in the keyring of the request.

pub mod identity;
pub mod oauth2;
pub mod sigv4;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use self::identity::WebIdentity;
use self::oauth2::ClientCredentials;
use self::sigv4::{SIGNING_HEADERS, SigningScope};
use crate::document::kind::Checked;
use crate::document::record::Required;
use crate::subscription::header::{HEADER_VALUE_MAX_BYTES, HeaderError, check_value, secret_value};
use crate::subscription::kinds::headers::{self, STATED_PATTERN};
use crate::subscription::kinds::secrets::SECRET;
use crate::subscription::secret::{Keyring, SecretName};

/// Name of the header that most types of authentication set. The type `header` sets a configured
/// header instead, and `clientCertificate` sets none.
pub const AUTHORIZATION: &str = "authorization";

alternatives! {
    /// Authentication of requests. Set exactly one of its fields.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Auth by field {
        /// User name and password in the header `authorization` (RFC 7617).
        "basic" => Basic(Basic),
        /// A fixed token in the header `authorization` (RFC 6750).
        "bearer" => Bearer(Bearer),
        /// A secret as the value of another header, such as x-api-key.
        "header" => Header(SecretHeader),
        /// An OAuth 2.0 token, which is fetched before the request.
        "oauth2" => OAuth2(Box<ClientCredentials>),
        /// A TLS client certificate, for https only.
        "clientCertificate" => ClientCertificate(ClientCertificate),
        /// A signature with AWS credentials (Signature Version 4).
        "sigv4" => Sigv4(SigningScope),
        /// A token issued by AWS that identifies the caller.
        "awsIdentity" => AwsIdentity(WebIdentity),
    }
}

record! {
    /// User name and password in the header `authorization`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Basic {
        /// User name, without a colon.
        "user" => pub user: String = Required(Checked { max_chars: HEADER_VALUE_MAX_BYTES, check: check_user, schema: user_schema }),
        /// Name of the secret with the password.
        "password" => pub password: SecretName = Required(SECRET),
    }
}

record! {
    /// A fixed token in the header `authorization`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Bearer {
        /// Name of the secret with the token. Requests add the word Bearer, so the secret must not
        /// contain it.
        "token" => pub token: SecretName = Required(SECRET),
    }
}

record! {
    /// A secret as the value of another header, such as x-api-key.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SecretHeader {
        /// Name of the header. Names that are not allowed in `headers` are not allowed here either.
        "name" => pub name: String = Required(headers::Name),
        /// Name of the secret with the value of the header.
        "value" => pub value: SecretName = Required(SECRET),
    }
}

record! {
    /// A TLS client certificate and its private key, both in PEM.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ClientCertificate {
        /// Name of the secret with the certificate and its intermediate certificates, in PEM.
        "certificate" => pub certificate: SecretName = Required(SECRET),
        /// Name of the secret with the private key, in PEM. The key must not be encrypted with a
        /// password.
        "key" => pub key: SecretName = Required(SECRET),
    }
}

/// The issuer of a token that must be fetched before a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenSource<'a> {
    /// A token server, which issues a token for the credentials of a client.
    Client(&'a ClientCredentials),
    /// AWS, which issues a token with the identity of the deployment's role.
    Aws(&'a WebIdentity),
}

impl Auth {
    /// Lists the names of the secrets that a request needs.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretName> {
        let (first, second) = match self {
            Self::Basic(Basic { password: secret, .. })
            | Self::Bearer(Bearer { token: secret })
            | Self::Header(SecretHeader { value: secret, .. }) => (Some(secret), None),
            Self::OAuth2(client) => (Some(&client.client_secret), None),
            Self::ClientCertificate(identity) => (Some(&identity.certificate), Some(&identity.key)),
            Self::Sigv4(_) | Self::AwsIdentity(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Returns the issuer of the token that requests need; `None` if they need no token.
    #[must_use]
    pub fn token_source(&self) -> Option<TokenSource<'_>> {
        match self {
            Self::OAuth2(client) => Some(TokenSource::Client(client)),
            Self::AwsIdentity(identity) => Some(TokenSource::Aws(identity)),
            Self::Basic(_)
            | Self::Bearer(_)
            | Self::Header(_)
            | Self::ClientCertificate(_)
            | Self::Sigv4(_) => None,
        }
    }

    /// Returns the scope of the AWS signature; `None` if requests have no AWS signature.
    #[must_use]
    pub fn signing_scope(&self) -> Option<&SigningScope> {
        match self {
            Self::Sigv4(scope) => Some(scope),
            Self::Basic(_)
            | Self::Bearer(_)
            | Self::Header(_)
            | Self::OAuth2(_)
            | Self::ClientCertificate(_)
            | Self::AwsIdentity(_) => None,
        }
    }

    /// Lists the names of the headers that this authentication sets.
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        let signing: &[&str] = match self {
            Self::Sigv4(_) => &SIGNING_HEADERS,
            Self::Basic(_)
            | Self::Bearer(_)
            | Self::Header(_)
            | Self::OAuth2(_)
            | Self::ClientCertificate(_)
            | Self::AwsIdentity(_) => &[],
        };
        self.header_name().into_iter().chain(signing.iter().copied())
    }

    /// Returns true if this authentication sets the header with this name; case is ignored.
    #[must_use]
    pub fn has_header(&self, name: &str) -> bool {
        self.header_names().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Returns the name of the header that contains a secret or a token, if there is one.
    fn header_name(&self) -> Option<&str> {
        match self {
            Self::Basic(_) | Self::Bearer(_) | Self::OAuth2(_) | Self::AwsIdentity(_) => {
                Some(AUTHORIZATION)
            }
            Self::Header(header) => Some(&header.name),
            Self::ClientCertificate(_) | Self::Sigv4(_) => None,
        }
    }

    /// Returns the header that contains a secret or a token, if there is one.
    ///
    /// # Errors
    /// [`HeaderError`] if a secret is missing or cannot be sent in a header.
    pub fn header(&self, keyring: &Keyring) -> Result<Option<(String, String)>, HeaderError> {
        let Some(name) = self.header_name() else { return Ok(None) };
        let value = match self {
            Self::Basic(Basic { user, password }) => {
                let password = secret_value(name, password, keyring)?;
                format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
            }
            Self::Bearer(Bearer { token }) => bearer(secret_value(name, token, keyring)?)?,
            Self::Header(header) => secret_value(name, &header.value, keyring)?.to_owned(),
            Self::OAuth2(_) | Self::AwsIdentity(_) => {
                let missing = || HeaderError::Secret("no token was fetched".to_owned());
                bearer(keyring.token().ok_or_else(missing)?.expose())?
            }
            Self::ClientCertificate(_) | Self::Sigv4(_) => return Ok(None),
        };
        Ok(Some((name.to_owned(), value)))
    }
}

/// Returns the header value `Bearer …` for a token.
fn bearer(token: &str) -> Result<String, HeaderError> {
    if token.contains(char::is_whitespace) {
        let problem = "the token must not contain spaces or begin with Bearer";
        return Err(HeaderError::Secret(format!(
            "the header {AUTHORIZATION} cannot be sent: {problem}"
        )));
    }
    Ok(format!("Bearer {token}"))
}

/// Returns the JSON Schema of the field `user` of [`Auth::Basic`].
fn user_schema() -> Json {
    json!({ "minLength": 1, "pattern": STATED_PATTERN, "not": { "pattern": ":" } })
}

/// Checks that a text can be the field `user` of [`Auth::Basic`] (RFC 7617, 2).
///
/// # Errors
/// A description of the problem, if the text is not a valid user name.
pub fn check_user(user: &str) -> Result<(), String> {
    if user.is_empty() || user.contains(':') {
        return Err("the user must not be empty or contain a colon".to_owned());
    }
    check_value(user).map_err(|_| {
        "the user must have at most 4096 bytes, no control characters, and no spaces at either end"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::secret::Secret;

    fn sent(auth: &Auth, value: &str) -> Result<(String, String), String> {
        let keyring: Keyring =
            auth.secrets().map(|name| (name.clone(), Secret::new(value.to_owned()))).collect();
        let header = auth.header(&keyring).map_err(|error| error.to_string())?;
        Ok(header.expect("it is shown in a header"))
    }

    fn each() -> [Auth; 3] {
        let secret = || "env:A".parse().expect("a name");
        [
            Auth::Basic(Basic { user: "größe".to_owned(), password: secret() }),
            Auth::Bearer(Bearer { token: secret() }),
            Auth::Header(SecretHeader { name: "X-Key".to_owned(), value: secret() }),
        ]
    }

    #[test]
    fn a_header_is_made_of_the_secret() {
        let [basic, bearer, header] = each();
        for (auth, name, value) in [
            // printf 'größe:hush hush' | base64
            (basic, "authorization", "Basic Z3LDtsOfZTpodXNoIGh1c2g="),
            (header, "X-Key", "hush hush"),
        ] {
            // A secret that was stored from a file often ends with a line feed.
            assert_eq!(sent(&auth, "hush hush\n"), Ok((name.to_owned(), value.to_owned())));
        }
        let value = ("authorization".to_owned(), "Bearer hush".to_owned());
        assert_eq!(sent(&bearer, "hush\n"), Ok(value));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_without_its_value() {
        for auth in each() {
            let (missing, broken) = (auth.header(&Keyring::default()), sent(&auth, "hush\r\nx: y"));
            let missing = missing.expect_err("it was not loaded").to_string();
            assert!(missing.contains("env:A was not loaded"), "{missing}");
            let broken = broken.expect_err("it would split the request");
            assert!(broken.contains("control characters") && !broken.contains("hush"), "{broken}");
        }
        let [_, bearer, _] = each();
        let twice = sent(&bearer, "Bearer hush").expect_err("the word would be there twice");
        assert!(twice.contains("begin with Bearer") && !twice.contains("hush"), "{twice}");
    }

    #[test]
    fn a_user_can_be_told_from_the_password() {
        for user in ["", "a:b", "a\nb", " a"] {
            assert!(check_user(user).is_err(), "{user:?}");
        }
        assert_eq!(check_user("größe 7"), Ok(()));
    }
}
