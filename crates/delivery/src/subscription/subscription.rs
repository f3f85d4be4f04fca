//! A subscription: the type that documents of every dialect are read into.
//!
//! A [`Subscription`] is complete: every default has been filled in, every range checked, every
//! address parsed. Nothing that uses it needs the file it came from. A
//! [`Catalogue`](crate::subscription::catalogue::Catalogue) holds all subscriptions of a set of
//! files.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::document::kind::{Duration, Flag, Integer, Merged, OneOf, Whole, Word};
use crate::document::record::{NoFields, Optional, Or, Required};
use crate::event::Event;
use crate::event::mapping::Mapping;
use crate::event::schema::Schema;
use crate::subscription::auth::sigv4::SigningScope;
use crate::subscription::auth::{Auth, TokenSource};
use crate::subscription::batch::Batch;
use crate::subscription::concurrency::{Concurrencies, Concurrency};
use crate::subscription::credentials::{Credentials, is_credential, is_credential_parameter};
use crate::subscription::dead_letter_format::{DeadLetterFormat, ErrorData, Layout, Response};
use crate::subscription::filter::Filter;
use crate::subscription::header::{self, Header, Value};
use crate::subscription::kinds::address::Endpoint;
use crate::subscription::kinds::batches::Batches;
use crate::subscription::kinds::ca_bundle::CaBundles;
use crate::subscription::kinds::headers::Headers;
use crate::subscription::kinds::secrets::{PUBLIC_KEYS, SECRETS};
use crate::subscription::kinds::sinks::{DeadLetters, Sinks};
use crate::subscription::kinds::{auth, limits, names};
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::profile::{Dialect, Profile, RESPONSE_TIMEOUT_MAX_MS, RetryPolicy};
use crate::subscription::public_key::PublicKey;
use crate::subscription::secret::{Keyring, Secret, SecretName};
use crate::subscription::shown::{addressed, host_of, shown};
use crate::subscription::sink::Sink;
use crate::subscription::tls::CaBundle;
use crate::subscription::topic_address;
use crate::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS};

record! {
    /// Where requests go and what they carry.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Destination {
        /// Where requests go: http://…, https://…, a key of a Destinations document, or topic:namespace/topic.
        "url" => pub url: Url = Required(Endpoint::OF_EVENTS),
        /// The form in which events are sent; without it, the one in which they were published: an Event Grid event in an
        /// array of one, other JSON as plainJson says.
        "schema" => pub schema: Option<Schema> = Optional(Word(&Schema::ALL, Schema::as_str), "as published"),
        /// true sends JSON that is no event unchanged; false sends it in an array of one.
        "plainJson" => pub plain_json: bool = Required(Flag),
        /// true treats the path of the URL as a credential: it is shown nowhere, and hidden in responses.
        "hidePath" => pub hide_path: bool = Required(Flag),
        /// The time limit for a complete response; at most PT10M.
        "timeout" => pub response_timeout_ms: u64 = Required(Duration(1..=RESPONSE_TIMEOUT_MAX_MS)),
        /// The most requests in flight at once, of all running functions together; without it 50 for each of them.
        /// Subscriptions with the same address share it.
        "maxConcurrency" => pub max_concurrency: Concurrency = Or(Concurrencies, Concurrency::DEFAULT),
        /// Headers of every request.
        "headers" => pub headers: Vec<Header> = Or(Headers, Vec::new()),
        /// How requests authenticate: exactly one of these.
        "auth" => pub auth: Option<Auth> = Optional(OneOf::<Auth>::new(), "none"),
        /// Certificate authorities for its certificate.
        "tls" => pub tls: Option<Tls> = Optional(Whole::<Tls>::new(), "none"),
        /// Secrets that sign every request.
        "signing" => pub signing: Option<Signing> = Optional(Whole::<Signing>::new(), "none"),
        /// true adds the headers of Event Grid (aeg-…).
        "notificationHeaders" => pub notification_headers: bool = Required(Flag),
        /// The most requests per second, of all running functions together. Subscriptions with the same address share it.
        /// Excess requests wait; waiting is no attempt.
        "maxPerSecond" => pub max_per_second: Option<u32> = Optional(Integer(limits::PER_SECOND), "no limit"),
        /// The response time above which the destination counts as slow; at most PT10M. Its deliveries then have a queue of
        /// their own.
        "slowAfter" => pub slow_after_ms: u64 = Required(Duration(1..=RESPONSE_TIMEOUT_MAX_MS)),
        /// How long after the timeout a response still counts; PT0S to PT10M, PT0S means not at all.
        "lateResponseWindow" => pub late_window_ms: u64 = Required(Duration(0..=RESPONSE_TIMEOUT_MAX_MS)),
        /// true defers deliveries while the destination keeps failing. This begins after ten failures of at least two events;
        /// each success halves the count.
        "probation" => pub probation: bool = Required(Flag),
        /// When it is disabled because it keeps failing.
        "disable" => pub disable: Option<Disable> = Optional(Whole::<Disable>::new(), "never"),
        /// The handshake that validates it before the first delivery.
        "consent" => pub consent: Option<Consent> = Optional(OneOf::<Consent>::new(), "not asked for"),
    }
    check auth::check;
}

