//! The effective policy of a subscription as named settings, to show and to compare.
//!
//! Separate because `explain` and `diff` have to use the same names for the same fields. A setting
//! is the value in effect, whatever document or default it came from; the names are those of the
//! native dialect.
//!
//! Promises: it never contains values of headers, since they may be secrets; secrets are given by
//! name.
//!
//! Does not know where a value was written; the manifest does.

use serde::Serialize;
use serde_json::{Value, json};

use crate::event::schema::Schema;
use crate::subscription::auth::Auth;
use crate::subscription::auth::identity::WebIdentity;
use crate::subscription::auth::oauth2::ClientCredentials;
use crate::subscription::auth::sigv4::SigningScope;
use crate::subscription::header::{Header, Value as HeaderValue};
use crate::subscription::profile::{LeastWaits, Profile, StatusSet};
use crate::subscription::public_key::PublicKey;
use crate::subscription::schedule::{Kind, Schedule};
use crate::subscription::secret::SecretName;
use crate::subscription::sink::Sink;
use crate::subscription::{
    BATCH_KILOBYTE, Consent, DeadLetterPolicy, Destination, Disable, ReplyTo, Subscription,
    display, shown,
};
use crate::time::duration::format_ms;

/// The text of a missing time to live.
const NO_TIME_TO_LIVE: &str = "none; 14 days are the most in every dialect";
/// The text of the batch fields where each event has a request of its own.
const NO_BATCH: &str = "no batches";

/// One field of a policy and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its name.
    pub field: &'static str,
    /// The value for tools.
    pub value: Value,
    /// The value for people.
    pub text: String,
}

impl Setting {
    fn new(field: &'static str, value: Value, text: impl Into<String>) -> Self {
        Self { field, value, text: text.into() }
    }

    /// A value that people read as tools do.
    fn plain(field: &'static str, value: impl Serialize + ToString) -> Self {
        Self::new(field, json!(value), value.to_string())
    }

    /// The same, with the text for people where there is none.
    fn optional(field: &'static str, value: Option<impl Serialize + ToString>, none: &str) -> Self {
        let text = value.as_ref().map_or(none.to_owned(), ToString::to_string);
        Self::new(field, json!(value), text)
    }

    fn statuses(field: &'static str, set: &StatusSet) -> Self {
        let ranges = set.ranges();
        let text = if ranges.is_empty() { "no status".to_owned() } else { ranges.join(" ") };
        Self::new(field, json!(ranges), text)
    }
}

/// All settings of a subscription, in the order in which they are shown.
#[must_use]
pub fn settings(subscription: &Subscription) -> Vec<Setting> {
    let (retry, dead_letter) = (&subscription.retry, &subscription.dead_letter);
    let (destination, batch) = (&subscription.destination, subscription.batch);
    let kilobytes = batch.map(|of| of.preferred_bytes / BATCH_KILOBYTE);
    let retried =
        Profile::of(subscription.dialect).retry.never_retry.difference(&retry.never_retry);
    vec![
        Setting::plain("maxAttempts", retry.max_attempts),
        Setting::optional("timeToLive", retry.time_to_live_ms.map(format_ms), NO_TIME_TO_LIVE),
        Setting::new("schedule", schedule_value(&retry.schedule), schedule_text(&retry.schedule)),
        Setting::plain("responseTimeout", format_ms(destination.response_timeout_ms)),
        Setting::optional("schema", destination.schema.map(Schema::as_str), "as published"),
        Setting::plain("hidePath", destination.hide_path),
        headers(&destination.headers),
        auth(destination.auth.as_ref()),
        Setting::optional(
            "tls.caBundle",
            destination.ca_bundle.as_ref().map(ToString::to_string),
            "none",
        ),
        signing(&destination.signing),
        public_keys(&destination.public_keys),
        max_concurrency(destination),
        Setting::optional("maxPerSecond", destination.max_per_second, "no limit"),
        Setting::optional("sharedLimit", destination.shared_limit.as_deref(), "its own"),
        Setting::plain("slowAfter", format_ms(destination.slow_after_ms)),
        Setting::plain("lateResponseWindow", format_ms(destination.late_window_ms)),
        Setting::plain("probation", destination.probation),
        disable(destination.disable),
        consent(destination.consent.as_ref()),
        Setting::optional("batch.maxEvents", batch.map(|of| of.max_events), NO_BATCH),
        Setting::optional("batch.preferredKilobytes", kilobytes, NO_BATCH),
        Setting::optional("batch.onRefused", batch.map(|of| of.on_refused.as_str()), NO_BATCH),
        reply(subscription),
        Setting::statuses("success", &retry.success),
        Setting::statuses("neverRetry", &retry.never_retry),
        Setting::statuses("retryOn", &retried),
        least_waits(&retry.least_waits),
        Setting::plain("retryAfterMax", format_ms(retry.retry_after_max_ms)),
        Setting::plain("jitterPercent", retry.jitter_percent),
        sink(dead_letter),
        Setting::plain("deadLetter.hidePath", dead_letter.hide_path),
        Setting::plain("deadLetter.format", dead_letter.format.name_for(destination.schema)),
        Setting::plain("deadLetter.layout", dead_letter.layout.as_str()),
        Setting::plain("deadLetter.eventsPerBlob", dead_letter.events_per_blob),
        Setting::plain("deadLetter.errorData", dead_letter.error_data.as_str()),
        Setting::plain("deadLetter.response", dead_letter.response.as_str()),
        Setting::plain("deadLetter.delay", format_ms(dead_letter.delay_ms)),
        Setting::plain("deadLetter.keepTryingFor", format_ms(dead_letter.keep_trying_for_ms)),
    ]
}

