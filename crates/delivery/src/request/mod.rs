//! The HTTP request of one attempt, as data.
//!
//! A structured CloudEvent is sent as it was published, to the byte; so is any text of an opaque
//! topic. An Event Grid event or a custom one is sent as an array of one, as Event Grid does. Other
//! forms are made by `event::convert` and `binary` (a CloudEvent in binary mode). Headers come from
//! Event Grid (`notification`), the trace, the subscription, and a signature over the body
//! (`signature`, whose other end is [`verification`]).
//!
//! What is asked of a token server before is [`token`].
//!
//! Pure: time and secrets are arguments. An event that cannot be sent in the requested form is an
//! error, never sent in another form.

mod binary;
mod notification;
mod signature;
pub mod signer;
pub mod tls;
pub mod token;
pub mod verification;

use crate::subscription::CloudEventsHandshake;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use url::Url;
use uuid::Uuid;

pub use self::signature::KeyError;
use self::signer::Signer;
use self::tls::RequestTls;
use crate::deadletter::blob::{Enriched, enriched};
use crate::delivery::outcome::Unsendable;
use crate::delivery::{DELIVERY_NAMESPACE, DeadLetter, Delivery, DeliveryTarget, trace};
use crate::event::json::array;
use crate::event::schema::Schema;
use crate::event::{Event, Input, Shape, convert};
use crate::subscription::header::{HeaderError, Value};
use crate::subscription::secret::{Keyring, Secret};
use crate::subscription::sink::Sink;
use crate::subscription::{Consent, Destination, ReplyTo, Subscription};

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Delivers events.
    Post,
    /// Asks for consent (CloudEvents handshake).
    Options,
}

impl Method {
    /// As it is sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Options => "OPTIONS",
        }
    }
}

/// The part of an answer that decides its exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The status. What can be read of the body is for people.
    Status,
    /// The whole body too: a token, a consent. An answer without it is a failure.
    Body,
    /// The body if the head declares a reply, else the status.
    Reply,
}

/// One HTTP request to a destination. Its headers may hold secrets, so its `Debug` shows only their
/// names.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Where it goes.
    pub url: Url,
    /// Its headers, content type first.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Bytes,
    /// The timeout of the whole exchange.
    pub timeout_ms: u64,
    /// The part of the answer that decides.
    pub needs: Needs,
    /// The most bytes of the answer's body that are read.
    pub answer_max_bytes: usize,
    /// What its connection needs.
    pub tls: RequestTls,
    /// What its sender signs it with.
    pub signer: Option<Signer>,
    /// What an answer must not show, beside what this sends.
    pub hidden: Vec<Secret>,
    /// The ids of the deliveries that it carries, which are not sent; none for a handshake.
    pub deliveries: Vec<Uuid>,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            // Path and query may be credentials.
            .field("origin", &self.url.origin().ascii_serialization())
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .field("timeout_ms", &self.timeout_ms)
            .field("deliveries", &self.deliveries)
            .finish_non_exhaustive()
    }
}

/// The most headers of a request: servers accept far less, and a publisher must not be able to keep
/// us busy with more.
pub const REQUEST_HEADERS_MAX: usize = 200;
/// The most bytes of them; see [`REQUEST_HEADERS_MAX`].
pub const REQUEST_HEADERS_MAX_BYTES: usize = 64 * 1_024;

/// The most bytes of an answer that are read, unless it may be a reply.
pub const ANSWER_MAX_BYTES: usize = 64 * 1_024;

/// The longest reply.
pub const REPLY_MAX_BYTES: usize = 512 * 1_024;

/// Who sends, as a DNS name (CloudEvents "HTTP 1.1 Web Hooks for Event Delivery", 2.1).
pub const REQUEST_ORIGIN: &str = "WebHook-Request-Origin";

/// What differs from one attempt to the next.
#[derive(Debug, Clone, Copy)]
pub struct AttemptContext<'a> {
    /// The secrets that the subscription names.
    pub keyring: &'a Keyring,
    /// Now.
    pub now_ms: u64,
    /// The response timeout, shortened to what the invocation has left.
    pub timeout_ms: u64,
}

