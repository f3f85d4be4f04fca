//! Composes the HTTP request of one attempt, as data.
//!
//! A structured CloudEvent and an opaque text are sent byte for byte as published. An Event Grid
//! event or a custom event is sent as an array of one, as Event Grid does. `event::convert` and
//! `binary` create other forms. Headers come from Event Grid (`notification`), the trace, the
//! subscription, and a signature of the body (`signature`; [`verification`] is the receiver's
//! side). [`token`] composes requests to token servers, and [`aws`] composes requests to AWS
//! resources.
//!
//! This module is pure: time and secrets are arguments. If an event cannot be sent in the requested
//! form, that is an error. It is never sent in another form.

pub mod aws;
mod batch;
mod binary;
mod body;
mod content;
mod context;
pub mod new_key;
mod notification;
mod rendered;
#[expect(clippy::module_inception, reason = "the module is named after its main type")]
mod request;
mod signature;
pub mod signer;
mod templates;
pub mod tls;
pub mod token;
pub mod verification;
mod webhook_id;

use url::Url;
use uuid::Uuid;

pub use self::batch::{BatchKey, batch_key};
pub(crate) use self::content::JSON;
pub use self::content::content_type;
use self::content::{CLOUD_EVENT, Content, text};
pub use self::context::AttemptContext;
pub use self::rendered::RenderedCredentials;
pub use self::request::{
    ANSWER_MAX_BYTES, Needs, REPLY_MAX_BYTES, REQUEST_HEADERS_MAX, REQUEST_HEADERS_MAX_BYTES,
    Request,
};
pub use self::signature::KeyError;
use self::signer::Signer;
use self::tls::RequestTls;
pub use self::webhook_id::webhook_id;
use crate::deadletter::blob::{Enriched, enriched};
use crate::delivery::outcome::Unsendable;
use crate::delivery::{DeadLetter, Delivery, DeliveryTarget, trace};
use crate::event::{Event, Input};
pub use crate::subscription::Method;
use crate::subscription::auth::Auth;
use crate::subscription::header::HeaderError;
use crate::subscription::secret::Keyring;
use crate::subscription::sink::Sink;
use crate::subscription::{CloudEventsHandshake, Consent, Destination, ReplyTo, Subscription};
use crate::template::Values;

/// Name of the header with the sender's DNS name (CloudEvents "HTTP 1.1 Web Hooks for Event
/// Delivery", 2.1).
pub const REQUEST_ORIGIN: &str = "WebHook-Request-Origin";
/// Name of the W3C Trace Context header.
const TRACE_PARENT: &str = "traceparent";

