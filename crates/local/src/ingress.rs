//! Publishing over HTTP: `POST /topics/{namespace}/{topic}`.
//!
//! For a developer's machine; in the cloud, publishers send to the queue. An invalid event is
//! rejected before anything is queued, with a 4xx and a JSON error. An accepted request is queued
//! unchanged, as one message.

use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::aws_error::sentence;
use adapters::live_catalogue::Subscriptions;
use adapters::queues::text_attribute;
use aws_sdk_sqs::Client;
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use delivery::event::envelope::decode;
use delivery::event::{Element, Input, binary};
use delivery::ports::{MESSAGE_MAX_BYTES, SubscriptionSource as _};
use delivery::subscription::name::TopicName;
use delivery::wire::TOPIC_ATTRIBUTE;
use serde_json::json;

use crate::guard::Hosts;

/// The error for every other route.
const ONLY_ROUTE: &str = "the only route is POST /topics/{namespace}/{topic}";

/// The tag of the events queue with the address of its ingress.
pub const INGRESS_TAG: &str = "lastmile:ingress";

/// The ingress: an HTTP front end of the events queue.
#[derive(Debug)]
pub struct Ingress {
    /// The client of the events queue.
    pub client: Client,
    /// The URL of the events queue.
    pub events_queue_url: String,
    /// The subscriptions, which define the topics.
    pub subscriptions: Subscriptions,
}

/// Why a request is rejected: the status and the error message.
struct Refusal(StatusCode, String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, axum::Json(json!({ "error": self.1 }))).into_response()
    }
}

impl Ingress {
    /// Tags the events queue with this address of the ingress, where publishers find which topics there are.
    ///
    /// # Errors
    /// When the queue does not take it.
    pub async fn announce(&self, address: &str) -> anyhow::Result<()> {
        let tag = self.client.tag_queue().queue_url(&self.events_queue_url);
        tag.tags(INGRESS_TAG, address).send().await?;
        Ok(())
    }

    /// The routes, closed to web pages of other sites.
    pub fn router(self) -> Router {
        let routes = Router::new()
            .route("/topics/{namespace}/{topic}", post(publish).get(describe))
            .layer(DefaultBodyLimit::max(MESSAGE_MAX_BYTES))
            .fallback(async || Refusal(StatusCode::NOT_FOUND, ONLY_ROUTE.to_owned()))
            .method_not_allowed_fallback(async || {
                Refusal(StatusCode::METHOD_NOT_ALLOWED, ONLY_ROUTE.to_owned())
            })
            .with_state(Arc::new(self));
        Hosts::default().guard(routes)
    }

    async fn send(&self, topic: &TopicName, body: &str) -> Result<String, Refusal> {
        let send = self.client.send_message().queue_url(&self.events_queue_url).message_body(body);
        let topic = text_attribute(&topic.to_string());
        match send.message_attributes(TOPIC_ATTRIBUTE, topic).send().await {
            Ok(sent) => Ok(sent.message_id().unwrap_or_default().to_owned()),
            Err(error) => {
                // An error of the service itself (the message is too large with its topic, or has
                // characters that SQS forbids) would be the same for every retry: 422, not 503.
                let status = match error.as_service_error() {
                    Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
                    None => StatusCode::SERVICE_UNAVAILABLE,
                };
                let error = sentence(&error);
                let problem = format!("the events queue did not accept the message: {error}");
                Err(Refusal(status, problem))
            }
        }
    }
}

/// Whether there is this topic, for publishers that send to the queue: `{"topic","queue"}`, and of an
/// unknown one `{"error","queue"}` with 404. By the queue they know that it is about theirs.
async fn describe(
    State(ingress): State<Arc<Ingress>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Refusal> {
    let Path((namespace, topic)) =
        path.map_err(|problem| Refusal(problem.status(), problem.body_text()))?;
    let topic = TopicName { namespace, topic };
    let queue = &ingress.events_queue_url;
    Ok(match topic_input(&ingress, &topic).await {
        Ok(_) => axum::Json(json!({ "topic": topic.to_string(), "queue": queue })).into_response(),
        Err(Refusal(status, problem)) => {
            (status, axum::Json(json!({ "error": problem, "queue": queue }))).into_response()
        }
    })
}

async fn publish(
    State(ingress): State<Arc<Ingress>>,
    path: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let Path((namespace, topic)) =
        path.map_err(|problem| Refusal(problem.status(), problem.body_text()))?;
    let body = body.map_err(|problem| unread_body(&problem, &headers))?;
    let topic = TopicName { namespace, topic };
    let declared_input = topic_input(&ingress, &topic).await?;
    let body = message_body(&headers, &body, declared_input)?;
    let events = count_events(&body, effective_input(&headers, declared_input))?;
    let message = ingress.send(&topic, &body).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(json!({ "messageId": message, "events": events })))
        .into_response())
}