/// The request of one attempt of these deliveries: one, or several with the same [`BatchKey`].
///
/// # Errors
/// [`Unsendable`] when an event cannot be converted into the schema of the subscription, or a
/// header's value is not allowed.
pub fn compose(
    subscription: &Subscription,
    deliveries: &[&Delivery],
    context: AttemptContext<'_>,
) -> Result<Request, Unsendable> {
    if let [one] = deliveries {
        match &one.target {
            DeliveryTarget::Destination => {}
            DeliveryTarget::Reply => return compose_reply(subscription, one, context),
            DeliveryTarget::Sink(letter) => {
                return compose_dead_letter(subscription, one, letter, context);
            }
        }
    }
    let destination = &subscription.destination;
    let Content { mut headers, body } = content(subscription, deliveries)?;
    if destination.notification_headers {
        headers.extend(notification::headers(deliveries, &body));
    }
    let own = match deliveries.first() {
        Some(first) => own_headers(destination, &first.event, context.keyring)?,
        None => Vec::new(),
    };
    // A subscription may set the trace itself, and two would be invalid.
    if !own.iter().any(|(name, _)| name.eq_ignore_ascii_case(TRACE_PARENT)) {
        headers.extend(trace_headers(deliveries));
    }
    headers.extend(origin_header(destination));
    headers.extend(own);
    if !destination.signing_secrets().is_empty() {
        headers.extend(signature::headers(
            destination.signing_secrets(),
            &id_of(deliveries),
            &body,
            context,
        )?);
    }
    let (mut needs, mut answer_max_bytes) = (Needs::Status, ANSWER_MAX_BYTES);
    if subscription.reply.is_some() {
        headers.push(("prefer".to_owned(), "reply".to_owned()));
        // One more, so that a reply of exactly this length is known to be complete.
        (needs, answer_max_bytes) = (Needs::Reply, REPLY_MAX_BYTES + 1);
    }
    // Last, because values from the event count as well.
    check_size(&headers)?;
    let (url, timeout_ms) = (destination.url.clone(), context.timeout_ms);
    Ok(Request {
        method: Method::Post,
        url,
        headers,
        body,
        timeout_ms,
        needs,
        answer_max_bytes,
        tls: RequestTls::of(destination, context.keyring)?,
        signer: Signer::of(destination, context.keyring)?,
        hidden: destination.unsent_secrets(context.keyring),
        deliveries: deliveries.iter().map(|delivery| delivery.id).collect(),
    })
}

/// Refuses headers that no server would accept.
fn check_size(headers: &[(String, String)]) -> Result<(), Unsendable> {
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if headers.len() <= REQUEST_HEADERS_MAX && bytes <= REQUEST_HEADERS_MAX_BYTES {
        return Ok(());
    }
    let most = format!("{REQUEST_HEADERS_MAX} of {REQUEST_HEADERS_MAX_BYTES} bytes are the most");
    Err(Unsendable::Impossible(format!(
        "a request with {} headers of {bytes} bytes; {most}",
        headers.len()
    )))
}

/// A reply is sent to its address as a structured CloudEvent, without the destination's headers.
fn compose_reply(
    subscription: &Subscription,
    reply: &Delivery,
    context: AttemptContext<'_>,
) -> Result<Request, Unsendable> {
    let Some(ReplyTo::Address(url)) = &subscription.reply else {
        return Err(Unsendable::Impossible(format!(
            "{} has no address for replies any more",
            subscription.name
        )));
    };
    Ok(auxiliary_request(url, reply, Content::new(CLOUD_EVENT, text(reply.event.text())), context))
}

/// A dead letter is sent to its sink in its format: a CloudEvent as such, everything else as JSON.
fn compose_dead_letter(
    subscription: &Subscription,
    delivery: &Delivery,
    letter: &DeadLetter,
    context: AttemptContext<'_>,
) -> Result<Request, Unsendable> {
    let Sink::Address(url) = &subscription.dead_letter.sink else {
        return Err(Unsendable::Impossible(format!(
            "{} has no address for dead letters any more",
            subscription.name
        )));
    };
    let Enriched { json, is_cloud_event } = enriched(letter);
    let content_type = if is_cloud_event { CLOUD_EVENT } else { JSON };
    Ok(auxiliary_request(url, delivery, Content::new(content_type, json.into()), context))
}

/// A request to another address than the destination: without its headers and secrets, only with
/// the trace.
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

