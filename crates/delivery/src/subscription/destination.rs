//! [`Destination`]: where requests are sent, and what they contain.

use url::Url;

use crate::document::findings::Message;
use crate::document::kind::{Duration, Flag, Integer, OneOf, Whole, Word};
use crate::document::reader::{Cursor, Fields};
use crate::document::record::{Optional, Or, Required};
use crate::event::schema::Schema;
use crate::subscription::auth::{Auth, TokenSource};
use crate::subscription::aws::AwsTarget;
use crate::subscription::concurrency::{Concurrencies, Concurrency};
use crate::subscription::destination_address::Address;
use crate::subscription::destination_parts::{Consent, Disable, Signing, Tls};
use crate::subscription::destination_url::{DestinationUrl, EventsUrl};
use crate::subscription::header::{Header, Value};
use crate::subscription::kinds::auth::obstacle;
use crate::subscription::kinds::body_fields::OfBody;
use crate::subscription::kinds::headers::Headers;
use crate::subscription::kinds::limits;
use crate::subscription::kinds::references::KeyOf;
use crate::subscription::kinds::templates::{Body, CONTENT_TYPE, Query, Text};
use crate::subscription::method::Method;
use crate::subscription::name::TopicName;
use crate::subscription::profile::RESPONSE_TIMEOUT_MAX_MS;
use crate::subscription::public_key::PublicKey;
use crate::subscription::secret::SecretName;
use crate::subscription::shown::{addressed, host_of, shown};
use crate::subscription::signature_scope::SignatureScope;
use crate::subscription::templates::{QueryParameter, Templated};
use crate::subscription::tls::CaBundle;
use crate::subscription::topic_address;
use crate::template::{BodyTemplate, TextTemplate};
use crate::time::duration::SECOND_MS;