/// The address of a sink; `None` for the container of the deployment and where dead letters are
/// dropped.
#[must_use]
pub fn sink_uri(dead_letter: &DeadLetterPolicy) -> Option<String> {
    match dead_letter.sink {
        Sink::Container(_) | Sink::Queue(_) | Sink::Address(_) => Some(sink_text(dead_letter)),
        Sink::DefaultContainer | Sink::Topic(_) | Sink::None => None,
    }
}

/// A sink as text.
#[must_use]
pub fn sink_text(dead_letter: &DeadLetterPolicy) -> String {
    match &dead_letter.sink {
        Sink::DefaultContainer => "the default container of the deployment".to_owned(),
        Sink::Container(container) => format!("s3://{container}"),
        Sink::Queue(queue) => format!("sqs://{queue}"),
        Sink::Address(url) => shown(url, dead_letter.hide_path),
        Sink::Topic(topic) => format!("the subscriptions of topic {topic}"),
        Sink::None => "none: dropped".to_owned(),
    }
}

/// The headers of a destination: names and sources of the values.
pub(crate) fn headers(headers: &[Header]) -> Setting {
    let values: Vec<Value> = headers.iter().map(header_value).collect();
    Setting::new("headers", json!(values), listed(headers.iter().map(header_text)))
}

fn header_value(header: &Header) -> Value {
    let name = &header.name;
    match &header.value {
        HeaderValue::Static(_) | HeaderValue::Concealed(_) => json!({ "name": name }),
        HeaderValue::Path(path) => json!({ "name": name, "path": path.to_string() }),
        HeaderValue::Secret(secret) => json!({ "name": name, "secret": secret.to_string() }),
    }
}

fn header_text(header: &Header) -> String {
    let name = &header.name;
    match &header.value {
        HeaderValue::Static(_) => name.clone(),
        HeaderValue::Concealed(_) => format!("{name} (concealed)"),
        HeaderValue::Path(path) => format!("{name} from {path}"),
        HeaderValue::Secret(secret) => format!("{name} from {secret}"),
    }
}

/// How a destination learns who is calling; secrets by name.
pub(crate) fn auth(auth: Option<&Auth>) -> Setting {
    let Some(auth) = auth else { return Setting::new("auth", Value::Null, "none") };
    let (fields, text) = match auth {
        Auth::Basic { user, password } => (
            json!({ "user": user, "password": password.to_string() }),
            format!("user {user}, password from {password}"),
        ),
        Auth::Bearer { token } => {
            (json!({ "token": token.to_string() }), format!("token from {token}"))
        }
        Auth::Header { name, value } => {
            (json!({ "name": name, "value": value.to_string() }), format!("{name} from {value}"))
        }
        Auth::OAuth2(client) => client_credentials(client),
        Auth::ClientCertificate { certificate, key } => (
            json!({ "certificate": certificate.to_string(), "key": key.to_string() }),
            format!("certificate from {certificate}, key from {key}"),
        ),
        Auth::AwsIdentity(WebIdentity { audience, lifetime_ms }) => {
            let lifetime = format_ms(*lifetime_ms);
            let text = format!("token for {audience}, valid for {lifetime}");
            (json!({ "audience": audience, "lifetime": lifetime }), text)
        }
        Auth::Sigv4(SigningScope { service, region }) => {
            let service = service.as_str();
            let text = format!("for {service} in {region}");
            (json!({ "service": service, "region": region }), text)
        }
    };
    Setting::new("auth", json!({ auth.kind(): fields }), format!("{}: {text}", auth.kind()))
}

