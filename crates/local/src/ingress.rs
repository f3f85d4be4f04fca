//! An HTTP server on a developer's machine, for publishing events. It applies the rules of
//! [`delivery::publish`] to the topics of the subscriptions.
//!
//! In the cloud, events are published with the ingress function or directly to the queue. This
//! server rejects an invalid event or an unknown topic before it queues anything, with a 4xx status
//! and a JSON error. An accepted request is queued unchanged, as one message.

use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::events_queue::EventsQueue;
use adapters::live_topics::LiveTopics;
use adapters::machine::Machine;
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use delivery::event::Input;
use delivery::ports::{Clock as _, MESSAGE_MAX_BYTES, PublishEvents as _, SubscriptionSource as _};
use delivery::publish::{
    self, AllowedOrigins, DefaultTopic, HttpRequest, KnownKeys, Refusal, ShownKeys,
};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret::Secret;
use serde_json::json;

use crate::guard::Hosts;

/// Maximum number of topics that an error response lists.
const TOPICS_NAMED: usize = 20;

/// First segment of the path `_topics/NAMESPACE/TOPIC`. A program that publishes directly to the
/// queue requests this path to check that the topic exists. No namespace can have this name.
pub const TOPICS_PATH: &str = "_topics";

/// Key of a tag of the events queue. The value of the tag is the address of the ingress.
pub const INGRESS_TAG: &str = "lastmile:ingress";

/// The ingress: an HTTP server that publishes to the events queue.
#[derive(Debug)]
pub struct Ingress {
    /// The queue to which events are published.
    pub queue: EventsQueue,
    /// The subscriptions, which define the topics.
    pub subscriptions: LiveTopics,
    /// The topic of requests that name no topic. If it is `None` and the subscriptions have only
    /// one topic, that topic is used.
    pub default_topic: Option<TopicName>,
    /// The accepted keys. Without keys, everyone may publish.
    pub keys: Vec<Secret>,
    /// The senders whose webhook handshakes are granted.
    pub origins: AllowedOrigins,
    /// The hosts for which the ingress accepts requests.
    pub hosts: Hosts,
}

struct Refused(Refusal);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = json_response(self.0.status, self.0.body());
        let header = self.0.header();
        let header = header
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        response.headers_mut().extend(header);
        response
    }
}

fn json_response(status: u16, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

impl Ingress {
    /// Tags the events queue with the address of the ingress, where publishers check topics.
    ///
    /// # Errors
    /// Fails if the queue refuses the tag.
    pub async fn announce(&self, sqs: &aws_sdk_sqs::Client, address: &str) -> anyhow::Result<()> {
        let tag = sqs.tag_queue().queue_url(self.queue.url());
        tag.tags(INGRESS_TAG, address).send().await?;
        Ok(())
    }

    /// Returns the routes of the ingress. They refuse requests from web pages of other sites.
    pub fn router(self) -> Router {
        let hosts = self.hosts.clone();
        let routes = Router::new()
            .route(&format!("/{TOPICS_PATH}/{{namespace}}/{{topic}}"), get(describe))
            .fallback(publish)
            .layer(DefaultBodyLimit::max(MESSAGE_MAX_BYTES))
            .with_state(Arc::new(self));
        hosts.guard(routes)
    }

    /// Returns the newest subscriptions. Reads those of `topic` again, because a request to a topic
    /// that was just added must not get a 404.
    async fn newest(&self, topic: Option<&TopicName>) -> Result<Arc<Catalogue>, Refusal> {
        let newest = async {
            let known = self.subscriptions.current().await?;
            self.subscriptions.reread(known, &topic.cloned().into_iter().collect()).await
        };
        newest.await.map_err(|problem| Refusal::new(503, problem))
    }

    /// Returns the topic for a path without topic or namespace.
    async fn default_topic(&self) -> Result<DefaultTopic, Refusal> {
        if let Some(topic) = &self.default_topic {
            return Ok(topic.clone().into());
        }
        let catalogue = self.subscriptions.all().await;
        let catalogue = catalogue.map_err(|problem| Refusal::new(503, problem))?;
        Ok(only_topic(catalogue.topics().map(|topic| &topic.name)))
    }
}

/// Returns the only topic and the only namespace. Each is `None` if there are several, or none.
fn only_topic<'a>(topics: impl Iterator<Item = &'a TopicName>) -> DefaultTopic {
    let topics: BTreeSet<&TopicName> = topics.collect();
    let namespaces: BTreeSet<&String> = topics.iter().map(|topic| &topic.namespace).collect();
    let namespace = namespaces.first().filter(|_| namespaces.len() == 1);
    DefaultTopic {
        topic: topics.first().filter(|_| topics.len() == 1).map(|topic| TopicName::clone(topic)),
        namespace: namespace.map(|namespace| String::clone(namespace)),
    }
}

