//! Checks whether a topic exists before events are published to it.
//!
//! The check is necessary because a queue accepts events for any topic. Events for an unknown topic
//! become dead letters, and the publisher gets no error. For a deployment, the module reads the
//! subscriptions. For `lastmile dev`, it asks the ingress, whose address is in a tag of the events
//! queue.
//!
//! Promises: a check fails only if the topic is known to be missing, or if the subscriptions of a
//! deployment cannot be read.

use std::collections::BTreeSet;
use std::time::Duration;

use adapters::live_topics::Location;
use anyhow::bail;
use aws_sdk_sqs::Client;
use axum::http::StatusCode;
use delivery::subscription::name::TopicName;
use local::ingress::{INGRESS_TAG, TOPICS_PATH};
use serde::Deserialize;
use url::Url;

use crate::operations::this_machine::is_here;
use crate::operations::topics::{self, Wanted};
use crate::terminal::text;

/// The timeout of a request to the ingress of `lastmile dev`.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The advice in the error about an unknown topic.
const ADVICE: &str = "events would become dead letters; use --allow-unknown to publish anyway";

/// The response of the ingress of `lastmile dev` for an unknown topic.
#[derive(Deserialize)]
struct Unknown {
    /// The URL of the events queue. Only the ingress of `lastmile dev` sends this member, so a
    /// response of another program is not parsed.
    #[serde(rename = "queue")]
    _queue: Url,
    error: String,
}

/// Checks that the subscriptions of a deployment contain a topic.
///
/// # Errors
/// If the topic does not exist, or the subscriptions cannot be read.
pub(crate) async fn check_deployed(topic: &TopicName, location: &Location) -> anyhow::Result<()> {
    let wanted = Wanted::Topics(BTreeSet::from([topic.clone()]));
    let deployed = topics::read(location, wanted).await?;
    if deployed.reading.catalogue.topic(topic).is_some() {
        return Ok(());
    }
    bail!("there is no topic {topic} in {}\n  {ADVICE}", deployed.source)
}

/// Asks `lastmile dev` whether a topic exists. Does nothing if the queue is not on this machine, or
/// has no tag with the address of an ingress.
///
/// # Errors
/// If the topic does not exist.
pub(crate) async fn check_dev(topic: &TopicName, sqs: &Client, queue: &Url) -> anyhow::Result<()> {
    let Some(ingress) = ingress_of(sqs, queue).await else { return Ok(()) };
    match ask(topic, ingress).await {
        Ok(Some(unknown)) => bail!("{}\n  {ADVICE}", text::line(&unknown.error)),
        // If the ingress does not respond, or a different program responds, the topic may exist.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Returns the ingress URL in the queue's tag, if the queue and the ingress are on this machine.
async fn ingress_of(sqs: &Client, queue: &Url) -> Option<Url> {
    if !is_here(queue) {
        return None;
    }
    let tags = sqs.list_queue_tags().queue_url(queue.as_str()).send().await.ok()?.tags?;
    tags.get(INGRESS_TAG)?.parse().ok().filter(is_here)
}

/// Asks the ingress whether a topic exists. Returns the response about an unknown topic; `None` for
/// any status other than 404.
async fn ask(topic: &TopicName, mut ingress: Url) -> anyhow::Result<Option<Unknown>> {
    if let Ok(mut path) = ingress.path_segments_mut() {
        path.extend([TOPICS_PATH, &topic.namespace, &topic.topic]);
    }
    // The request is local and without TLS. Trust no certificates, so that none have to be
    // installed.
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).timeout(TIMEOUT);
    let client = client.build()?;
    let answer = client.get(ingress).send().await?;
    if answer.status() != StatusCode::NOT_FOUND {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&answer.bytes().await?)?)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use local::aws::{LocalAws, LocalAwsConfig, local_clients};

    use super::*;
    use crate::operations::this_machine::listen;

    const OTHER: &str = "http://127.0.0.1:1";
    const UNKNOWN: &str = r#"{"error":"there is no topic shop/orders","queue":"http://q/"}"#;

    /// Starts a fake ingress that responds with this status and body to a request about the topic.
    async fn saying(status: StatusCode, body: &'static str) -> String {
        let listener = listen(0).await.expect("a port is free");
        let address = format!("http://{}", listener.local_addr().expect("it has an address"));
        let routes = Router::new().route("/_topics/shop/orders", get(async move || (status, body)));
        tokio::spawn(axum::serve(listener, routes).into_future());
        address
    }

    /// Returns the error of `check_dev` for a queue whose tag names this ingress.
    async fn said(tag: Option<&str>) -> Option<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let config = LocalAwsConfig::of_lastmile(0, folder.path().to_path_buf(), 30);
        let aws = LocalAws::start(config).await.expect("the local AWS starts");
        let (sqs, queue) = (Client::new(&local_clients(&aws.endpoint())), aws.queue_url("events"));
        if let Some(tag) = tag {
            let tagged = sqs.tag_queue().queue_url(&queue).tags(INGRESS_TAG, tag).send().await;
            tagged.expect("the queue takes it");
        }
        let topic = "shop/orders".parse().expect("a topic");
        let error = check_dev(&topic, &sqs, &queue.parse().expect("a URL")).await.err();
        aws.stop().await;
        error.map(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_ingress_that_the_queue_names_says_that_there_is_no_such_topic() {
        let ingress = saying(StatusCode::NOT_FOUND, UNKNOWN).await;
        let unknown = said(Some(&ingress)).await.expect("the topic is unknown");
        assert!(unknown.starts_with("there is no topic shop/orders\n"), "{unknown}");
        assert!(unknown.contains("--allow-unknown"), "{unknown}");
    }

    #[tokio::test]
    async fn whoever_cannot_tell_says_nothing() {
        for (status, body) in [
            (
                StatusCode::NOT_FOUND,
                r#"{"error":"the only route is POST /topics/{namespace}/{topic}"}"#,
            ),
            (StatusCode::NOT_FOUND, "<html>"),
            (StatusCode::OK, UNKNOWN),
            // The ingress cannot read its subscriptions.
            (StatusCode::SERVICE_UNAVAILABLE, UNKNOWN),
        ] {
            let ingress = saying(status, body).await;
            assert_eq!(said(Some(&ingress)).await, None, "{status} {body}");
        }
        // No server is at this address, the address is not local, it is not a URL, or the tag is
        // missing.
        for tag in [Some(OTHER), Some("http://192.0.2.1"), Some("ingress"), None] {
            assert_eq!(said(tag).await, None, "{tag:?}");
        }
    }
}