/// Why a body was not read; of one that is too large, how large it is, if its sender says so.
fn unread_body(problem: &BytesRejection, headers: &HeaderMap) -> Refusal {
    if problem.status() != StatusCode::PAYLOAD_TOO_LARGE {
        return Refusal(problem.status(), problem.body_text());
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let has = match length.and_then(|length| length.parse::<u64>().ok()) {
        Some(bytes) => format!("has {bytes} bytes"),
        None => "is larger".to_owned(),
    };
    let text = format!(
        "the body {has}; at most {MESSAGE_MAX_BYTES} bytes (1 MiB) are accepted, the limit of an SQS message"
    );
    Refusal(problem.status(), text)
}

async fn topic_input(ingress: &Ingress, topic: &TopicName) -> Result<Input, Refusal> {
    let newest = async {
        let known = ingress.subscriptions.current().await?;
        // The newest: a topic that was just added must not be a 404.
        ingress.subscriptions.reread(known, &BTreeSet::from([topic.clone()])).await
    };
    let catalogue = newest.await;
    let catalogue =
        catalogue.map_err(|problem| Refusal(StatusCode::SERVICE_UNAVAILABLE, problem))?;
    catalogue.topic(topic).map(|topic| topic.input).ok_or_else(|| {
        let known: Vec<String> = catalogue.topics().map(|topic| topic.name.to_string()).collect();
        let others = match catalogue.topics_read().next() {
            None => format!("; the topics are: {}", known.join(", ")),
            // Nobody reads a whole catalogue for this.
            Some(_) => String::new(),
        };
        Refusal(StatusCode::NOT_FOUND, format!("there is no topic {topic}{others}"))
    })
}

/// The body of the message: the request's body unchanged, or the structured form of a binary-mode
/// event.
fn message_body(headers: &HeaderMap, body: &[u8], input: Input) -> Result<String, Refusal> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let content_type = text("content-type");
    if text("ce-specversion").is_some() {
        return Ok(binary::structured(&binary_attributes(headers)?, content_type, body));
    }
    let is_json = content_type.is_some_and(binary::is_json);
    if !is_json && input != Input::Opaque {
        let found = content_type.unwrap_or("none");
        let problem = format!(
            "the content type is {found}; application/cloudevents+json, application/cloudevents-batch+json or \
             application/json is expected, or ce-* headers for an event in binary mode"
        );
        return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem));
    }
    let body = String::from_utf8(body.to_vec());
    let body = body.map_err(|error| bad_request(format!("the body is not UTF-8: {error}")))?;
    let essence = content_type.and_then(|text| text.split(';').next()).unwrap_or_default();
    let is_array = body.trim_start().starts_with('[');
    match essence.trim().to_ascii_lowercase().as_str() {
        "application/cloudevents+json" if is_array => {
            Err(bad_request("an array is sent as application/cloudevents-batch+json"))
        }
        "application/cloudevents-batch+json" if !is_array => {
            Err(bad_request("a batch is a JSON array of events"))
        }
        _ => Ok(body),
    }
}

fn bad_request(problem: impl Into<String>) -> Refusal {
    Refusal(StatusCode::BAD_REQUEST, problem.into())
}

/// How the events are read: a publisher that declares CloudEvents has to send valid ones.
fn effective_input(headers: &HeaderMap, declared_input: Input) -> Input {
    let content_type =
        headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let says_cloud_event = headers.contains_key("ce-specversion")
        || content_type.trim_start().to_ascii_lowercase().starts_with("application/cloudevents");
    if declared_input == Input::Auto && says_cloud_event {
        Input::CloudEvents
    } else {
        declared_input
    }
}

/// The attributes of an event in binary mode, from the headers `ce-…`.
fn binary_attributes(headers: &HeaderMap) -> Result<Vec<(String, String)>, Refusal> {
    let attributes = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().strip_prefix("ce-")?, value)));
    let read = attributes.map(|(name, value)| match value.to_str() {
        Ok(value) => Ok((name.to_owned(), value.to_owned())),
        Err(_) => {
            let problem = format!(
                "the header ce-{name} is not ASCII; other characters are percent-encoded as UTF-8"
            );
            Err(bad_request(problem))
        }
    });
    read.collect()
}

/// Counts the events. The first invalid one rejects the whole request.
fn count_events(body: &str, input: Input) -> Result<usize, Refusal> {
    let elements = decode(&body.into(), input);
    for (index, element) in elements.iter().enumerate() {
        let problem = match element {
            Element::Malformed { why, .. } => format!("event {index} is malformed: {why}"),
            Element::Event(event) if event.members().id().as_deref() == Some("") => {
                format!("event {index}: id is empty")
            }
            Element::Event(_) => continue,
        };
        return Err(bad_request(problem));
    }
    match elements.len() {
        0 => Err(bad_request("the array holds no event")),
        events => Ok(events),
    }
}