/// Whether a request with these deliveries goes to the destination: no other gets a secret.
#[must_use]
pub fn is_to_destination(deliveries: &[&Delivery]) -> bool {
    deliveries.iter().any(|delivery| delivery.target == DeliveryTarget::Destination)
}

/// What deliveries of a subscription need to have in common to share a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchKey {
    form: Form,
    headers: Vec<(String, String)>,
}

/// The key by which a delivery may share a request, and its bytes in the body; `None` when it
/// cannot share one.
#[must_use]
pub fn batch_key(subscription: &Subscription, delivery: &Delivery) -> Option<(BatchKey, u64)> {
    let Part::Element(form, text) = part(subscription, delivery).ok()? else { return None };
    let headers = subscription.destination.headers.iter();
    let dynamic = headers.filter(|header| matches!(header.value, Value::Path(_)));
    // Only values from the event are resolved here, and those need no secret.
    let (no_secrets, mut dynamic_headers) = (Keyring::default(), Vec::new());
    for header in dynamic {
        let value = header.value(&delivery.event, &no_secrets).ok()?;
        dynamic_headers.extend(value.map(|value| (header.name.clone(), value.into_owned())));
    }
    Some((BatchKey { form, headers: dynamic_headers }, text.len() as u64))
}

/// A stable id of a request's content: the delivery's id, or a UUIDv5 of the ids of a batch.
fn id_of(deliveries: &[&Delivery]) -> String {
    if let [one] = deliveries {
        return one.id.to_string();
    }
    let mut ids: Vec<String> = deliveries.iter().map(|delivery| delivery.id.to_string()).collect();
    // The order of a batch is that of arrival, and must not change its id.
    ids.sort_unstable();
    Uuid::new_v5(&DELIVERY_NAMESPACE, ids.join("\n").as_bytes()).to_string()
}

/// A body and the headers that describe it.
struct Content {
    headers: Vec<(String, String)>,
    body: Bytes,
}

/// The kind of the elements of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A structured CloudEvent: as it is, or in an array where the subscription batches.
    CloudEvent,
    /// An Event Grid event or a custom payload: always in an array.
    Json,
    /// A payload as it was published: in an array only where the subscription batches.
    Plain,
}

/// One event as part of a body.
enum Part {
    /// An element of an array, or a body of one element.
    Element(Form, Arc<str>),
    /// A body of its own.
    Whole(Content),
}

/// W3C Trace Context.
const TRACE_PARENT: &str = "traceparent";
const CLOUD_EVENT: &str = "application/cloudevents+json; charset=utf-8";
const CLOUD_EVENTS: &str = "application/cloudevents-batch+json; charset=utf-8";
pub(crate) const JSON: &str = "application/json; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// The content type of an event that is sent as it was published, not to a destination.
pub const fn content_type(shape: Shape) -> &'static str {
    match shape {
        Shape::CloudEvent => CLOUD_EVENT,
        Shape::EventGrid | Shape::Custom | Shape::Opaque => JSON,
    }
}

fn content(subscription: &Subscription, deliveries: &[&Delivery]) -> Result<Content, Unsendable> {
    let (mut form, mut elements) = (Form::Json, Vec::with_capacity(deliveries.len()));
    for delivery in deliveries {
        match part(subscription, delivery)? {
            Part::Whole(content) if deliveries.len() == 1 => return Ok(content),
            Part::Whole(_) => {
                return Err(Unsendable::Impossible("it cannot share a request".to_owned()));
            }
            Part::Element(of, text) => {
                form = of;
                elements.push(text);
            }
        }
    }
    Ok(match (form, &elements[..]) {
        (Form::CloudEvent, [one]) if subscription.batch.is_none() => {
            Content::new(CLOUD_EVENT, text(one))
        }
        (Form::Plain, [one]) if subscription.batch.is_none() => Content::new(JSON, text(one)),
        (Form::CloudEvent, events) => Content::new(CLOUD_EVENTS, array(events).into()),
        (Form::Json | Form::Plain, events) => Content::new(JSON, array(events).into()),
    })
}

