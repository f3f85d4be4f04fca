//! `lastmile publish`: publishes events from files, or samples, to a queue or an HTTP ingress.
//!
//! A file holds one event, a JSON array of events, or one event per line. Each event is sent
//! separately, byte for byte. `--in` and `--at` add the attribute `deliverat`
//! ([`publish_moment`](crate::commands::publish_moment)), and change nothing else. An element that
//! is not an event is rejected, with its line number in the error; the rest is sent.

use std::process::ExitCode;

use adapters::error_words::cause_words;
use adapters::machine::Machine;
use adapters::queues::text_attribute;
use anyhow::{Context as _, anyhow, bail};
use delivery::event::envelope::decode;
use delivery::event::{Element, Event, Input};
use delivery::ports::Clock as _;
use delivery::publish::{too_large, topic_bytes};
use delivery::request::content_type;
use delivery::subscription::display;
use delivery::subscription::name::TopicName;
use delivery::wire::TOPIC_ATTRIBUTE;
use futures::stream::{self, StreamExt as _};
use url::Url;

use crate::commands::publish_moment::{MomentArgs, PublishMoment};
use crate::operations::event_files::{documents, text_of};
use crate::operations::known_topic;
use crate::operations::place::{Place, PublishPlace};
use crate::operations::queue::DeploymentQueue;
use crate::operations::sample_events::SampleArgs;
use crate::operations::this_machine::is_here;
use crate::terminal::advice::{aws_error, describe};
use crate::terminal::help::{CONFIRMATION, FILES, examples};
use crate::terminal::output::{note, out};
use crate::terminal::progress;
use crate::terminal::text;