/// Responds to a publisher that sends to the queue and asks about a topic. The response is
/// `{"topic","queue"}`, or `{"error","queue"}` with 404 for an unknown topic. The publisher
/// compares the queue with its own.
async fn describe(
    State(ingress): State<Arc<Ingress>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Refused> {
    let Path((namespace, topic)) =
        path.map_err(|problem| Refusal::new(problem.status().as_u16(), problem.body_text()))?;
    let topic = TopicName { namespace, topic };
    let queue = ingress.queue.url();
    Ok(match topic_input(&ingress, &topic).await {
        Ok(_) => axum::Json(json!({ "topic": topic.to_string(), "queue": queue })).into_response(),
        Err(Refusal { status, text, .. }) => {
            json_response(status, json!({ "error": text, "queue": queue }).to_string())
        }
    })
}

async fn publish(
    State(ingress): State<Arc<Ingress>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refused> {
    let body = body.map_err(|problem| unread_body(&problem, &headers))?;
    let headers: Vec<(String, Vec<u8>)> = headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect();
    let request = HttpRequest {
        method: method.as_str(),
        path: uri.path(),
        query: uri.query().unwrap_or_default(),
        headers: &headers,
        body: &body,
    };
    if let Some(granted) = publish::handshake(&request, &ingress.origins)? {
        publish::route(&request, &ingress.default_topic().await?)?;
        return Ok(granted_response(granted));
    }
    if let Some(answer) = publish::validation_response(&request) {
        publish::route(&request, &ingress.default_topic().await?)?;
        return Ok(json_response(200, answer));
    }
    if !ingress.keys.is_empty() {
        let shown = ShownKeys::read(&request)?;
        publish::check_key(&shown, KnownKeys::all(&ingress.keys), Machine.now_ms())?;
    }
    let route = publish::route(&request, &ingress.default_topic().await?)?;
    let input = topic_input(&ingress, &route.topic).await?;
    let message = publish::message(&request, &route, input, Machine.now_ms())?;
    let sent = ingress.queue.publish(&message.topic, &message.body).await;
    let id = sent.map_err(|error| Refusal::unpublished(&error))?;
    Ok(json_response(route.status, route.answer(&id, message.events)))
}

fn granted_response(granted: Vec<(&'static str, String)>) -> Response {
    let headers = granted.into_iter().filter_map(|(name, value)| {
        Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?))
    });
    headers.collect::<HeaderMap>().into_response()
}

/// Returns the error for a body that could not be read. If the body is too large and the sender
/// declared its size, the error contains the size.
fn unread_body(problem: &BytesRejection, headers: &HeaderMap) -> Refusal {
    if problem.status() != StatusCode::PAYLOAD_TOO_LARGE {
        return Refusal::new(problem.status().as_u16(), problem.body_text());
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let has = match length.and_then(|length| length.parse::<u64>().ok()) {
        Some(bytes) => format!("has {bytes} bytes"),
        None => "is too large".to_owned(),
    };
    let text = format!(
        "the body {has}; the limit is {MESSAGE_MAX_BYTES} bytes (1 MiB), as for an SQS message"
    );
    Refusal::new(413, text)
}

async fn topic_input(ingress: &Ingress, topic: &TopicName) -> Result<Input, Refusal> {
    let catalogue = ingress.newest(Some(topic)).await?;
    if let Some(topic) = catalogue.topic(topic) {
        return Ok(topic.settings.input);
    }
    let all = ingress.subscriptions.all().await.unwrap_or_default();
    let names = all.topics().map(|topic| topic.name.to_string());
    let names: Vec<String> = names.take(TOPICS_NAMED).collect();
    let message = format!("the topic {topic} does not exist; topics: {}", names.join(", "));
    Err(Refusal::new(404, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_topic_is_the_default_and_so_is_the_only_namespace() {
        for (topics, topic, namespace) in [
            (&[][..], None, None),
            (&["shop/orders"], Some("shop/orders"), Some("shop")),
            (&["shop/orders", "shop/returns"], None, Some("shop")),
            (&["shop/orders", "home/orders"], None, None),
        ] {
            let topics: Vec<TopicName> = topics.iter().map(|name| name.parse().unwrap()).collect();
            let expected = DefaultTopic {
                topic: topic.map(|topic| topic.parse().unwrap()),
                namespace: namespace.map(ToOwned::to_owned),
            };
            assert_eq!(only_topic(topics.iter()), expected);
        }
    }
}