record! {
    /// The address and the contents of requests.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Destination {
        /// Address of requests: http://…, https://…, a key of a Destinations document, or
        /// topic:namespace/topic. The path may contain expressions; each is a segment or a part of
        /// a segment. Required, unless `aws` is set.
        "url" => pub url: DestinationUrl = Address(Required(EventsUrl)),
        /// An AWS resource in place of the URL, such as a queue or a function.
        "aws" => pub aws: Option<Box<AwsTarget>> = Optional(Whole::<Box<AwsTarget>>::KIND, "none"),
        /// The key in a Destinations document from which `url` was resolved. If a document maps the
        /// key, `url` is resolved again.
        "reference" => pub reference: Option<String> = KeyOf("url"),
        /// HTTP method of every request. A GET request has no body.
        "method" => pub method: Method = Or(Word(&Method::OF_EVENTS, Method::as_str), Method::Post),
        /// Parameters that are added to the query of the URL. Values may contain expressions.
        "query" => pub query: Vec<QueryParameter> = Or(Query, Vec::new()),
        /// JSON body that replaces the event. Strings may contain expressions. A string that
        /// consists of one expression becomes the value of the expression, which may have any type.
        /// `null` sends the event, even if the Topic sets a body.
        "body" => pub body: Option<Templated<BodyTemplate>> = OfBody(Optional(Body, "the event")),
        /// Text body that replaces the event, for bodies that are not JSON. The text may contain
        /// expressions.
        "bodyText" => pub body_text: Option<Templated<TextTemplate>> = OfBody(Optional(Text("destination.bodyText"), "the event")),
        /// Content type of `body` or `bodyText`. The default is `application/json` for `body`, and
        /// `text/plain` for `bodyText`.
        "contentType" => pub content_type: Option<String> = OfBody(Optional(CONTENT_TYPE, "the type of the body")),
        /// Format of events in requests. Without a schema, events keep the format in which they
        /// were published. An Event Grid event is then sent in an array with one element, and
        /// `plainJson` applies to JSON that is not an event.
        "schema" => pub schema: Option<Schema> = Optional(Word(&Schema::ALL, Schema::as_str), "as published"),
        /// If `true`, JSON that is not an event is sent unchanged. If `false`, it is sent in an
        /// array with one element.
        "plainJson" => pub plain_json: bool = Required(Flag),
        /// If `true`, the path of the URL is treated as a credential: it is never displayed, and it
        /// is masked in responses.
        "hidePath" => pub hide_path: bool = Required(Flag),
        /// Time limit for a complete response; at most PT10M.
        "timeout" => pub response_timeout_ms: u64 = Required(Duration(1..=RESPONSE_TIMEOUT_MAX_MS)),
        /// Maximum number of concurrent requests of all functions together. Without this field,
        /// each running function allows 50. Subscriptions of a namespace with the same address
        /// share the limit.
        "maxConcurrency" => pub max_concurrency: Concurrency = Or(Concurrencies, Concurrency::DEFAULT),
        /// Headers that are added to every request.
        "headers" => pub headers: Vec<Header> = Or(Headers, Vec::new()),
        /// Authentication of requests. Set exactly one of its fields.
        "auth" => pub auth: Option<Auth> = Optional(OneOf::<Auth>::KIND, "none"),
        /// Additional certificate authorities to trust when the certificate of the destination is
        /// verified.
        "tls" => pub tls: Option<Tls> = Optional(Whole::<Tls>::KIND, "none"),
        /// Secrets that sign every request.
        "signing" => pub signing: Option<Signing> = Optional(Whole::<Signing>::KIND, "none"),
        /// If `true`, the headers of Event Grid (`aeg-…`) are added to requests.
        "notificationHeaders" => pub notification_headers: bool = Required(Flag),
        /// Maximum average number of requests per second of all functions together. Subscriptions of
        /// a namespace with the same address share the limit. Excess requests wait; a wait does not
        /// count as an attempt. With a limit of N, one second usually has at most
        /// 2N + 1 requests, for example 11 with 5.
        "maxPerSecond" => pub max_per_second: Option<u32> = Optional(Integer(limits::PER_SECOND), "no limit"),
        /// Response time above which the destination counts as slow; at most PT10M. Deliveries to
        /// slow destinations use a separate queue.
        "slowAfter" => pub slow_after_ms: u64 = Required(Duration(1..=RESPONSE_TIMEOUT_MAX_MS)),
        /// Time after the timeout in which a response still counts; PT0S to PT10M. PT0S ignores
        /// late responses.
        "lateResponseWindow" => pub late_window_ms: u64 = Required(Duration(0..=RESPONSE_TIMEOUT_MAX_MS)),
        /// If `true`, deliveries are deferred while the destination keeps failing. Deferring begins
        /// after ten failures of at least two events; each success halves the count of failures.
        "probation" => pub probation: bool = Required(Flag),
        /// Disables the destination if it keeps failing for the time in `after`.
        "disable" => pub disable: Option<Disable> = Optional(Whole::<Disable>::KIND, "never"),
        /// Handshake that the destination must complete before the first delivery.
        "consent" => pub consent: Option<Consent> = Optional(OneOf::<Consent>::KIND, "not requested"),
    }
    check check;
}

/// The settings of a destination that may contain credentials.
pub(super) struct Confidential<'d> {
    pub(super) headers: &'d [Header],
    pub(super) auth: Option<&'d Auth>,
    pub(super) signing: Option<&'d Signing>,
    /// The names of secrets that templates contain.
    pub(super) templates: Vec<&'d SecretName>,
}

/// Checks the rules between several fields of a destination, which apply in documents of all types.
fn check(destination: &Destination, fields: &Fields<'_>) -> Option<()> {
    if destination.aws.is_some() {
        return check_aws(destination, fields);
    }
    check_auth(destination, fields)?;
    check_body(destination, fields)
}

