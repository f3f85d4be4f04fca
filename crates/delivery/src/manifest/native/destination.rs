//! `destination`: the endpoint and what its requests carry.
//!
//! Separate because it differs in a Topic, which has no URL, and in a Subscription, which requires
//! one.

use url::Url;

use super::super::access::Asked;
use super::super::destinations::Destinations;
use super::super::findings::{Message, quoted};
use super::super::headers;
use super::super::limits;
use super::super::names;
use super::super::reader::{Cursor, Fields};
use super::{auth, consent};
use crate::event::path::PATH_RULE;
use crate::event::schema::Schema;
use crate::subscription::header::{Header, Value};
use crate::subscription::profile::{Profile, RESPONSE_TIMEOUT_MAX_MS};
use crate::subscription::public_key::{PUBLIC_KEY_RULE, PublicKey};
use crate::subscription::secret::{SECRET_NAME_RULE, SecretName};
use crate::subscription::{Destination, Disable, Disabled};
use crate::time::duration::{DAY_MS, HOUR_MS};

/// Requests in flight at once.
const CONCURRENCY: std::ops::RangeInclusive<u32> = 1..=1_000;
/// The longest late response window: like a response timeout, it has to end before its function
/// does.
const LATE_WINDOW_MAX_MS: u64 = RESPONSE_TIMEOUT_MAX_MS;
/// How long a destination may have to keep failing before it is disabled: deliveries wait no longer.
const DISABLE_AFTER_MS: std::ops::RangeInclusive<u64> = HOUR_MS..=14 * DAY_MS;
/// The most secrets that sign a request, and the most public keys: usually one, several while it is rotated.
const SECRETS_MAX: usize = 10;

/// Which document the settings are in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// In `spec.delivery` of a Topic: defaults for its subscriptions.
    Topic,
    /// In `spec` of a Subscription.
    Subscription,
}

/// Reads the fields of `destination`, with the profile's values for missing ones; `None` where there
/// is no URL.
pub(super) fn read(
    fields: &Fields<'_>,
    scope: Scope,
    destinations: &Destinations<'_>,
    profile: &Profile,
) -> Option<Destination> {
    let url = match scope {
        Scope::Topic => no_url(fields),
        Scope::Subscription => fields.required("url").and_then(|cursor| url(&cursor, destinations)),
    };
    let stated = stated(fields);
    // Asked last: a missing URL ends the reading only when every field was read.
    let destination = stated(Destination {
        plain_json: true,
        late_window_ms: profile.late_window_ms,
        probation: profile.probation,
        ..Destination::new(url?, profile.response_timeout_ms)
    });
    let url = fields.own("url")?;
    let at = fields.own("auth").unwrap_or_else(|| url.clone());
    destinations.with_access(destination, &asked(fields.parent()), (url.text()?, &at))
}

/// What the `destination` of a Subscription states itself.
pub(super) fn asked<'a>(destination: &Cursor<'a>) -> Asked<'a> {
    let [states_auth, states_tls] =
        ["auth", "tls"].map(|field| destination.peek(field).is_some_and(|at| !at.is_null()));
    Asked { states_auth, states_tls, ..Asked::default() }
}

/// Reads the fields of a Topic's `destination`, and lays them over a destination of another family.
pub(super) fn read_over(fields: &Fields<'_>, base: Destination) -> Destination {
    fields.accept(&["url"]);
    stated(fields)(base)
}

/// Reads every field but the URL: what is stated replaces the value of a destination.
fn stated(fields: &Fields<'_>) -> impl FnOnce(Destination) -> Destination + use<> {
    let timeout_ms = fields.read("timeout", |at| at.duration_ms(1..=RESPONSE_TIMEOUT_MAX_MS));
    let max_concurrency = fields.read("maxConcurrency", |at| at.integer(CONCURRENCY));
    let slow_after_ms = fields.read("slowAfter", |at| at.duration_ms(1..=RESPONSE_TIMEOUT_MAX_MS));
    let late_window_ms =
        fields.read("lateResponseWindow", |at| at.duration_ms(0..=LATE_WINDOW_MAX_MS));
    let hide_path = fields.read("hidePath", Cursor::boolean);
    let schema = fields.read("schema", |at| at.word(&Schema::ALL, Schema::as_str));
    let headers = fields.read("headers", |at| headers::list(at, header));
    let auth = auth::read(fields, headers.as_deref().unwrap_or_default());
    let ca_bundle = fields.section("tls", auth::tls).flatten();
    let (signing, public_keys) = fields.section("signing", signing).unzip();
    let (signing, public_keys) = (signing.flatten(), public_keys.flatten());
    let max_per_second = fields.read("maxPerSecond", |at| at.integer(limits::PER_SECOND));
    let shared_limit = fields.read("sharedLimit", names::read);
    let probation = fields.read("probation", Cursor::boolean);
    let disable = fields.section("disable", disable).flatten();
    let consent = fields.section("consent", consent::read).flatten();
    move |base| Destination {
        response_timeout_ms: timeout_ms.unwrap_or(base.response_timeout_ms),
        hide_path: hide_path.unwrap_or(base.hide_path),
        schema: schema.or(base.schema),
        headers: headers.unwrap_or(base.headers),
        auth: auth.or(base.auth),
        ca_bundle: ca_bundle.or(base.ca_bundle),
        // As a whole: keys of the Topic do not belong to other secrets.
        public_keys: match &signing {
            Some(_) => public_keys.unwrap_or_default(),
            None => base.public_keys,
        },
        signing: signing.unwrap_or(base.signing),
        max_concurrency: max_concurrency.unwrap_or(base.max_concurrency),
        shares_concurrency: max_concurrency.is_some() || base.shares_concurrency,
        max_per_second: max_per_second.or(base.max_per_second),
        shared_limit: shared_limit.or(base.shared_limit),
        slow_after_ms: slow_after_ms.unwrap_or(base.slow_after_ms),
        late_window_ms: late_window_ms.unwrap_or(base.late_window_ms),
        probation: probation.unwrap_or(base.probation),
        disable: disable.or(base.disable),
        consent: consent.or(base.consent),
        ..base
    }
}