record! {
    /// Certificate authorities for the certificate of a destination.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tls {
        /// Additional trusted authorities, in PEM.
        "caBundle" => pub ca_bundle: CaBundle = Required(CaBundles),
    }
}

record! {
    /// Secrets that sign every request (Standard Webhooks), each with a signature of its own: `v1` with a shared secret
    /// (`whsec_…`), `v1a` with a private key (`whsk_…`).
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Signing {
        /// One, or several while one is rotated.
        "secrets" => pub secrets: Vec<SecretName> = Required(SECRETS),
        /// The public keys of `whsk_` secrets. `apply` writes them as a JSON Web Key Set for receivers.
        "publicKeys" => pub public_keys: Option<Vec<PublicKey>> = Optional(PUBLIC_KEYS, "none"),
    }
}

record! {
    /// When a destination that keeps failing is disabled, until an operator enables it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Disable {
        /// The time that it has to keep failing; PT1H to P14D.
        "after" => pub after_ms: u64 = Required(Duration(HOUR_MS..=14 * DAY_MS)),
        /// What happens to its deliveries: they wait, for 14 days from publication at most, or become dead letters.
        "then" => pub then: Disabled = Or(Word(&Disabled::ALL, Disabled::as_str), Disabled::Hold),
    }
}

words! {
    /// What happens to deliveries to a disabled destination.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub enum Disabled {
        /// They wait until it is enabled, for 14 days from publication at most.
        Hold = "hold",
        /// They become dead letters.
        DeadLetter = "deadLetter",
    }
}

alternatives! {
    /// The handshake by which a destination consents to receive events, before the first delivery.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Consent by "handshake" {
        /// The handshake of Event Grid: it echoes a code, or a person opens the validation URL.
        "eventgrid" => EventGrid(NoFields),
        /// The handshake of CloudEvents: an OPTIONS request ("HTTP 1.1 Web Hooks for Event Delivery").
        "cloudevents" => CloudEvents(CloudEventsHandshake),
    }
}

record! {
    /// The `OPTIONS` request of CloudEvents.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CloudEventsHandshake {
        /// The sender, as a DNS name: `WebHook-Request-Origin`.
        "origin" => pub origin: String = Required(names::DNS_NAME),
        /// How many requests a minute are asked for; without it, none in particular: `WebHook-Request-Rate`.
        "rate" => pub rate: Option<u32> = Optional(Integer(1..=1_000_000), "none"),
    }
}

/// The default of `slow_after_ms`.
pub const SLOW_AFTER_MS: u64 = 2 * SECOND_MS;

impl Destination {
    /// A destination at this address with default settings.
    #[must_use]
    pub fn new(url: Url, response_timeout_ms: u64) -> Self {
        Self {
            url,
            hide_path: false,
            response_timeout_ms,
            schema: None,
            plain_json: false,
            headers: Vec::new(),
            auth: None,
            tls: None,
            signing: None,
            notification_headers: false,
            max_concurrency: Concurrency::DEFAULT,
            max_per_second: None,
            slow_after_ms: SLOW_AFTER_MS,
            late_window_ms: 0,
            probation: false,
            disable: None,
            consent: None,
        }
    }

