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
use delivery::event::binary::{self, ContentMode, header_text};
use delivery::event::envelope::decode;
use delivery::event::{Element, Input};
use delivery::ports::{MESSAGE_MAX_BYTES, SubscriptionSource as _};
use delivery::subscription::name::TopicName;
use delivery::wire::TOPIC_ATTRIBUTE;
use serde_json::json;

use crate::guard::Hosts;

/// The header that tells a CloudEvent in binary mode.
const VERSION_HEADER: &str = "ce-specversion";
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
    let content_type = content_type(headers);
    let content_type = content_type.as_deref();
    let mode = ContentMode::of(content_type);
    if mode == ContentMode::Data && headers.contains_key(VERSION_HEADER) {
        let structured = binary::structured(&binary_attributes(headers), content_type, body);
        return structured.map_err(bad_request);
    }
    let is_json = content_type.is_some_and(binary::is_json) && mode != ContentMode::OtherFormat;
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
    match (mode, body.trim_start().starts_with('[')) {
        (ContentMode::Structured, true) => {
            Err(bad_request("an array is sent as application/cloudevents-batch+json"))
        }
        (ContentMode::Batched, false) => Err(bad_request("a batch is a JSON array of events")),
        (ContentMode::Structured, false)
        | (ContentMode::Batched, true)
        | (ContentMode::OtherFormat | ContentMode::Data, _) => Ok(body),
    }
}

fn bad_request(problem: impl Into<String>) -> Refusal {
    Refusal(StatusCode::BAD_REQUEST, problem.into())
}

/// How the events are read: a publisher that declares CloudEvents has to send valid ones.
fn effective_input(headers: &HeaderMap, declared_input: Input) -> Input {
    let says_cloud_event = headers.contains_key(VERSION_HEADER)
        || ContentMode::of(content_type(headers).as_deref()) != ContentMode::Data;
    if declared_input == Input::Auto && says_cloud_event {
        Input::CloudEvents
    } else {
        declared_input
    }
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    headers.get("content-type").map(|value| header_text(value.as_bytes()))
}

/// The attributes of an event in binary mode, from the headers `ce-…`.
fn binary_attributes(headers: &HeaderMap) -> Vec<(String, String)> {
    let attributes = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().strip_prefix("ce-")?, value)));
    attributes.map(|(name, value)| (name.to_owned(), header_text(value.as_bytes()))).collect()
}

/// Counts the events; an empty array has none. The first invalid one rejects the whole request.
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
    Ok(elements.len())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const REQUIRED: [(&str, &[u8]); 4] =
        [("ce-specversion", b"1.0"), ("ce-id", b"1"), ("ce-source", b"/s"), ("ce-type", b"t")];
    const EVENT: &str = r#"{"specversion":"1.0","id":"2","source":"/s","type":"t"}"#;

    /// What becomes of a request with these headers beside the required ones of binary mode.
    fn received(more: &[(&str, &[u8])], body: &str) -> Result<(String, usize), (u16, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in REQUIRED.iter().chain(more) {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.append(name, HeaderValue::from_bytes(value).expect("a value"));
        }
        let read = message_body(&headers, body.as_bytes(), Input::Auto).and_then(|body| {
            let events = count_events(&body, effective_input(&headers, Input::Auto))?;
            Ok((body, events))
        });
        read.map_err(|Refusal(status, problem)| (status.as_u16(), problem))
    }

    #[test]
    fn a_body_in_an_event_format_is_the_event_whatever_its_headers_repeat() {
        let single = received(&[("content-type", b"application/cloudevents+json")], EVENT);
        assert_eq!(single, Ok((EVENT.to_owned(), 1)));
        let batch = format!("[{EVENT},{EVENT}]");
        let read = received(&[("content-type", b"Application/CloudEvents-Batch+JSON")], &batch);
        assert_eq!(read, Ok((batch, 2)));
        let (status, _) = received(&[("content-type", b"application/cloudevents+avro")], "x")
            .expect_err("a format that is not read");
        assert_eq!(status, 415);
    }

    #[test]
    fn an_empty_batch_is_accepted() {
        for content_type in ["application/cloudevents-batch+json", "application/json"] {
            let headers = HeaderMap::from_iter([(
                HeaderName::from_static("content-type"),
                HeaderValue::from_static(content_type),
            )]);
            let body = message_body(&headers, b" [ ]", Input::Auto).ok().expect("an array");
            let count = count_events(&body, effective_input(&headers, Input::Auto));
            assert_eq!(count.ok(), Some(0), "{content_type}");
        }
    }

    #[test]
    fn attributes_in_headers_are_unquoted_and_decoded_or_the_request_is_refused() {
        for (subject, read) in [
            (&b"Euro%20%E2%82%AC"[..], "Euro €"),
            ("Grüße".as_bytes(), "Grüße"),
            (br#""a \"b\"""#, r#"a \"b\""#),
        ] {
            let (body, _) = received(&[("ce-subject", subject)], "").expect("an event");
            assert!(body.contains(&format!(r#""subject":"{read}""#)), "{body}");
        }
        for subject in [&b"%FF"[..], b"100%", b"\xff", b"Gr\xfc\xdfe"] {
            let (status, problem) = received(&[("ce-subject", subject)], "").expect_err("invalid");
            assert_eq!(status, 400);
            assert!(problem.contains("ce-subject"), "{problem}");
        }
        let (status, problem) = received(&[("ce-id", b"2")], "").expect_err("a second id");
        assert_eq!((status, problem.contains("twice")), (400, true), "{problem}");
    }
}