/// A client; the values of its further parameters are not shown.
fn client_credentials(client: &ClientCredentials) -> (Value, String) {
    let (url, id, secret) =
        (display(&client.token_url), &client.client_id, client.client_secret.to_string());
    let parameters: Vec<&String> = client.parameters.iter().map(|(name, _)| name).collect();
    let named =
        [("scope", &client.scope), ("audience", &client.audience), ("resource", &client.resource)];
    let told =
        named.iter().filter_map(|(name, value)| Some(format!(", {name} {}", value.as_ref()?)));
    let style = client.style.as_str();
    let text =
        format!("client {id} at {url}, {style}, secret from {secret}{}", told.collect::<String>());
    let mut value = json!({
        "tokenUrl": url, "clientId": id, "clientSecret": secret, "style": style, "parameters": parameters,
    });
    for (name, text) in named {
        value[name] = json!(text);
    }
    (value, text)
}

/// The secrets that sign requests, by name.
pub(crate) fn signing(secrets: &[SecretName]) -> Setting {
    let names: Vec<String> = secrets.iter().map(ToString::to_string).collect();
    Setting::new("signing", json!(names), listed(names.into_iter()))
}

/// The public keys that are published.
fn public_keys(keys: &[PublicKey]) -> Setting {
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    Setting::new("publicKeys", json!(keys), listed(keys.into_iter()))
}

fn consent(consent: Option<&Consent>) -> Setting {
    let (value, text) = match consent {
        None => (Value::Null, "not asked for".to_owned()),
        Some(Consent::EventGrid) => {
            (json!({ "handshake": "eventgrid" }), "eventgrid handshake".to_owned())
        }
        Some(Consent::CloudEvents { origin, rate }) => {
            let value = json!({ "handshake": "cloudevents", "origin": origin, "rate": rate });
            let asked = rate.map_or(String::new(), |rate| format!(", {rate} requests a minute"));
            (value, format!("cloudevents handshake, from {origin}{asked}"))
        }
    };
    Setting::new("consent", value, text)
}

fn max_concurrency(destination: &Destination) -> Setting {
    let (most, shares) = (destination.max_concurrency, destination.shares_concurrency);
    let of = if shares { "of all functions together" } else { "of each function" };
    Setting::new("maxConcurrency", json!(most), format!("{most}, {of}"))
}

fn disable(disable: Option<Disable>) -> Setting {
    let Some(Disable { after_ms, then }) = disable else {
        return Setting::new("disable", Value::Null, "never");
    };
    let (after, then) = (format_ms(after_ms), then.as_str());
    let value = json!({ "after": after, "then": then });
    Setting::new("disable", value, format!("after {after} of failures, then {then}"))
}

/// Where replies go; an address is shown without query and credentials.
pub(crate) fn reply(subscription: &Subscription) -> Setting {
    let (value, text) = match &subscription.reply {
        None => (Value::Null, "none".to_owned()),
        Some(ReplyTo::Address(url)) => {
            let address = shown(url, subscription.destination.hide_path);
            (json!(address), address)
        }
        Some(ReplyTo::Topic(topic)) => (json!(topic.to_string()), format!("topic {topic}")),
    };
    Setting::new("reply", value, text)
}