/// Composes the request of one attempt, for one delivery or for several with the same [`BatchKey`].
///
/// # Errors
/// [`Unsendable`] if an event cannot be converted to the schema of the subscription, or a header's
/// value is not allowed.
pub fn compose(
    subscription: &Subscription,
    deliveries: &[&Delivery],
    context: AttemptContext<'_>,
) -> Result<Request, Unsendable> {
    if let [delivery] = deliveries {
        match &delivery.target {
            DeliveryTarget::Destination => {}
            DeliveryTarget::Reply => return compose_reply(subscription, delivery, context),
            DeliveryTarget::Sink(letter) => {
                return compose_dead_letter(subscription, delivery, letter, context);
            }
        }
    }
    let destination = &subscription.destination;
    if let Some(target) = &destination.aws {
        return aws::compose(subscription, target, deliveries, context);
    }
    let values = templates::values(subscription, deliveries, context)?;
    let values = values.as_ref();
    let Content { mut headers, body } = templates::content(subscription, deliveries, values)?;
    if destination.notification_headers {
        headers.extend(notification::headers(deliveries, &body));
    }
    let own = match deliveries.first() {
        Some(first) => own_headers(destination, &first.event, context.keyring, values)?,
        None => Vec::new(),
    };
    // A subscription may set the trace itself, and two `traceparent` headers would be invalid.
    if !own.iter().any(|(name, _)| name.eq_ignore_ascii_case(TRACE_PARENT)) {
        headers.extend(trace_headers(deliveries));
    }
    headers.extend(origin_header(destination));
    headers.extend(own);
    let ids: Vec<Uuid> = deliveries.iter().map(|delivery| delivery.id).collect();
    if !destination.signing_secrets().is_empty() {
        headers.extend(signature::headers(
            destination.signing_secrets(),
            &webhook_id(&ids).to_string(),
            &body,
            context,
        )?);
    }
    let (mut needs, mut answer_max_bytes) = (Needs::Status, ANSWER_MAX_BYTES);
    if subscription.reply.is_some() {
        headers.push(("prefer".to_owned(), "reply".to_owned()));
        // One more byte is read, so that a reply of exactly the maximum length counts as complete.
        (needs, answer_max_bytes) = (Needs::Reply, REPLY_MAX_BYTES + 1);
    }
    // The size is checked last, because values from the event count too.
    check_size(&headers)?;
    let url = templates::url(destination, values)?;
    check_lambda_api(destination, &url)?;
    Ok(Request {
        method: destination.method,
        url,
        headers,
        body,
        timeout_ms: context.timeout_ms,
        needs,
        answer_max_bytes,
        tls: RequestTls::for_destination(destination, context.keyring)?,
        signer: Signer::for_destination(destination, context.keyring)?,
        hidden: destination.hidden_secrets(context.keyring),
        deliveries: ids,
    })
}

/// Refuses a signed request that could invoke any function through the Lambda API. A path that was
/// rendered from an event may point to this API.
fn check_lambda_api(destination: &Destination, url: &Url) -> Result<(), Unsendable> {
    let scope = destination.auth.as_ref().and_then(Auth::signing_scope);
    match scope.is_some_and(|scope| scope.is_of_api(url)) {
        true => Err(Unsendable::Blocked(
            "a URL of the Lambda API cannot be a destination: use destination.aws".to_owned(),
        )),
        false => Ok(()),
    }
}

/// Refuses a request with more than [`REQUEST_HEADERS_MAX`] headers, or whose headers exceed
/// [`REQUEST_HEADERS_MAX_BYTES`] in total.
fn check_size(headers: &[(String, String)]) -> Result<(), Unsendable> {
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if headers.len() <= REQUEST_HEADERS_MAX && bytes <= REQUEST_HEADERS_MAX_BYTES {
        return Ok(());
    }
    let most =
        format!("the limit is {REQUEST_HEADERS_MAX} headers and {REQUEST_HEADERS_MAX_BYTES} bytes");
    Err(Unsendable::Impossible(format!(
        "the request has {} headers with {bytes} bytes; {most}",
        headers.len()
    )))
}

/// Composes the request for a reply. It contains a structured CloudEvent, but none of the
/// destination's headers.
fn compose_reply(
    subscription: &Subscription,
    reply: &Delivery,
    context: AttemptContext<'_>,
) -> Result<Request, Unsendable> {
    let Some(ReplyTo::Address(url)) = &subscription.reply else {
        return Err(Unsendable::Impossible(format!(
            "the subscription {} no longer has an address for replies",
            subscription.name
        )));
    };
    Ok(auxiliary_request(url, reply, Content::new(CLOUD_EVENT, text(reply.event.text())), context))
}

/// Composes the request for a dead letter. The body is the dead letter in its format, a CloudEvent
/// or other JSON.
fn compose_dead_letter(
    subscription: &Subscription,
    delivery: &Delivery,
    letter: &DeadLetter,
    context: AttemptContext<'_>,
) -> Result<Request, Unsendable> {
    let Sink::Address(url) = &subscription.dead_letter.sink else {
        return Err(Unsendable::Impossible(format!(
            "the subscription {} no longer has an address for dead letters",
            subscription.name
        )));
    };
    let Enriched { json, is_cloud_event } = enriched(letter);
    let content_type = if is_cloud_event { CLOUD_EVENT } else { JSON };
    Ok(auxiliary_request(url, delivery, Content::new(content_type, json.into()), context))
}