/// Checks a destination with an AWS resource: the Subscription itself must not state fields that
/// only requests to a URL have. Such fields in its Topic are ignored, because they apply to other
/// subscriptions.
fn check_aws(destination: &Destination, fields: &Fields<'_>) -> Option<()> {
    let of_urls =
        ["method", "query", "headers", "auth", "tls", "signing", "consent", "contentType"];
    let used = [
        ("lateResponseWindow", destination.late_window_ms > 0),
        ("notificationHeaders", destination.notification_headers),
        ("hidePath", destination.hide_path),
    ];
    let used = used.into_iter().filter_map(|(name, is_used)| is_used.then_some(name));
    let mut stated = of_urls.into_iter().chain(used).filter_map(|name| fields.own(name));
    if let Some(at) = stated.find(|at| !at.is_null()) {
        let message = Message::new(format!("an AWS target does not support {}", at.name()));
        return at.refuse(
            message.help("requests to AWS targets are signed with the role InvokeRoleArn"),
        );
    }
    let at = |names: &[&'static str]| {
        let own = names.iter().find_map(|name| fields.own(name));
        own.unwrap_or_else(|| fields.parent().clone())
    };
    if destination.body.is_some() && destination.body_text.is_some() {
        return at(&["bodyText", "body"]).refuse("set only one of body and bodyText");
    }
    if destination.schema == Some(Schema::CloudEventsBinary) {
        let message = Message::new(
            "an AWS target does not support the schema cloudevents-binary, which sends attributes \
             as headers",
        );
        return at(&["schema", "aws"]).refuse(message.help("schema: cloudevents-structured"));
    }
    Some(())
}

/// Checks that a destination states at most one body, and reports settings that do not fit it.
fn check_body(destination: &Destination, fields: &Fields<'_>) -> Option<()> {
    let at = |names: &[&'static str]| {
        let own = names.iter().find_map(|name| fields.own(name));
        own.unwrap_or_else(|| fields.parent().clone())
    };
    if destination.consent.is_some() && destination.url.path.is_some() {
        let message = "a url with expressions cannot require consent, because consent applies to \
                       one address";
        return at(&["consent", "url"]).refuse(message);
    }
    let Destination { body, body_text, content_type, method, schema, .. } = destination;
    match (body, body_text) {
        (Some(_), Some(_)) => at(&["bodyText", "body"]).refuse("set only one of body and bodyText"),
        (None, None) if content_type.is_some() => {
            at(&["contentType"]).refuse("contentType requires body or bodyText")
        }
        (None, None) => Some(()),
        (Some(_), None) | (None, Some(_)) if *method == Method::Get => {
            let message = Message::new("a GET request has no body: set another method");
            let names = ["body", "bodyText", "method"];
            at(&names).refuse(match elsewhere(fields, names) {
                Some(stated) => message.help(stated),
                None => message,
            })
        }
        (Some(_), None) | (None, Some(_)) => {
            if let (Some(_), Some(at)) = (schema, fields.own("schema")) {
                at.warn("no effect: the template determines the body");
            }
            Some(())
        }
    }
}

/// Returns a sentence with the position of the first of these fields that another document states.
fn elsewhere<const N: usize>(fields: &Fields<'_>, names: [&'static str; N]) -> Option<String> {
    let mut inherited = names.into_iter().filter(|name| fields.own(name).is_none());
    inherited.find_map(|name| {
        let at = fields.of_base(name).filter(Cursor::is_stated)?;
        Some(format!("{name} is set at {}", at.location()))
    })
}

/// Checks that the `auth` of a destination fits its headers and its URL, whichever document states
/// `auth`.
fn check_auth(destination: &Destination, fields: &Fields<'_>) -> Option<()> {
    let headers = destination.headers.iter().map(|header| header.name.as_str());
    let problem =
        destination.auth.as_ref().and_then(|auth| obstacle(auth, headers, &destination.url));
    let Some((field, message)) = problem else { return Some(()) };
    // A finding must refer to a field of this document, even if a Topic states the value.
    let own = [field, "auth", "headers", "url"].into_iter().find_map(|field| fields.own(field));
    own.unwrap_or_else(|| fields.parent().clone()).refuse(message)
}