    /// Authorities of its certificate, besides those that everybody trusts.
    #[must_use]
    pub fn ca_bundle(&self) -> Option<&CaBundle> {
        self.tls.as_ref().map(|tls| &tls.ca_bundle)
    }

    /// The secrets that sign requests, each with its own signature; empty means unsigned.
    #[must_use]
    pub fn signing_secrets(&self) -> &[SecretName] {
        self.signing.as_ref().map_or(&[], |signing| &signing.secrets)
    }

    /// The public keys by which receivers verify these signatures, to be published; no request has them.
    #[must_use]
    pub fn public_keys(&self) -> &[PublicKey] {
        let stated = self.signing.as_ref().and_then(|signing| signing.public_keys.as_deref());
        stated.unwrap_or_default()
    }

    /// What a request with this event sends as credentials: secrets, headers that hold them by their
    /// name, and what is confidential in the address.
    #[must_use]
    pub fn credentials(&self, keyring: &Keyring, event: Option<&Event>) -> Credentials {
        let mut credentials = self.header_credentials(keyring, event);
        credentials.add_url(&self.url);
        if self.hide_path {
            credentials.add_path(&self.url);
        }
        credentials
    }

    /// Those that no event has by chance: of at least eight bytes, from secrets and from headers with a
    /// value of their own, from the user info of the address, from values of its query that are
    /// credentials by their name, and its path where that is one.
    #[must_use]
    pub fn certain_credentials(&self, keyring: &Keyring) -> Credentials {
        let mut credentials = self.header_credentials(keyring, None);
        credentials.add_user(&self.url);
        credentials.add_query(&self.url, is_credential_parameter);
        if self.hide_path {
            credentials.add_path(&self.url);
        }
        credentials.certain()
    }

    /// Those of the headers.
    fn header_credentials(&self, keyring: &Keyring, event: Option<&Event>) -> Credentials {
        let mut credentials = Credentials::default();
        // Not the signing secrets: they are never sent, so no answer can echo them.
        for header in &self.headers {
            let is_credential = is_credential(&header.name);
            match &header.value {
                Value::Secret(name) => {
                    let value = keyring.get(name);
                    value.into_iter().for_each(|value| credentials.add_header(value.expose()));
                }
                Value::Concealed(value) => credentials.add_header(value),
                Value::Static(value) if is_credential => credentials.add_header(value),
                Value::Path(path) if is_credential => {
                    let sent = event.and_then(|event| header::of_event(path, event));
                    sent.into_iter().for_each(|sent| credentials.add_header(&sent.value));
                }
                Value::Static(_) | Value::Path(_) => {}
            }
        }
        let of_auth = self.auth.as_ref().and_then(|auth| auth.header(keyring).ok()?);
        of_auth.iter().for_each(|(_, value)| credentials.add_header(value));
        for secret in self.unsent_secrets(keyring) {
            credentials.add_header(secret.expose());
        }
        // A service that refuses a signature repeats what was signed.
        if let Some(token) = keyring.aws().and_then(|aws| aws.session_token.as_ref()) {
            credentials.add(token.expose().as_bytes());
        }
        credentials
    }

    /// What an answer may repeat although its request does not send it: the secret of a client, which is sent to the token server,
    /// perhaps of the same operator, and tokens that were refused.
    #[must_use]
    pub fn unsent_secrets(&self, keyring: &Keyring) -> Vec<Secret> {
        let mut unsent = keyring.refused().to_vec();
        if let Some(TokenSource::Client(client)) = self.token_source()
            && let Some(secret) = keyring.get(&client.client_secret)
        {
            unsent.push(Secret::new(client.basic(secret.expose().trim())));
            unsent.push(Secret::new(secret.expose().trim().to_owned()));
        }
        unsent
    }

    /// Every secret that a request needs, with each address for which it has to be allowed: who gets a token gets what
    /// its secret stands for, although only the token server gets that.
    pub fn secrets_with_addresses(&self) -> impl Iterator<Item = (&SecretName, &Url)> {
        let of_client = match self.token_source() {
            Some(TokenSource::Client(client)) => Some((&client.client_secret, &client.token_url)),
            Some(TokenSource::Aws(_)) | None => None,
        };
        self.secrets().map(|name| (name, &self.url)).chain(of_client)
    }

