//! The request of a try as a curl command: the same bytes, but for the moment. Pure.
//!
//! Separate because the text is copied into terminals and tickets: what is a credential is a variable of the shell
//! that runs it. A signature is none, and holds for the time of the request only.

use std::collections::BTreeMap;

use delivery::request::Request;
use delivery::request::signer::Signer;
use delivery::shell::quoted;
use delivery::subscription::Subscription;
use delivery::subscription::secret::{Keyring, Secret, SecretName};

use crate::operations::curl::{CurlHeader, CurlRequest, option};
use crate::operations::shown_exchange::is_shown;

/// The scheme of a token (RFC 6750), which is no part of the secret.
const BEARER: &str = "Bearer ";
/// The beginning of the names of variables that the subscription does not name.
const PREFIX: &str = "LASTMILE_";

/// A command, and what has to be set before it is run.
pub(super) struct CurlCommand {
    pub(super) text: String,
    /// The names of variables, and what each of them is.
    pub(super) variables: BTreeMap<String, String>,
    /// True if the body contains `[secret]` instead of a secret.
    pub(super) hides_secrets: bool,
}

impl CurlCommand {
    /// The command that makes this request to the destination of this subscription.
    pub(super) fn of(request: &Request, subscription: &Subscription, keyring: &Keyring) -> Self {
        let mut variables = BTreeMap::new();
        let method = request.method.as_str();
        let shown_url = subscription.destination.display();
        // The address of a service of AWS has no credential.
        let is_whole = subscription.destination.aws.is_some() || shown_url == request.url.as_str();
        let url = if is_whole {
            quoted(request.url.as_str())
        } else {
            let what = format!("the whole address of the destination, {shown_url}");
            variable("URL", what, &mut variables)
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
        // Without such a secret the command has exactly these bytes.
        let hidden = request.body_without_secrets();
        let body = hidden.as_deref().unwrap_or(&request.body);
        let text = CurlRequest { method, url, options, headers, body }.command();
        Self { text, variables, hides_secrets: hidden.is_some() }
    }
}

/// The options of the connection, for which curl reads files.
fn tls(request: &Request, variables: &mut BTreeMap<String, String>) -> String {
    let files = [
        ("cert", "CERTIFICATE", "the certificate", request.tls.identity.is_some()),
        ("key", "CERTIFICATE_KEY", "the key of the certificate", request.tls.identity.is_some()),
        (
            "cacert",
            "CA_BUNDLE",
            "tls.caBundle and any other authority of the destination",
            request.tls.ca_bundle.is_some(),
        ),
    ];
    let needed = files.into_iter().filter(|(.., is_needed)| *is_needed);
    let options = needed.map(|(name, named, what, _)| {
        let what = format!("the path of a file with {what} in PEM");
        option(name, &variable(named, what, variables))
    });
    options.collect()
}

/// A signature, which curl makes with the credentials of whoever runs it, in the usual variables of AWS.
fn signed(signer: &Signer, variables: &mut BTreeMap<String, String>) -> String {
    for (name, what) in [
        ("AWS_ACCESS_KEY_ID", "the access key of whoever signs the request"),
        ("AWS_SECRET_ACCESS_KEY", "its secret; temporary credentials have AWS_SESSION_TOKEN too"),
    ] {
        variables.insert(name.to_owned(), what.to_owned());
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

/// A word that is the value of a variable that has no other; the shell ends with an error if that is not set.
fn variable(name: &str, what: String, variables: &mut BTreeMap<String, String>) -> String {
    let mut own = format!("{PREFIX}{name}");
    for number in 2.. {
        if !variables.contains_key(&own) {
            break;
        }
        own = format!("{PREFIX}{name}_{number}");
    }
    let word = word(&own);
    variables.insert(own, what);
    word
}

fn word(variable: &str) -> String {
    format!("\"${{{variable}:?}}\"")
}

/// What of the value of a header is no secret, and a word for the rest. The variable is that of the subscription where it has
/// exactly this value, else one by the name of the header.
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

/// Whether a shell can have a variable of this name (POSIX, Base Definitions, 3.216).
fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