/// The maximum number of events that are sent concurrently.
const CONCURRENT_SENDS: usize = 32;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/publish.md",
        "lastmile publish --topic shop/orders -f order.json",
        "lastmile publish --topic shop/orders --stack orders-prod -f orders.ndjson",
        "lastmile publish --ingress http://127.0.0.1:8080/topics/shop/orders order.json",
        "lastmile publish --topic shop/orders --sample cloudevents --count 3",
        "lastmile publish --sample json --count 10 --dry-run > events.ndjson",
    )
)]
pub(crate) struct Arguments {
    /// Event files; - is standard input
    #[arg(required_unless_present_any = ["more_files", "kind"], conflicts_with = "kind", value_name = "FILE")]
    files: Vec<String>,
    /// Event files, like the argument FILE
    #[arg(short = 'f', long = "file", num_args = 1.., value_name = "FILE", conflicts_with = "kind", help_heading = FILES)]
    more_files: Vec<String>,
    /// Topic of the events; by default, the default topic of the receiver. With --to or --stack,
    /// publish refuses an unknown topic
    #[arg(long, value_name = "NS/TOPIC", conflicts_with = "ingress")]
    topic: Option<TopicName>,
    #[command(flatten)]
    place: PublishPlace,
    #[command(flatten)]
    moment: MomentArgs,
    #[command(flatten)]
    samples: SampleArgs,
    /// Publish even if the topic is unknown; its events become dead letters
    #[arg(long, help_heading = CONFIRMATION)]
    allow_unknown: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let now_ms = Machine.now_ms();
    if arguments.samples.print_only(now_ms)? {
        return Ok(ExitCode::SUCCESS);
    }
    let (events, mut refused) = events(&arguments, now_ms)?;
    let target = target_of(arguments).await?;
    let bar = progress::bar(events.len() as u64, "events");
    // Results are matched with events by position, so keep the order of events.
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
                note(text::line(&format!("event {id}: {}", describe(&problem))));
            }
        }
    }
    out(&format!("{accepted} accepted, {refused} refused\n"))?;
    Ok(if refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the events to publish, and the number of rejected elements. Prints an error for each
/// rejected element.
fn events(arguments: &Arguments, now_ms: u64) -> anyhow::Result<(Vec<Event>, usize)> {
    let moment = arguments.moment.read(now_ms)?;
    let mut all = Vec::new();
    for file in arguments.files.iter().chain(&arguments.more_files) {
        all.extend(elements(file, &text_of(file)?, &moment)?);
    }
    if let Some(text) = arguments.samples.text(now_ms)? {
        all.extend(elements("--sample", &text, &moment)?);
    }
    let (mut events, mut refused) = (Vec::new(), 0);
    for element in all {
        match element {
            Ok(event) => events.push(event),
            Err(problem) => {
                refused += 1;
                note(text::line(&problem));
            }
        }
    }
    Ok((events, refused))
}

/// Splits a text into events, in order. An element that is not an event becomes an error.
fn elements(
    file: &str,
    text: &str,
    moment: &PublishMoment,
) -> anyhow::Result<Vec<Result<Event, String>>> {
    let mut events = Vec::new();
    for (line, document) in documents(text) {
        events.extend(decode(&document, Input::Auto).into_iter().map(|element| {
            let event = match element {
                Element::Event(event) => moment.schedule(event),
                Element::Malformed { why, .. } => Err(why.to_string()),
            };
            event.map_err(|why| format!("{file}:{line}: {why}"))
        }));
    }
    if events.is_empty() {
        bail!("{} contains no event", text::line(file));
    }
    Ok(events)
}

/// The queue or the ingress to which events are published.
enum Target {
    Queue { client: aws_sdk_sqs::Client, url: String, topic: Option<TopicName> },
    Ingress { client: reqwest::Client, url: Url },
}

async fn target_of(arguments: Arguments) -> anyhow::Result<Target> {
    let Arguments { place, topic, allow_unknown, .. } = arguments;
    let place = Place::from(place);
    if let Some(url) = place.ingress() {
        return Target::ingress(url.clone());
    }
    let url = place.queue(DeploymentQueue::Events).await?;
    let client = place.reach(&url).await?;
    if let Some(topic) = topic.as_ref().filter(|_| !allow_unknown) {
        match place.has_subscriptions() {
            true => known_topic::check_deployed(topic, &place.subscriptions().await?).await?,
            false => known_topic::check_dev(topic, &client, &url).await?,
        }
    }
    Ok(Target::Queue { client, url: url.into(), topic })
}

impl Target {
    fn ingress(url: Url) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder().no_proxy();
        // Plain HTTP needs no certificates. Trust no CA, so that the machine needs no CA
        // certificates.
        let client = if url.scheme() == "http" { client.tls_certs_only([]) } else { client };
        Ok(Self::Ingress { client: client.build()?, url })
    }

    async fn send(&self, event: &Event) -> anyhow::Result<()> {
        match self {
            Self::Queue { client, url, topic } => {
                let of_topic = topic.as_ref().map_or(0, topic_bytes);
                if let Some(why) = too_large(event.text().len() + of_topic) {
                    bail!(why);
                }
                let mut send =
                    client.send_message().queue_url(url).message_body(event.text().as_ref());
                if let Some(topic) = topic {
                    let topic = text_attribute(&topic.to_string());
                    send = send.message_attributes(TOPIC_ATTRIBUTE, topic);
                }
                match send.send().await {
                    Ok(_) => Ok(()),
                    Err(error) => {
                        Err(aws_error(&error)).context("the queue did not accept the message")
                    }
                }
            }
            Self::Ingress { client, url } => {
                let content_type = content_type(event.shape());
                let post = client.post(url.clone()).header("content-type", content_type);
                let answer = post.body(event.text().to_string()).send().await;
                let answer = answer.map_err(|error| unreachable(url, &error))?;
                match answer.status() {
                    status if status.is_success() => Ok(()),
                    status => bail!(
                        "{} responded with {status}: {}",
                        display(url),
                        answer.text().await.unwrap_or_default()
                    ),
                }
            }
        }
    }
}

/// Creates the error for a missing response, with its cause. The client's own message is not used,
/// because it contains the address with its query.
fn unreachable(url: &Url, error: &reqwest::Error) -> anyhow::Error {
    let start = if is_here(url) { "; is `lastmile dev` running?" } else { "" };
    anyhow!("{} does not respond: {}{start}", display(url), cause_words(error))
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