/// Composes a request to an address other than the destination. It contains the trace, but none of
/// the destination's headers and secrets.
fn auxiliary_request(
    url: &Url,
    delivery: &Delivery,
    content: Content,
    context: AttemptContext<'_>,
) -> Request {
    let Content { mut headers, body } = content;
    headers.extend(trace_headers(&[delivery]));
    let (url, timeout_ms) = (url.clone(), context.timeout_ms);
    Request {
        method: Method::Post,
        url,
        headers,
        body,
        timeout_ms,
        needs: Needs::Status,
        answer_max_bytes: ANSWER_MAX_BYTES,
        tls: RequestTls::default(),
        signer: None,
        hidden: Vec::new(),
        deliveries: vec![delivery.id],
    }
}

/// Returns true if a request with these deliveries is sent to the destination. Requests to other
/// addresses get no secrets.
#[must_use]
pub fn is_to_destination(deliveries: &[&Delivery]) -> bool {
    deliveries.iter().any(|delivery| delivery.target == DeliveryTarget::Destination)
}

/// Returns the headers of the trace. They are omitted if the deliveries have different traces.
fn trace_headers(deliveries: &[&Delivery]) -> Vec<(String, String)> {
    let mut traces = deliveries.iter().map(|delivery| trace::of_delivery(delivery));
    let Some(Some(trace)) = traces.next() else { return Vec::new() };
    // A request can state only one trace, which would be wrong for the other events.
    if traces.any(|other| other.as_ref() != Some(&trace)) {
        return Vec::new();
    }
    let named = [(TRACE_PARENT, Some(trace.parent)), ("tracestate", trace.state)];
    named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns the header with the origin; `None` unless the destination has the CloudEvents handshake.
/// With this handshake, every delivery must contain the header (CloudEvents "HTTP 1.1 Web Hooks",
/// 4.1.2).
fn origin_header(destination: &Destination) -> Option<(String, String)> {
    let Some(Consent::CloudEvents(CloudEventsHandshake { origin, .. })) = &destination.consent
    else {
        return None;
    };
    Some((REQUEST_ORIGIN.to_owned(), origin.clone()))
}

/// Returns the headers of a request without an event, and the TLS requirements of its connection.
/// The headers are the signature and those that do not depend on an event.
pub(crate) fn parts_without_event(
    destination: &Destination,
    id: &str,
    body: &[u8],
    context: AttemptContext<'_>,
) -> Result<(Vec<(String, String)>, RequestTls), Unsendable> {
    let no_event = Event::recall(&"{}".into(), Input::Auto);
    let mut headers = own_headers(destination, &no_event, context.keyring, None)?;
    if !destination.signing_secrets().is_empty() {
        headers.extend(signature::headers(destination.signing_secrets(), id, body, context)?);
    }
    Ok((headers, RequestTls::for_destination(destination, context.keyring)?))
}

fn own_headers(
    destination: &Destination,
    event: &Event,
    keyring: &Keyring,
    values: Option<&Values>,
) -> Result<Vec<(String, String)>, Unsendable> {
    let named = destination.headers.iter().filter_map(|header| {
        let value = header.value(event, keyring, values).transpose()?;
        Some(value.map(|value| (header.name.clone(), value.into_owned())))
    });
    let mut headers: Vec<(String, String)> = named.collect::<Result<_, HeaderError>>()?;
    if let Some(auth) = &destination.auth {
        // Removes headers that `auth` sets too, because two values would conflict. A document in
        // another dialect may state both.
        headers.retain(|(name, _)| !auth.has_header(name));
        headers.extend(auth.header(keyring)?);
    }
    Ok(headers)
}