/// Texts with commas between, or `none`.
pub(crate) fn listed(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

/// Where dead letters go; an address is shown without query and credentials.
pub(crate) fn sink(dead_letter: &DeadLetterPolicy) -> Setting {
    let value = match &dead_letter.sink {
        Sink::DefaultContainer => "default".to_owned(),
        Sink::Topic(topic) => format!("topic {topic}"),
        Sink::None => "none".to_owned(),
        Sink::Container(_) | Sink::Queue(_) | Sink::Address(_) => sink_text(dead_letter),
    };
    Setting::new("deadLetter.sink", json!(value), sink_text(dead_letter))
}

fn least_waits(waits: &LeastWaits) -> Setting {
    let mut named: Vec<(String, u64)> =
        waits.by_status.iter().map(|(of, ms)| (of.to_string(), *ms)).collect();
    named.sort();
    if waits.otherwise_ms > 0 {
        named.push(("otherwise".to_owned(), waits.otherwise_ms));
    }
    let value: serde_json::Map<String, Value> =
        named.iter().map(|(of, wait_ms)| (of.clone(), json!(format_ms(*wait_ms)))).collect();
    let text = listed(named.iter().map(|(of, wait_ms)| format!("{of} {}", format_ms(*wait_ms))));
    Setting::new("leastWaits", Value::Object(value), text)
}

/// The name of a kind of schedule, whether it numbers retries from zero, and its parameter.
fn kind_parts(kind: &Kind) -> (&'static str, bool, (&'static str, Vec<String>)) {
    let delay = |delay_ms: &u64| ("delay", vec![format_ms(*delay_ms)]);
    let list = |all_ms: &[u64]| all_ms.iter().map(|ms| format_ms(*ms)).collect();
    match kind {
        Kind::Linear { delay_ms } => ("linear", false, delay(delay_ms)),
        Kind::Exponential { delay_ms } => ("exponential", false, delay(delay_ms)),
        Kind::LinearFromZero { delay_ms } => ("linear", true, delay(delay_ms)),
        Kind::ExponentialFromZero { delay_ms } => ("exponential", true, delay(delay_ms)),
        Kind::Constant { delay_ms } => ("constant", false, delay(delay_ms)),
        Kind::Waits { waits_ms } => ("waits", false, ("waits", list(waits_ms))),
        Kind::Moments { moments_ms } => ("moments", false, ("moments", list(moments_ms))),
    }
}

fn schedule_value(schedule: &Schedule) -> Value {
    let (kind, from_zero, (parameter, values)) = kind_parts(&schedule.kind);
    let mut value = serde_json::Map::new();
    value.insert("kind".to_owned(), json!(kind));
    let of_kind = if parameter == "delay" { json!(values.first()) } else { json!(values) };
    value.insert(parameter.to_owned(), of_kind);
    if from_zero {
        value.insert("numbering".to_owned(), json!("from zero"));
    }
    if let Some(max_ms) = schedule.max_ms {
        value.insert("max".to_owned(), json!(format_ms(max_ms)));
    }
    Value::Object(value)
}