/// When it is disabled, and what happens then.
fn disable(fields: &Fields<'_>) -> Option<Disable> {
    let after = fields.required("after");
    let after_ms = after.and_then(|at| at.duration_ms(DISABLE_AFTER_MS));
    let then = fields.read("then", |at| at.word(&Disabled::ALL, Disabled::as_str));
    Some(Disable { after_ms: after_ms?, then: then.unwrap_or(Disabled::Hold) })
}

fn no_url(fields: &Fields<'_>) -> Option<Url> {
    if let Some(key) = fields.key("url") {
        key.error(Message::new("a topic has no url").help("set it in each Subscription"));
    }
    None
}

fn url(cursor: &Cursor<'_>, destinations: &Destinations<'_>) -> Option<Url> {
    let unknown = Message::new("neither an address nor a key of a Destinations document")
        .help("http://… or https://…");
    destinations.resolve(cursor.text()?, cursor).or_refuse(cursor, unknown)?.for_events(cursor)
}

fn header(fields: &Fields<'_>) -> Option<Header> {
    let name = fields.required("name").and_then(|cursor| headers::name(&cursor));
    let value = header_value(fields);
    Some(Header { name: name?, value: value? })
}

/// A header's value, which has one source.
fn header_value(fields: &Fields<'_>) -> Option<Value> {
    match ["value", "path", "secret"].map(|name| fields.get(name)) {
        [Some(value), None, None] => headers::value(&value).map(Value::Static),
        [None, Some(path), None] => path.parsed("a path", PATH_RULE).map(Value::Path),
        [None, None, Some(name)] => secret(&name).map(Value::Secret),
        [None, None, None] => fields.parent().refuse("value, path or secret is missing"),
        [_, _, _] => fields.parent().refuse("a header has one of value, path and secret"),
    }
}

/// The secrets that sign every request, and the public keys to publish.
fn signing(fields: &Fields<'_>) -> (Option<Vec<SecretName>>, Option<Vec<PublicKey>>) {
    let secrets = fields.required("secrets").and_then(|list| {
        distinct(&list, "secrets", secret, |name| {
            format!("the secret {}", quoted(&name.to_string()))
        })
    });
    let key = |cursor: &Cursor<'_>| cursor.parsed("a public key", PUBLIC_KEY_RULE);
    let keys = fields.read("publicKeys", |list| {
        distinct(list, "public keys", key, |key: &PublicKey| format!("the public key {key}"))
    });
    (secrets, keys)
}

/// A list of 1 to [`SECRETS_MAX`] different values.
fn distinct<T: PartialEq>(
    cursor: &Cursor<'_>,
    what: &str,
    read: impl Fn(&Cursor<'_>) -> Option<T>,
    shown: impl Fn(&T) -> String,
) -> Option<Vec<T>> {
    let elements = cursor.list()?;
    if !(1..=SECRETS_MAX).contains(&elements.len()) {
        cursor.error(format!(
            "has to be a list of 1 to {SECRETS_MAX} {what}, has {}",
            elements.len()
        ));
    }
    let mut values = Vec::new();
    for element in elements {
        let Some(value) = read(&element) else { continue };
        if values.contains(&value) {
            element.error(format!("{} is listed twice", shown(&value)));
        }
        values.push(value);
    }
    Some(values)
}

/// The name of a secret.
pub(super) fn secret(cursor: &Cursor<'_>) -> Option<SecretName> {
    cursor.parsed("the name of a secret", SECRET_NAME_RULE)
}
