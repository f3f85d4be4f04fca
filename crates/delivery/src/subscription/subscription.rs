//! A subscription: the type that documents of every dialect are read into.
//!
//! A [`Subscription`] is complete: every default has been filled in, every range checked, every
//! address parsed. Nothing that uses it needs the file it came from. A
//! [`Catalogue`](crate::subscription::catalogue::Catalogue) holds all subscriptions of a set of
//! files.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::event::Event;
use crate::event::mapping::Mapping;
use crate::event::schema::Schema;
use crate::subscription::auth::sigv4::SigningScope;
use crate::subscription::auth::{Auth, TokenSource};
use crate::subscription::batch::Batch;
use crate::subscription::credentials::{Credentials, is_credential, is_credential_parameter};
use crate::subscription::dead_letter_format::{DeadLetterFormat, ErrorData, Layout, Response};
use crate::subscription::filter::Filter;
use crate::subscription::header::{self, Header, Value};
use crate::subscription::name::{SubscriptionName, TopicName};
use crate::subscription::profile::{Dialect, Profile, RetryPolicy};
use crate::subscription::public_key::PublicKey;
use crate::subscription::secret::{Keyring, Secret, SecretName};
use crate::subscription::shown::{addressed, host_of, shown};
use crate::subscription::sink::Sink;
use crate::subscription::tls::CaBundle;
use crate::subscription::topic_address;
use crate::time::duration::SECOND_MS;

/// The HTTP endpoint and what is sent to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    /// Where requests go.
    pub url: Url,
    /// Whether its path is a credential, and that of the address for replies: then it is shown nowhere.
    pub hide_path: bool,
    /// How long to wait for a whole answer.
    pub response_timeout_ms: u64,
    /// The schema in which events are delivered; `None` means the one they were published in.
    pub schema: Option<Schema>,
    /// Without a schema: whether JSON that is no event is sent as it was published, not in an array of one.
    pub plain_json: bool,
    /// Headers of every request.
    pub headers: Vec<Header>,
    /// How it learns who is calling; `None` means not at all, or by one of the headers.
    pub auth: Option<Auth>,
    /// Authorities of its certificate, besides those that everybody trusts.
    pub ca_bundle: Option<CaBundle>,
    /// The secrets that sign requests, each with its own signature; empty means unsigned.
    pub signing: Vec<SecretName>,
    /// The public keys by which receivers verify these signatures, to be published; no request has them.
    pub public_keys: Vec<PublicKey>,
    /// Whether requests carry Event Grid's own headers.
    pub notification_headers: bool,
    /// The most requests in flight at once, per running function.
    pub max_concurrency: u32,
    /// Whether that is the most of all running functions together.
    pub shares_concurrency: bool,
    /// The most requests per second, of all running functions together; `None` means any number.
    pub max_per_second: Option<u32>,
    /// The name under which subscriptions of a namespace share these two limits; `None` means that those
    /// of one address do.
    pub shared_limit: Option<String>,
    /// An answer that takes longer than this is slow: others do not wait for it.
    pub slow_after_ms: u64,
    /// How long after its response timeout an answer still counts; 0 means not at all.
    pub late_window_ms: u64,
    /// Whether deliveries to it are deferred while it keeps failing (Event Grid, "delayed
    /// delivery").
    pub probation: bool,
    /// When it is disabled because it keeps failing; `None` means never.
    pub disable: Option<Disable>,
    /// The handshake that it has to pass before the first delivery.
    pub consent: Option<Consent>,
}

/// When a destination is disabled, and what happens to its deliveries then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disable {
    /// It has to keep failing for so long.
    pub after_ms: u64,
    /// What happens to its deliveries.
    pub then: Disabled,
}

/// What happens to deliveries to a disabled destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Disabled {
    /// They wait until it is enabled, for 14 days from publication at most.
    Hold,
    /// They become dead letters.
    DeadLetter,
}

impl Disabled {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Hold, Self::DeadLetter];

    /// Its word in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::DeadLetter => "deadLetter",
        }
    }
}

/// The handshake by which a destination consents to receive events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// Event Grid's `SubscriptionValidation`: it echoes a code, or a person opens the validation
    /// URL.
    EventGrid,
    /// CloudEvents' `OPTIONS` handshake ("HTTP 1.1 Web Hooks for Event Delivery").
    CloudEvents {
        /// `WebHook-Request-Origin`: who asks, as a DNS name.
        origin: String,
        /// `WebHook-Request-Rate`: how many requests a minute are wanted.
        rate: Option<u32>,
    },
}

/// The default of `max_concurrency`.
pub const MAX_CONCURRENCY: u32 = 50;
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
            ca_bundle: None,
            signing: Vec::new(),
            public_keys: Vec::new(),
            notification_headers: false,
            max_concurrency: MAX_CONCURRENCY,
            shares_concurrency: false,
            max_per_second: None,
            shared_limit: None,
            slow_after_ms: SLOW_AFTER_MS,
            late_window_ms: 0,
            probation: false,
            disable: None,
            consent: None,
        }
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
        of_headers.chain(self.auth.iter().flat_map(Auth::secrets)).chain(&self.signing)
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

/// What happens to a delivery that ends without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterPolicy {
    /// Where it goes.
    pub sink: Sink,
    /// Whether the path of the sink's address is a credential: then it is shown nowhere.
    pub hide_path: bool,
    /// The format of dead letters.
    pub format: DeadLetterFormat,
    /// How the namespace format is laid out.
    pub layout: Layout,
    /// How the Knative format encodes the last answer.
    pub error_data: ErrorData,
    /// How much of the last answer is stored.
    pub response: Response,
    /// The most dead letters of one hour in one blob.
    pub events_per_blob: u32,
    /// Written at the later of the decision and this long after the last attempt; at once where
    /// there was none (Event Grid, "message delivery and retry", dead-letter events).
    pub delay_ms: u64,
    /// When storage refuses a dead letter, retry until this long after the decision.
    pub keep_trying_for_ms: u64,
}

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

impl Subscription {
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

    /// A subscription with its dialect's defaults, except that dead letters are written at once.
    #[must_use]
    pub fn new(name: SubscriptionName, dialect: Dialect, url: Url) -> Self {
        let profile = Profile::of(dialect);
        let dead_letter = DeadLetterPolicy { delay_ms: 0, ..DeadLetterPolicy::of(&profile) };
        Self {
            name,
            dialect,
            destination: Destination {
                late_window_ms: profile.late_window_ms,
                probation: profile.probation,
                ..Destination::new(url, profile.response_timeout_ms)
            },
            mapping: Arc::default(),
            filter: Filter::EVERYTHING,
            retry: profile.retry,
            batch: None,
            dead_letter,
            paused: false,
            reply: None,
            expires_ms: None,
        }
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