/// Default value of `slowAfter`.
pub const SLOW_AFTER_MS: u64 = 2 * SECOND_MS;

impl Destination {
    /// Returns a destination with this URL and default settings.
    #[must_use]
    pub fn new(url: Url, response_timeout_ms: u64) -> Self {
        Self {
            url: url.into(),
            aws: None,
            reference: None,
            method: Method::Post,
            query: Vec::new(),
            body: None,
            body_text: None,
            content_type: None,
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

    /// Removes the settings that only requests to a URL have, if the destination is an AWS
    /// resource. A Topic may state them for other subscriptions.
    #[must_use]
    pub(super) fn without_parts_of_urls(self) -> Self {
        if self.aws.is_none() {
            return self;
        }
        // The pattern names every field, so that a new field does not compile until it is handled
        // here.
        let Self {
            url,
            aws,
            reference: _,
            method: _,
            query: _,
            body,
            body_text,
            content_type: _,
            schema,
            plain_json,
            hide_path: _,
            response_timeout_ms,
            max_concurrency,
            headers: _,
            auth: _,
            tls: _,
            signing: _,
            notification_headers: _,
            max_per_second,
            slow_after_ms,
            late_window_ms: _,
            probation,
            disable,
            consent: _,
        } = self;
        Self {
            aws,
            body,
            body_text,
            schema,
            plain_json,
            max_concurrency,
            max_per_second,
            slow_after_ms,
            probation,
            disable,
            ..Self::new((*url).clone(), response_timeout_ms)
        }
    }

    /// Returns the certificate authorities to trust in addition to the public ones; `None` if there
    /// are none.
    #[must_use]
    pub fn ca_bundle(&self) -> Option<&CaBundle> {
        self.tls.as_ref().map(|tls| &tls.ca_bundle)
    }

    /// Returns the names of the secrets that sign requests. Each secret creates one signature.
    /// Without secrets, requests have no webhook signature.
    #[must_use]
    pub fn signing_secrets(&self) -> &[SecretName] {
        self.signing.as_ref().map_or(&[], |signing| &signing.secrets)
    }

    /// Returns the public keys with which receivers verify signatures. They are published as a key
    /// set and not sent in requests.
    #[must_use]
    pub fn public_keys(&self) -> &[PublicKey] {
        let stated = self.signing.as_ref().and_then(|signing| signing.public_keys.as_deref());
        stated.unwrap_or_default()
    }

    /// Lists every secret that a request needs, with the address to which the secret policy must
    /// allow sending the secret. The secret of an OAuth client has two addresses. The token server
    /// receives it, and the destination receives a token that gives the same access.
    pub fn secrets_with_addresses(&self) -> impl Iterator<Item = (&SecretName, &Url)> {
        let of_client = match self.token_source() {
            Some(TokenSource::Client(client)) => Some((&client.client_secret, &client.token_url)),
            Some(TokenSource::Aws(_)) | None => None,
        };
        self.secrets().map(|name| (name, self.receiver())).chain(of_client)
    }

    /// Returns the issuer of the token that requests need; `None` if they need no token.
    #[must_use]
    pub fn token_source(&self) -> Option<TokenSource<'_>> {
        self.auth.as_ref().and_then(Auth::token_source)
    }

    /// Returns the scope of the AWS signature; `None` if requests have no AWS signature.
    #[must_use]
    pub fn signing_scope(&self) -> Option<SignatureScope> {
        let of_auth = || self.auth.as_ref().and_then(Auth::signing_scope).map(SignatureScope::from);
        self.aws.as_deref().map(SignatureScope::from).or_else(of_auth)
    }

    /// Returns true if requests prove the AWS identity of the deployment, by a signature or a
    /// token.
    #[must_use]
    pub fn shows_aws_identity(&self) -> bool {
        self.signing_scope().is_some() || matches!(self.token_source(), Some(TokenSource::Aws(_)))
    }

    /// Returns true if requests need values that are not in documents: secrets, tokens or AWS
    /// credentials.
    #[must_use]
    pub fn needs_keyring(&self) -> bool {
        self.signing_scope().is_some()
            || self.token_source().is_some()
            || self.secrets().next().is_some()
    }

    /// Lists the names of the secrets that a request needs.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretName> {
        let Confidential { headers, auth, signing, templates } = self.confidential();
        let of_headers = headers.iter().filter_map(|header| match &header.value {
            Value::Secret(name) => Some(name),
            Value::Static(_) | Value::Concealed(_) | Value::Path(_) | Value::Template(_) => None,
        });
        let of_signing = signing.into_iter().flat_map(|signing| &signing.secrets);
        let of_auth = auth.into_iter().flat_map(Auth::secrets);
        of_headers.chain(of_auth).chain(of_signing).chain(templates)
    }