fn schedule_text(schedule: &Schedule) -> String {
    let (kind, from_zero, (_, values)) = kind_parts(&schedule.kind);
    let numbering = if from_zero { ", numbered from zero" } else { "" };
    let cap =
        schedule.max_ms.map_or(String::new(), |max_ms| format!(", at most {}", format_ms(max_ms)));
    format!("{kind} {}{numbering}{cap}", values.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::profile::Dialect;
    use crate::subscription::{Batch, OnRefused};

    fn subscription() -> Subscription {
        let (name, url) = ("n/t/s".parse().unwrap(), "https://h/".parse().unwrap());
        Subscription::new(name, Dialect::Native, url)
    }

    fn setting(subscription: &Subscription, field: &str) -> Setting {
        settings(subscription).into_iter().find(|of| of.field == field).unwrap()
    }

    #[test]
    fn every_kind_of_schedule_has_its_words() {
        let name_for = |kind, max_ms| schedule_text(&Schedule { kind, max_ms });
        assert_eq!(
            name_for(Kind::LinearFromZero { delay_ms: 200 }, None),
            "linear PT0.2S, numbered from zero"
        );
        assert_eq!(
            name_for(Kind::Exponential { delay_ms: 1_000 }, Some(60_000)),
            "exponential PT1S, at most PT1M"
        );
        assert_eq!(
            name_for(Kind::Waits { waits_ms: [1_000, 2_000].into() }, None),
            "waits PT1S PT2S"
        );
        for dialect in Dialect::ALL {
            let value = schedule_value(&Profile::of(dialect).retry.schedule);
            assert!(value["kind"].is_string(), "{value}");
        }
    }

    #[test]
    fn headers_and_signatures_are_reported_without_a_value() {
        let header = |name: &str, value| Header { name: name.to_owned(), value };
        let all = [
            header("a", HeaderValue::Static("hush".to_owned())),
            header("b", HeaderValue::Concealed("hush".to_owned())),
            header("c", HeaderValue::Path("data.x".parse().unwrap())),
            header("d", HeaderValue::Secret("env:D".parse().unwrap())),
        ];
        let name_for = headers(&all);
        assert_eq!(name_for.text, "a, b (concealed), c from $['data']['x'], d from env:D");
        assert!(
            name_for.value[2]["path"].is_string() && name_for.value[3]["secret"] == "env:D",
            "{}",
            name_for.value
        );
        assert!(!name_for.value.to_string().contains("hush"), "{}", name_for.value);
        assert_eq!(
            signing(&["env:A".parse().unwrap(), "ssm:b".parse().unwrap()]).text,
            "env:A, ssm:b"
        );
        assert_eq!((headers(&[]).text, signing(&[]).text), ("none".to_owned(), "none".to_owned()));
    }

    #[test]
    fn batches_and_consent_are_reported_also_where_there_are_none() {
        let batch = Some(Batch {
            max_events: 100,
            preferred_bytes: 64 * BATCH_KILOBYTE,
            on_refused: OnRefused::All,
        });
        let name_for = |batch| {
            let of = Subscription { batch, ..subscription() };
            ["batch.maxEvents", "batch.preferredKilobytes", "batch.onRefused"]
                .map(|field| setting(&of, field))
        };
        assert_eq!(name_for(batch).map(|of| of.value), [json!(100), json!(64), json!("all")]);
        assert_eq!(
            name_for(None).map(|of| (of.value, of.text)),
            [(); 3].map(|()| (Value::Null, NO_BATCH.to_owned()))
        );
        let asked = |rate| Consent::CloudEvents { origin: "a.example.com".to_owned(), rate };
        for (given, text) in [
            (None, "not asked for"),
            (Some(Consent::EventGrid), "eventgrid handshake"),
            (Some(asked(None)), "cloudevents handshake, from a.example.com"),
            (
                Some(asked(Some(120))),
                "cloudevents handshake, from a.example.com, 120 requests a minute",
            ),
        ] {
            assert_eq!(consent(given.as_ref()).text, text);
        }
    }

    #[test]
    fn replies_are_reported_without_a_query() {
        let mut of = subscription();
        assert_eq!((reply(&of).value, reply(&of).text), (Value::Null, "none".to_owned()));
        let address = "https://u:hush@a.example.com/in?code=hush".parse().unwrap();
        of.reply = Some(ReplyTo::Address(address));
        assert_eq!(reply(&of).text, "https://a.example.com/in");
        of.destination.hide_path = true;
        assert_eq!(reply(&of).text, "https://a.example.com/[secret]");
        of.reply = Some(ReplyTo::Topic("n/t".parse().unwrap()));
        assert_eq!(reply(&of).text, "topic n/t");
    }

    #[test]
    fn a_sink_is_reported_by_its_address_where_it_has_one() {
        for (of, uri, value, text) in [
            (Sink::DefaultContainer, None, "default", "the default container of the deployment"),
            (Sink::Container("b/x".parse().unwrap()), Some("s3://b/x"), "s3://b/x", "s3://b/x"),
            (
                Sink::Queue("h/123456789012/q".parse().unwrap()),
                Some("sqs://h/123456789012/q"),
                "sqs://h/123456789012/q",
                "sqs://h/123456789012/q",
            ),
            (
                Sink::Address("https://u:hush@h/in?code=hush".parse().unwrap()),
                Some("https://h/in"),
                "https://h/in",
                "https://h/in",
            ),
            (
                Sink::Topic("n/t".parse().unwrap()),
                None,
                "topic n/t",
                "the subscriptions of topic n/t",
            ),
            (Sink::None, None, "none", "none: dropped"),
        ] {
            let of = DeadLetterPolicy { sink: of, ..subscription().dead_letter };
            let setting = sink(&of);
            assert_eq!(
                (sink_uri(&of).as_deref(), &setting.value, setting.text.as_str()),
                (uri, &json!(value), text)
            );
        }
        let sink = Sink::Address("https://h/services/t0ken?code=hush".parse().unwrap());
        let of = DeadLetterPolicy { sink, hide_path: true, ..subscription().dead_letter };
        assert_eq!(sink_text(&of), "https://h/[secret]");
    }

    #[test]
    fn a_schema_is_reported_by_its_word_and_none_is_the_published_shape() {
        let schema = |schema| {
            let mut of = subscription();
            of.destination.schema = schema;
            setting(&of, "schema")
        };
        let name_for: Vec<String> =
            Schema::ALL.into_iter().map(|of| schema(Some(of)).text).collect();
        assert_eq!(
            name_for,
            ["cloudevents-structured", "cloudevents-binary", "eventgrid", "custom"]
        );
        assert_eq!(
            (schema(None).value, schema(None).text),
            (Value::Null, "as published".to_owned())
        );
    }
}