    /// Where the token comes from that a request needs, if it needs one.
    #[must_use]
    pub fn token_source(&self) -> Option<TokenSource<'_>> {
        self.auth.as_ref().and_then(Auth::token_source)
    }

    /// For whom requests are signed with credentials of AWS, if they are.
    #[must_use]
    pub fn signing_scope(&self) -> Option<&SigningScope> {
        self.auth.as_ref().and_then(Auth::signing_scope)
    }

    /// Whether requests show who is calling at AWS: by a signature, or a token.
    #[must_use]
    pub fn shows_aws_identity(&self) -> bool {
        self.signing_scope().is_some() || matches!(self.token_source(), Some(TokenSource::Aws(_)))
    }

    /// Whether a request needs what its file does not hold: secrets, or credentials of AWS.
    #[must_use]
    pub fn needs_keyring(&self) -> bool {
        self.signing_scope().is_some()
            || self.token_source().is_some()
            || self.secrets().next().is_some()
    }

    /// Every secret with a name that a request needs.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretName> {
        let of_headers = self.headers.iter().filter_map(|header| match &header.value {
            Value::Secret(name) => Some(name),
            Value::Static(_) | Value::Concealed(_) | Value::Path(_) => None,
        });
        of_headers.chain(self.auth.iter().flat_map(Auth::secrets)).chain(self.signing_secrets())
    }

    /// The topic to whose subscriptions its events go on, where it is one: then no request is made.
    #[must_use]
    pub fn topic(&self) -> Option<TopicName> {
        topic_address::topic_of(&self.url)
    }

    /// Who receives its requests: host and port.
    #[must_use]
    pub fn host(&self) -> String {
        host_of(&self.url)
    }

    /// The address without credentials and query, and without its path where that is one.
    #[must_use]
    pub fn display(&self) -> String {
        shown(&self.url, self.hide_path)
    }

    /// The address without credentials; without path and query where the path is one.
    #[must_use]
    pub fn address(&self) -> String {
        addressed(&self.url, self.hide_path)
    }
}

record! {
    /// What happens to a delivery that ends without success.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct DeadLetterPolicy {
        /// An address (https://…, s3://bucket/prefix, sqs://host/account/name), a key of a Destinations document, or a topic;
        /// without it, the default container.
        "sink" => pub sink: Sink = Or(Sinks, Sink::DefaultContainer),
        /// true treats the path of a sink that is an address as a credential: it is shown nowhere, and hidden in responses.
        "hidePath" => pub hide_path: bool = Required(Flag),
        /// The format of a dead letter: Event Grid's formats or Knative's.
        "format" => pub format: DeadLetterFormat = Required(Word(&DeadLetterFormat::ALL, DeadLetterFormat::as_str)),
        /// Of the namespace format: the event as a member of its own, or its members beside deadletterProperties.
        "layout" => pub layout: Layout = Required(Word(&Layout::ALL, Layout::as_str)),
        /// The most dead letters of one hour in one blob, as far as one invocation has them.
        "eventsPerBlob" => pub events_per_blob: u32 = Required(Integer(1..=EVENTS_PER_BLOB_MAX)),
        /// How knativeerrordata of the knative format encodes the last response.
        "errorData" => pub error_data: ErrorData = Required(Word(&ErrorData::ALL, ErrorData::as_str)),
        /// How much of the last response is stored: the beginning of its body, in which credentials are hidden, or none of it.
        "response" => pub response: Response = Required(Word(&Response::ALL, Response::as_str)),
        /// Written this long after the last attempt (Event Grid, "message delivery and retry"); at most PT15M.
        "delay" => pub delay_ms: u64 = Required(Duration(0..=DELAY_MAX_MS)),
        /// How long to retry if storage refuses; PT1M to P3D.
        "keepTryingFor" => pub keep_trying_for_ms: u64 = Required(Duration(MINUTE_MS..=KEEP_TRYING_MAX_MS)),
    }
}