    /// Returns the settings that may contain credentials. The `let` pattern names every field of
    /// [`Destination`], so that a new field does not compile until it is handled here. The URL is
    /// not included: `Credentials` splits it into parts.
    pub(super) fn confidential(&self) -> Confidential<'_> {
        let Self {
            headers,
            auth,
            signing,
            url,
            aws,
            query,
            body,
            body_text,
            method: _,
            content_type: _,
            reference: _,
            schema: _,
            plain_json: _,
            hide_path: _,
            response_timeout_ms: _,
            max_concurrency: _,
            tls: _,
            notification_headers: _,
            max_per_second: _,
            slow_after_ms: _,
            late_window_ms: _,
            probation: _,
            disable: _,
            consent: _,
        } = self;
        let of_headers = self.template_headers().map(|template| &template.secrets);
        let of_url = url.path.iter().map(|template| &template.secrets);
        let of_query = query.iter().map(|parameter| &parameter.value.secrets);
        let of_bodies = body
            .iter()
            .map(|template| &template.secrets)
            .chain(body_text.iter().map(|template| &template.secrets));
        let of_aws =
            aws.iter().flat_map(|aws| &aws.parameters).map(|parameters| &parameters.secrets);
        let of_parts = of_headers.chain(of_url).chain(of_query).chain(of_bodies).chain(of_aws);
        let templates = of_parts.flatten().collect();
        Confidential { headers, auth: auth.as_ref(), signing: signing.as_ref(), templates }
    }

    /// Returns the topic if the destination is a topic. Its events are then published there without
    /// a request.
    #[must_use]
    pub fn topic(&self) -> Option<TopicName> {
        topic_address::topic_of(&self.url)
    }

    /// Returns the URL of the server that receives requests: the destination's own URL, or the
    /// endpoint of the AWS service.
    #[must_use]
    pub fn receiver(&self) -> &Url {
        self.aws.as_ref().map_or(&*self.url, |aws| aws.endpoint())
    }

    /// Returns the host and port of the server that receives requests.
    #[must_use]
    pub fn host(&self) -> String {
        host_of(self.receiver())
    }

    /// Returns the URL for display, without credentials and query. With `hidePath`, the path is
    /// hidden too.
    #[must_use]
    pub fn display(&self) -> String {
        self.url.readable(shown(&self.url, self.hide_path))
    }

    /// Returns the URL without credentials. With `hidePath`, path and query are hidden too.
    #[must_use]
    pub fn address(&self) -> String {
        self.url.readable(addressed(&self.url, self.hide_path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_path_that_is_a_credential_is_not_shown() {
        let url =
            Url::parse("https://user:secret@example.com:8443/services/T0/abc?code=secret").unwrap();
        let destination = Destination { hide_path: true, ..Destination::new(url, 1) };
        assert_eq!(destination.display(), "https://example.com:8443/[secret]");
        assert_eq!(destination.address(), "https://example.com:8443/[secret]");
    }
}
