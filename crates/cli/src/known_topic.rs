//! Whether a topic exists, before events are published to it.
//!
//! Separate because a queue takes events for any topic; those for an unknown one become dead letters, which
//! nobody notices who only publishes. What is known of topics is in the subscriptions of a deployment, and
//! `lastmile dev` answers for its own.
//!
//! Promises: silence means that the topic exists, or that nobody can tell.

use std::collections::BTreeSet;
use std::time::Duration;

use adapters::subscriptions::Location;
use anyhow::{Context as _, bail};
use axum::http::StatusCode;
use delivery::subscription::name::TopicName;
use serde::Deserialize;
use url::Url;

use crate::deployed::{self, Wanted};
use crate::text;

/// How long `lastmile dev` may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The longest list of topics that is shown.
const SHOWN_MAX: usize = 10;
/// What to do about an unknown topic.
const ADVICE: &str = "its events would become dead letters; --allow-unknown publishes them anyway";

/// What the ingress of `lastmile dev` says of a topic.
#[derive(Deserialize)]
struct Described {
    /// The queue that it is about.
    queue: Url,
    error: String,
}

/// Looks for a topic in the subscriptions of a deployment.
///
/// # Errors
/// When it is not there, or they cannot be read.
pub(crate) async fn check_deployed(topic: &TopicName, location: &Location) -> anyhow::Result<()> {
    let wanted = Wanted::Topics(BTreeSet::from([topic.clone()]));
    let deployed = deployed::read(location, wanted).await?;
    let catalogue = &deployed.reading.catalogue;
    if catalogue.topic(topic).is_some() {
        return Ok(());
    }
    // Of a catalogue only this topic was looked for.
    let mut known: Vec<String> = catalogue.topics().map(|topic| topic.name.to_string()).collect();
    if known.len() > SHOWN_MAX {
        known.truncate(SHOWN_MAX);
        known.push("…".to_owned());
    }
    let known = match known.as_slice() {
        [] => String::new(),
        known => format!("; the topics are: {}", text::line(&known.join(", "))),
    };
    bail!("there is no topic {topic} in {}{known}\n  {ADVICE}", deployed.source)
}

/// Asks `lastmile dev` at this address about a topic, if the queue is its own.
///
/// # Errors
/// When it says that there is no such topic.
pub(crate) async fn check_dev(topic: &TopicName, queue: &Url, ingress: &str) -> anyhow::Result<()> {
    let mut url: Url = ingress.parse().context("the ingress has an address")?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.extend(["topics", &topic.namespace, &topic.topic]);
    }
    // Whatever else listens there, or nothing, cannot tell.
    let Ok(Some(described)) = ask(url).await else { return Ok(()) };
    if described.queue == *queue {
        bail!("{}\n  {ADVICE}", text::line(&described.error));
    }
    Ok(())
}

/// What is said of an unknown topic.
async fn ask(url: Url) -> anyhow::Result<Option<Described>> {
    let client = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build()?;
    let answer = client.get(url).send().await?;
    if answer.status() != StatusCode::NOT_FOUND {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&answer.bytes().await?)?)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;

    use super::*;
    use crate::this_machine::listen;

    /// What is said of a topic where this is answered.
    async fn said(status: StatusCode, body: &'static str) -> Option<String> {
        let listener = listen(0).await.expect("a port is free");
        let ingress = format!("http://{}", listener.local_addr().expect("it has an address"));
        let routes = Router::new().route("/topics/shop/orders", get(async move || (status, body)));
        tokio::spawn(axum::serve(listener, routes).into_future());
        let topic = "shop/orders".parse().expect("a topic");
        let queue = "http://127.0.0.1:4566/000000000000/events".parse().expect("a URL");
        check_dev(&topic, &queue, &ingress).await.err().map(|error| error.to_string())
    }

    #[tokio::test]
    async fn only_the_ingress_of_the_same_queue_can_say_that_there_is_no_such_topic() {
        let own = r#"{"error":"there is no topic shop/orders","queue":"http://127.0.0.1:4566/000000000000/events"}"#;
        let unknown = said(StatusCode::NOT_FOUND, own).await.expect("the topic is unknown");
        assert!(unknown.starts_with("there is no topic shop/orders\n"), "{unknown}");
        assert!(unknown.contains("--allow-unknown"), "{unknown}");
        for silent in [
            r#"{"topic":"shop/orders","queue":"http://127.0.0.1:4566/000000000000/events"}"#,
            r#"{"error":"there is no topic","queue":"http://127.0.0.1:4567/000000000000/events"}"#,
            r#"{"error":"the only route is POST /topics/{namespace}/{topic}"}"#,
            "<html>",
        ] {
            assert_eq!(said(StatusCode::NOT_FOUND, silent).await, None, "{silent}");
        }
        // The subscriptions cannot be read.
        assert_eq!(said(StatusCode::SERVICE_UNAVAILABLE, own).await, None);
    }

    #[tokio::test]
    async fn where_nothing_listens_nothing_is_said() {
        let topic = "shop/orders".parse().expect("a topic");
        let queue = "http://127.0.0.1:4566/000000000000/events".parse().expect("a URL");
        check_dev(&topic, &queue, "http://127.0.0.1:1").await.expect("nobody can tell");
    }
}