/// The longest delay of one message.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html>
const DELAY_MAX_MS: u64 = 15 * MINUTE_MS;
/// The longest time to retry: there is a try every five minutes, and a queue gives up a message
/// after 1,000 receives.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html>
const KEEP_TRYING_MAX_MS: u64 = 3 * DAY_MS;
/// The most dead letters of a blob: no invocation has more records.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html>
pub const EVENTS_PER_BLOB_MAX: u32 = 10_000;

impl DeadLetterPolicy {
    /// The defaults of a dialect: the container of the deployment, one dead letter per blob.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        Self {
            sink: Sink::DefaultContainer,
            hide_path: false,
            format: profile.dead_letter_format,
            layout: Layout::Nested,
            error_data: ErrorData::Text,
            response: Response::default(),
            events_per_blob: 1,
            delay_ms: profile.dead_letter_delay_ms,
            keep_trying_for_ms: profile.keep_trying_for_ms,
        }
    }
}

/// Where replies of a destination go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyTo {
    /// To this address.
    Address(Url),
    /// To the subscriptions of this topic.
    Topic(TopicName),
}

/// Which events of a topic go where, and how their delivery is retried.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscription {
    /// Its full name.
    pub name: SubscriptionName,
    /// Whose rules it follows.
    pub dialect: Dialect,
    /// Where its events go.
    pub destination: Destination,
    /// Which fields of its topic's custom events are its attributes.
    pub mapping: Arc<Mapping>,
    /// Which events it delivers.
    pub filter: Filter,
    /// How deliveries are retried.
    pub retry: RetryPolicy,
    /// How events are batched; `None` means one event per request.
    pub batch: Option<Batch>,
    /// What happens to failed deliveries.
    pub dead_letter: DeadLetterPolicy,
    /// Deliveries are held and not attempted.
    pub paused: bool,
    /// Where replies of the destination go; `None` ignores them.
    pub reply: Option<ReplyTo>,
    /// From this time on it matches no new events.
    pub expires_ms: Option<u64>,
}

record! {
    /// How events of a topic are delivered: the fields that a Subscription and the `delivery` of its Topic have in common.
    #[derive(Debug, Clone, PartialEq)]
    pub struct DeliverySettings {
        /// How deliveries are retried.
        "retry" => pub retry: RetryPolicy = Required(Merged::<RetryPolicy>::new()),
        /// Where requests go and what they carry.
        "destination" => pub destination: Destination = Required(Merged::<Destination>::new()),
        /// Events that travel in one request; maxEvents or preferredKilobytes asks for it.
        "batch" => pub batch: Option<Batch> = Batches,
        /// What happens to an event that cannot be delivered: none drops it.
        "deadLetter" => pub dead_letter: DeadLetterPolicy = Required(DeadLetters),
        /// true holds the events, up to 14 days.
        "paused" => pub paused: bool = Or(Flag, false),
    }
}

impl DeliverySettings {
    /// The defaults of a dialect, for an address.
    #[must_use]
    pub fn of(dialect: Dialect, url: Url) -> Self {
        let profile = Profile::of(dialect);
        Self {
            destination: Destination {
                plain_json: profile.plain_json,
                notification_headers: profile.notification_headers,
                late_window_ms: profile.late_window_ms,
                probation: profile.probation,
                ..Destination::new(url, profile.response_timeout_ms)
            },
            dead_letter: DeadLetterPolicy::of(&profile),
            retry: profile.retry,
            batch: None,
            paused: false,
        }
    }
}

impl From<&Subscription> for DeliverySettings {
    fn from(subscription: &Subscription) -> Self {
        Self {
            destination: subscription.destination.clone(),
            retry: subscription.retry.clone(),
            batch: subscription.batch,
            dead_letter: subscription.dead_letter.clone(),
            paused: subscription.paused,
        }
    }
}

impl Subscription {
    /// The same subscription with these settings.
    #[must_use]
    pub fn with(self, settings: DeliverySettings) -> Self {
        let DeliverySettings { destination, retry, batch, dead_letter, paused } = settings;
        Self { destination, retry, batch, dead_letter, paused, ..self }
    }

