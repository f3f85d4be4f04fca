//! Renders the request that the templates or the AWS target of a subscription produce from an
//! event. Sends nothing.
//!
//! The preview of the console uses the secrets of this machine. [`rendered_request`] reads no
//! secrets, so its result is the same on every machine. A placeholder replaces each secret, and is
//! redacted like the secret. Headers that need a secret are omitted.

use std::borrow::Cow;

use adapters::machine::Machine;
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::delivery::{Delivery, Origin};
use delivery::event::Event;
use delivery::ports::Clock as _;
use delivery::request::{self, AttemptContext, Request};
use delivery::subscription::credentials::{HIDDEN, is_credential_parameter};
use delivery::subscription::header::Value;
use delivery::subscription::secret::{AwsCredentials, Keyring, Secret};
use delivery::subscription::{Destination, Subscription};
use url::Url;

use crate::operations::shown_exchange::ShownExchange;

/// Renders the request of the first attempt. Returns `None` if the destination is a URL without
/// templates, because it receives the event itself.
///
/// # Errors
/// If rendering fails; the message contains the field, the position in it, and the expression.
pub(crate) fn rendered_request(
    subscription: &Subscription,
    event: &Event,
) -> Option<Result<ShownExchange, String>> {
    let is_usual =
        !subscription.destination.has_templates() && subscription.destination.aws.is_none();
    if is_usual {
        return None;
    }
    let without_secrets = without_secret_headers(subscription);
    let destination = &without_secrets.destination;
    let word = |name: &_| Secret::new(format!("the secret {name}"));
    let keyring: Keyring = destination.secrets().map(|name| (name.clone(), word(name))).collect();
    let keyring = keyring.with_aws(nobody());
    let request = first_request(&without_secrets, event, &keyring);
    Some(request.map(|(request, mut shown)| {
        shown.url.push_str(&query(destination, &request.url));
        shown
    }))
}

/// Builds the request of the first attempt with these secrets. Returns the request, and the parts
/// of it that people may see.
///
/// # Errors
/// If rendering fails.
pub(crate) fn first_request(
    subscription: &Subscription,
    event: &Event,
    keyring: &Keyring,
) -> Result<(Request, ShownExchange), String> {
    let (now_ms, timeout_ms) = (Machine.now_ms(), subscription.destination.response_timeout_ms);
    let origin = Origin { message: "explained".to_owned(), index: 0 };
    let delivery = Delivery::new(event.clone(), subscription.name.clone(), origin, now_ms);
    let context = AttemptContext { keyring, now_ms, timeout_ms };
    let request = request::compose(subscription, &[&delivery], context);
    let request = request.map_err(|problem| problem.to_string())?;
    let nothing = Exchange::new(TransportResult::Aborted, 0, 0);
    let shown = ShownExchange::new(&request, &nothing, Some(subscription));
    Ok((request, shown))
}

/// Returns the query with redacted secrets. For an AWS target, shows all values, because the query
/// names the operation. Otherwise, shows only values that a template rendered without a secret.
fn query(destination: &Destination, url: &Url) -> String {
    let is_shown = |name: &str| {
        let mut made = destination.query.iter().filter(|parameter| parameter.name == name);
        destination.aws.is_some()
            || (!is_credential_parameter(name)
                && made.any(|parameter| parameter.value.secrets.is_empty()))
    };
    let sent = url.query().unwrap_or_default().split('&').filter(|sent| !sent.is_empty());
    let shown = |((name, _), sent): ((Cow<'_, str>, _), &str)| match is_shown(&name) {
        true => sent.to_owned(),
        false => format!("{name}={HIDDEN}"),
    };
    let parameters: Vec<String> = url.query_pairs().zip(sent).map(shown).collect();
    if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) }
}

/// Creates dummy credentials for a signature that is not shown.
fn nobody() -> AwsCredentials {
    let nothing = || Secret::new("nobody".to_owned());
    AwsCredentials {
        access_key_id: "nobody".to_owned(),
        secret_access_key: nothing(),
        session_token: None,
    }
}

fn without_secret_headers(subscription: &Subscription) -> Subscription {
    let mut subscription = subscription.clone();
    let destination = &mut subscription.destination;
    (destination.auth, destination.signing, destination.tls) = (None, None, None);
    destination.headers.retain(|header| !matches!(header.value, Value::Secret(_)));
    subscription
}
