//! Formats the request of `try` as a curl command that sends the same bytes, except for timestamps.
//! Pure.
//!
//! People copy the command into terminals and tickets, so it contains shell variables instead of
//! credentials. It contains signatures: they are not credentials, and are valid only at the time of
//! the request.

use std::collections::BTreeMap;

use delivery::request::Request;
use delivery::request::signer::Signer;
use delivery::shell::quoted;
use delivery::subscription::Subscription;
use delivery::subscription::secret::{Keyring, Secret, SecretName};

use crate::operations::curl::{CurlHeader, CurlRequest, option};
use crate::operations::shown_exchange::is_shown;

/// The scheme of a bearer token (RFC 6750), which is shown because it is not secret.
const BEARER: &str = "Bearer ";
/// The prefix of shell variables for values that the subscription does not take from an environment
/// variable.
const PREFIX: &str = "LASTMILE_";

/// A curl command, and the variables that must be set before it runs.
pub(super) struct CurlCommand {
    pub(super) text: String,
    /// The names of the variables, each with a description.
    pub(super) variables: BTreeMap<String, String>,
    /// True if the body contains `[secret]` in place of a secret.
    pub(super) hides_secrets: bool,
}

impl CurlCommand {
    /// Formats a request to the destination of this subscription.
    pub(super) fn new(request: &Request, subscription: &Subscription, keyring: &Keyring) -> Self {
        let mut variables = BTreeMap::new();
        let method = request.method.as_str();
        let shown_url = subscription.destination.display();
        // The URL of an AWS service contains no credentials.
        let is_whole = subscription.destination.aws.is_some() || shown_url == request.url.as_str();
        let url = if is_whole {
            quoted(request.url.as_str())
        } else {
            let description = format!("the complete URL of the destination, {shown_url}");
            variable("URL", description, &mut variables)
        };
        let headers = request.headers.iter().map(|(name, value)| {
            if is_shown(name, value, Some(subscription)) {
                return CurlHeader::new(name, value);
            }
            let (scheme, word) = hidden(name, value, subscription, keyring, &mut variables);
            CurlHeader::with_word(name, scheme, &word)
        });
        let headers = headers.collect();
        let tls = tls(request, &mut variables);
        let signer = request.signer.as_ref().map(|signer| signed(signer, &mut variables));
        let options = tls + &signer.unwrap_or_default();
        // If the body contains no secrets, the command sends exactly these bytes.
        let hidden = request.body_without_secrets();
        let body = hidden.as_deref().unwrap_or(&request.body);
        let text = CurlRequest { method, url, options, headers, body }.command();
        Self { text, variables, hides_secrets: hidden.is_some() }
    }
}

/// Formats the options for TLS. curl reads certificates and keys from files.
fn tls(request: &Request, variables: &mut BTreeMap<String, String>) -> String {
    let files = [
        ("cert", "CERTIFICATE", "the certificate", request.tls.identity.is_some()),
        ("key", "CERTIFICATE_KEY", "the key of the certificate", request.tls.identity.is_some()),
        (
            "cacert",
            "CA_BUNDLE",
            "the CA certificates of tls.caBundle and of the destination",
            request.tls.ca_bundle.is_some(),
        ),
    ];
    let needed = files.into_iter().filter(|(.., is_needed)| *is_needed);
    let options = needed.map(|(name, named, description, _)| {
        let description = format!("path of a PEM file with {description}");
        option(name, &variable(named, description, variables))
    });
    options.collect()
}

/// Formats the options for signing. curl signs with the credentials in the usual AWS variables.
fn signed(signer: &Signer, variables: &mut BTreeMap<String, String>) -> String {
    for (name, description) in [
        ("AWS_ACCESS_KEY_ID", "the access key that signs the request"),
        (
            "AWS_SECRET_ACCESS_KEY",
            "the secret access key; temporary credentials also require AWS_SESSION_TOKEN",
        ),
    ] {
        variables.insert(name.to_owned(), description.to_owned());
    }
    let scope = &signer.scope;
    let (service, region) = (scope.service, &scope.region);
    let scheme = option("aws-sigv4", &quoted(&format!("aws:amz:{region}:{service}")));
    let user = option("user", "\"${AWS_ACCESS_KEY_ID:?}:${AWS_SECRET_ACCESS_KEY:?}\"");
    let token = "${AWS_SESSION_TOKEN:+--header} ${AWS_SESSION_TOKEN:+\"x-amz-security-token: $AWS_SESSION_TOKEN\"}";
    let body = "'x-amz-content-sha256: UNSIGNED-PAYLOAD'";
    let body = if scope.signs_body { String::new() } else { option("header", body) };
    format!("{scheme}{user} \\\n  {token}{body}")
}

/// Adds a variable, and returns its reference for the shell. The shell fails if the variable is not
/// set.
fn variable(name: &str, description: String, variables: &mut BTreeMap<String, String>) -> String {
    let mut own = format!("{PREFIX}{name}");
    for number in 2.. {
        if !variables.contains_key(&own) {
            break;
        }
        own = format!("{PREFIX}{name}_{number}");
    }
    let word = word(&own);
    variables.insert(own, description);
    word
}

fn word(variable: &str) -> String {
    format!("\"${{{variable}:?}}\"")
}

/// Splits a header's value into a prefix that is not secret, and a shell variable for the secret.
/// If the secret is the value of an environment variable of the subscription, returns this
/// variable. Otherwise returns a variable that is named after the header.
fn hidden(
    header: &str,
    value: &str,
    subscription: &Subscription,
    keyring: &Keyring,
    variables: &mut BTreeMap<String, String>,
) -> (&'static str, String) {
    for scheme in ["", BEARER] {
        let Some(rest) = value.strip_prefix(scheme) else { continue };
        let is_it = |name: &&SecretName| keyring.get(name).map(Secret::expose) == Some(rest);
        if let Some(name @ SecretName::Environment(own)) =
            subscription.destination.secrets().find(is_it)
            && is_name(own)
            && !own.starts_with(PREFIX)
        {
            variables.insert(own.clone(), format!("the secret {name}"));
            return (scheme, word(own));
        }
    }
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = header.chars().map(letter).collect();
    ("", variable(&name, format!("the value of the header {header}"), variables))
}

/// Returns true for a valid name of a shell variable (POSIX, Base Definitions, 3.216).
fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