    /// The other topics that its deliveries may lead to: as their destination, by replies, and by dead letters.
    pub fn other_topics(&self) -> impl Iterator<Item = TopicName> {
        let of_reply = match &self.reply {
            Some(ReplyTo::Topic(topic)) => Some(topic),
            Some(ReplyTo::Address(_)) | None => None,
        };
        let of_sink = match &self.dead_letter.sink {
            Sink::Topic(topic) => Some(topic),
            Sink::DefaultContainer
            | Sink::Container(_)
            | Sink::Queue(_)
            | Sink::Address(_)
            | Sink::None => None,
        };
        of_reply.into_iter().chain(of_sink).cloned().chain(self.destination.topic())
    }

    /// A subscription to every event of its topic with these settings.
    #[must_use]
    pub fn with_settings(
        name: SubscriptionName,
        dialect: Dialect,
        settings: DeliverySettings,
    ) -> Self {
        let DeliverySettings { destination, retry, batch, dead_letter, paused } = settings;
        Self {
            name,
            dialect,
            destination,
            mapping: Arc::default(),
            filter: Filter::EVERYTHING,
            retry,
            batch,
            dead_letter,
            paused,
            reply: None,
            expires_ms: None,
        }
    }

    /// A subscription with its dialect's defaults, except that dead letters are written at once.
    #[must_use]
    pub fn new(name: SubscriptionName, dialect: Dialect, url: Url) -> Self {
        let mut new = Self::with_settings(name, dialect, DeliverySettings::of(dialect, url));
        new.dead_letter.delay_ms = 0;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::auth::oauth2::{ClientCredentials, Style};

    #[test]
    fn names_are_read_back_and_bad_ones_are_explained() {
        for text in ["shop/orders/billing", "a b/ö/日本"] {
            assert_eq!(
                text.parse::<SubscriptionName>().map(|name| name.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "shop", "shop/orders", "shop//billing", "a/b/c/d", "a/b/", "a/b/\u{7}"] {
            let error = text.parse::<SubscriptionName>().expect_err(text);
            assert!(error.contains("namespace/topic/name"), "{error}");
        }
    }

    #[test]
    fn a_destination_is_shown_without_query_and_credentials() {
        let destination = Destination::new(
            Url::parse("https://user:secret@example.com/in?code=secret#f").unwrap(),
            1,
        );
        assert_eq!(destination.display(), "https://example.com/in");
        assert_eq!(destination.address(), "https://example.com/in?code=[secret]#f");
    }

    #[test]
    fn what_a_client_shows_to_its_token_server_and_a_refused_token_are_hidden_in_answers() {
        let client = ClientCredentials {
            token_url: "https://login.example.com/".parse().unwrap(),
            client_id: "acme".to_owned(),
            client_secret: "env:CLIENT".parse().unwrap(),
            scope: None,
            audience: None,
            resource: None,
            style: Style::Basic,
            parameters: Vec::new(),
        };
        let destination = Destination {
            auth: Some(Auth::OAuth2(Box::new(client))),
            ..Destination::new("https://example.com/".parse().unwrap(), 1)
        };
        let secret = |text: &str| Secret::new(text.to_owned());
        let keyring: Keyring =
            [("env:CLIENT".parse().unwrap(), secret("s3cret-of-acme"))].into_iter().collect();
        let keyring = keyring.with_token(secret("first-token")).with_token(secret("second-token"));
        // printf 'acme:s3cret-of-acme' | base64
        for value in
            ["first-token", "second-token", "s3cret-of-acme", "YWNtZTpzM2NyZXQtb2YtYWNtZQ=="]
        {
            let told = format!("you sent {value}, now");
            for credentials in
                [destination.credentials(&keyring, None), destination.certain_credentials(&keyring)]
            {
                assert_eq!(credentials.hide_in_text(told.clone()), "you sent [secret], now");
            }
        }
    }

    #[test]
    fn a_path_that_is_a_credential_is_not_shown() {
        let url =
            Url::parse("https://user:secret@example.com:8443/services/T0/abc?code=secret").unwrap();
        let destination = Destination { hide_path: true, ..Destination::new(url, 1) };
        assert_eq!(destination.display(), "https://example.com:8443/[secret]");
        assert_eq!(destination.address(), "https://example.com:8443/[secret]");
    }
}
