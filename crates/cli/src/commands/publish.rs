//! `lastmile publish`: publishes events from files to a queue or an HTTP ingress.
//!
//! A file holds one event, a JSON array of events, or one event per line. Each event is sent on its
//! own, byte for byte. An element that is not an event is rejected with its line; the rest is sent.

use std::process::ExitCode;
use std::sync::Arc;

use adapters::queues::text_attribute;
use anyhow::{Context as _, bail};
use aws_sdk_sqs::error::DisplayErrorContext;
use delivery::event::envelope::decode;
use delivery::event::{Element, Event, Input};
use delivery::request::content_type;
use delivery::subscription::name::TopicName;
use delivery::wire::TOPIC_ATTRIBUTE;
use futures::stream::{self, StreamExt as _};
use serde_json::value::RawValue;
use url::Url;

use crate::output::{note, out};
use crate::queue::{DEV_EVENTS_QUEUE, clients_for};
use crate::{progress, text};

/// Concurrent sends.
const CONCURRENT_SENDS: usize = 32;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The topic, as namespace/topic; without it, the default topic of the receiver
    #[arg(long, value_name = "NS/TOPIC")]
    topic: Option<TopicName>,
    /// The events queue; without it, that of `lastmile dev`
    #[arg(long, value_name = "URL", conflicts_with = "to")]
    queue_url: Option<Url>,
    /// An HTTP ingress instead of a queue, such as http://127.0.0.1:8080/topics/shop/orders
    #[arg(long, value_name = "URL", conflicts_with = "topic")]
    to: Option<Url>,
    /// Files of events; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut events = Vec::new();
    let mut refused = 0_usize;
    for file in &arguments.files {
        for element in read(file)? {
            match element {
                Ok(event) => events.push(event),
                Err(problem) => {
                    refused += 1;
                    note(text::line(&problem));
                }
            }
        }
    }
    let target = target_of(arguments).await?;
    let bar = progress::bar(events.len() as u64, "events");
    // Results are matched with events by position, so the order has to stay.
    let sends = stream::iter(&events).map(|event| target.send(event)).buffered(CONCURRENT_SENDS);
    let results: Vec<anyhow::Result<()>> = sends.inspect(|_| bar.inc(1)).collect().await;
    bar.finish_and_clear();
    let mut accepted = 0_usize;
    for (event, result) in events.iter().zip(results) {
        match result {
            Ok(()) => accepted += 1,
            Err(problem) => {
                refused += 1;
                let members = event.members();
                let id = members.id().unwrap_or_default();
                note(text::line(&format!("event {id}: {problem:#}")));
            }
        }
    }
    out(&format!("{accepted} accepted, {refused} refused\n"))?;
    Ok(if refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The events of a file in order, with an error for each element that is not an event.
fn read(file: &str) -> anyhow::Result<Vec<Result<Event, String>>> {
    let text = match file {
        "-" => {
            std::io::read_to_string(std::io::stdin()).context("standard input cannot be read")?
        }
        path => std::fs::read_to_string(path).with_context(|| format!("{path} cannot be read"))?,
    };
    let mut events = Vec::new();
    for (line, document) in documents(&text) {
        events.extend(decode(&document, Input::Auto).into_iter().map(|element| match element {
            Element::Event(event) => Ok(event),
            Element::Malformed { why, .. } => Err(format!("{file}:{line}: {why}")),
        }));
    }
    if events.is_empty() {
        bail!("{file} contains no event");
    }
    Ok(events)
}

/// The JSON documents of a text, each with its first line. If the text is not a sequence of
/// documents, each line is one, so that a bad line affects no other.
fn documents(text: &str) -> Vec<(usize, Arc<str>)> {
    let sequence: Result<Vec<&RawValue>, _> =
        serde_json::Deserializer::from_str(text).into_iter().collect();
    if let Ok(sequence) = sequence {
        // A raw value borrows from the text: the distance of their addresses is its offset.
        let offset = |document: &RawValue| document.get().as_ptr().addr() - text.as_ptr().addr();
        return sequence
            .into_iter()
            .map(|document| (line_of(text, offset(document)), document.get().into()))
            .collect();
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| (index + 1, line.trim().into())).collect()
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// Where events are sent.
enum Target {
    Queue { client: aws_sdk_sqs::Client, url: String, topic: Option<TopicName> },
    Ingress { client: reqwest::Client, url: Url },
}

async fn target_of(arguments: Arguments) -> anyhow::Result<Target> {
    if let Some(url) = arguments.to {
        return Ok(Target::Ingress { client: reqwest::Client::builder().no_proxy().build()?, url });
    }
    let url = match arguments.queue_url {
        Some(url) => url,
        None => DEV_EVENTS_QUEUE.parse().context("the default is a URL")?,
    };
    let client = aws_sdk_sqs::Client::new(&clients_for(&url).await);
    Ok(Target::Queue { client, url: url.into(), topic: arguments.topic })
}

impl Target {
    async fn send(&self, event: &Event) -> anyhow::Result<()> {
        match self {
            Self::Queue { client, url, topic } => {
                let mut send =
                    client.send_message().queue_url(url).message_body(event.text().as_ref());
                if let Some(topic) = topic {
                    let topic = text_attribute(&topic.to_string());
                    send = send.message_attributes(TOPIC_ATTRIBUTE, topic);
                }
                match send.send().await {
                    Ok(_) => Ok(()),
                    Err(error) => bail!("{url} did not accept it: {}", DisplayErrorContext(&error)),
                }
            }
            Self::Ingress { client, url } => {
                let content_type = content_type(event.shape());
                let post = client.post(url.clone()).header("content-type", content_type);
                let answer = post.body(event.text().to_string()).send().await?;
                match answer.status() {
                    status if status.is_success() => Ok(()),
                    status => bail!(
                        "{url} answered {status}: {}",
                        answer.text().await.unwrap_or_default()
                    ),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(usize, String)> {
        documents(text).into_iter().map(|(line, document)| (line, document.to_string())).collect()
    }

    #[test]
    fn a_file_is_one_event_an_array_or_one_event_per_line() {
        assert_eq!(lines("{\n \"a\": 1\n}\n"), [(1, "{\n \"a\": 1\n}".to_owned())]);
        assert_eq!(lines("\n[1,2]"), [(2, "[1,2]".to_owned())]);
        assert_eq!(
            lines("{\"a\":1}\n\n{\"b\":2}\n"),
            [(1, "{\"a\":1}".to_owned()), (3, "{\"b\":2}".to_owned())]
        );
    }

    #[test]
    fn a_bad_line_affects_no_other() {
        assert_eq!(
            lines("{\"a\":1}\n{\n{\"b\":2}"),
            [(1, "{\"a\":1}".to_owned()), (2, "{".to_owned()), (3, "{\"b\":2}".to_owned())]
        );
    }
}