fn part(subscription: &Subscription, delivery: &Delivery) -> Result<Part, Unsendable> {
    let as_published = match delivery.event.shape() {
        Shape::CloudEvent => Schema::CloudEventsStructured,
        Shape::EventGrid => Schema::EventGrid,
        Shape::Custom => Schema::Custom,
        Shape::Opaque => match subscription.destination.schema {
            None => return Ok(Part::Whole(Content::new(TEXT, text(delivery.event.text())))),
            Some(schema) => {
                let schema = schema.as_str();
                return Err(Unsendable::Impossible(format!(
                    "text of an opaque topic cannot be delivered as {schema}"
                )));
            }
        },
    };
    let is_custom = delivery.event.shape() == Shape::Custom;
    let mapped = is_custom.then(|| delivery.mapped(&subscription.mapping));
    let (mapped, event, topic) = (mapped.as_ref(), &delivery.event, &delivery.subscription.topic);
    let cloud_event = || convert::cloud_event(event, topic, mapped).map_err(Unsendable::Impossible);
    let Destination { schema, plain_json, .. } = subscription.destination;
    let custom = if plain_json && schema.is_none() { Form::Plain } else { Form::Json };
    Ok(match schema.unwrap_or(as_published) {
        Schema::CloudEventsStructured => Part::Element(Form::CloudEvent, cloud_event()?),
        Schema::CloudEventsBinary => Part::Whole(binary::content(&cloud_event()?)?),
        Schema::EventGrid => {
            let event = convert::event_grid(event, mapped).map_err(Unsendable::Impossible)?;
            Part::Element(Form::Json, event)
        }
        Schema::Custom => Part::Element(custom, Arc::clone(delivery.event.text())),
    })
}

impl Content {
    fn new(content_type: &str, body: Bytes) -> Self {
        Self { headers: vec![("content-type".to_owned(), content_type.to_owned())], body }
    }
}

/// The text as a body, without copying it.
fn text(text: &Arc<str>) -> Bytes {
    Bytes::from_owner(Arc::<[u8]>::from(Arc::clone(text)))
}

/// The headers of the trace, if all deliveries belong to the same one.
fn trace_headers(deliveries: &[&Delivery]) -> Vec<(String, String)> {
    let mut traces = deliveries.iter().map(|delivery| trace::of_delivery(delivery));
    let Some(Some(trace)) = traces.next() else { return Vec::new() };
    // A request has one trace: any of several would be wrong for the other events.
    if traces.any(|other| other.as_ref() != Some(&trace)) {
        return Vec::new();
    }
    let named = [(TRACE_PARENT, Some(trace.parent)), ("tracestate", trace.state)];
    named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The origin, on every delivery to a destination with the CloudEvents handshake (CloudEvents "HTTP
/// 1.1 Web Hooks", 4.1.2).
fn origin_header(destination: &Destination) -> Option<(String, String)> {
    let Some(Consent::CloudEvents(CloudEventsHandshake { origin, .. })) = &destination.consent
    else {
        return None;
    };
    Some((REQUEST_ORIGIN.to_owned(), origin.clone()))
}

/// The headers of a request without an event: those of the subscription that do not depend on one,
/// and the signature; and what its connection needs.
pub(crate) fn parts_without_event(
    destination: &Destination,
    id: &str,
    body: &[u8],
    context: AttemptContext<'_>,
) -> Result<(Vec<(String, String)>, RequestTls), Unsendable> {
    let no_event = Event::recall(&"{}".into(), Input::Auto);
    let mut headers = own_headers(destination, &no_event, context.keyring)?;
    if !destination.signing_secrets().is_empty() {
        headers.extend(signature::headers(destination.signing_secrets(), id, body, context)?);
    }
    Ok((headers, RequestTls::of(destination, context.keyring)?))
}

fn own_headers(
    destination: &Destination,
    event: &Event,
    keyring: &Keyring,
) -> Result<Vec<(String, String)>, Unsendable> {
    let named = destination.headers.iter().filter_map(|header| {
        let value = header.value(event, keyring).transpose()?;
        Some(value.map(|value| (header.name.clone(), value.into_owned())))
    });
    let mut headers: Vec<(String, String)> = named.collect::<Result<_, HeaderError>>()?;
    if let Some(auth) = &destination.auth {
        // Two would contradict each other; a file of another dialect may list one too.
        headers.retain(|(name, _)| !auth.has_header(name));
        headers.extend(auth.header(keyring)?);
    }
    Ok(headers)
}
