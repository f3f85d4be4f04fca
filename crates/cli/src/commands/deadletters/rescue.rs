//! `lastmile deadletters rescue`: moves the messages of a last-resort queue into the container.
//!
//! A dead letter is sent to the last-resort queue if its storage refuses it for too long. The
//! command parses each message in the same way as the deadletter function, stores it under its
//! normal key, and only then deletes it. Therefore, an interruption loses nothing, and a message
//! that is stored twice gives one blob.

use std::process::ExitCode;

use adapters::blobs::tagging;
use adapters::machine::Machine;
use adapters::records::{self, SourceQueues};
use anyhow::Context as _;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use deadletters::container::DeadLetterContainer;
use delivery::deadletter::blob;
use delivery::delivery::replay::{ReplayEnd, write_ends};
use delivery::ports::{BlobTag, Clock as _, QueueName};
use local::mapping::event;
use url::Url;

use crate::operations::place::{Place, ReplayPlace};
use crate::operations::queue::DeploymentQueue;
use crate::terminal::advice::aws_error;
use crate::terminal::advice::chain;
use crate::terminal::help::examples;
use crate::terminal::output::{note, out};
use crate::terminal::progress;
use crate::terminal::text;

/// The maximum number of messages of one receive request.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html>
const BATCH_MAX: i32 = 10;
/// The wait time of a receive request. Without waiting, a request may miss messages.
const WAIT_SECONDS: i32 = 2;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/operate/rescue.md",
        "lastmile deadletters rescue --stack orders-prod",
        "lastmile deadletters rescue --container s3://dead-letters \\\n      --queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/last-resort",
    )
)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: ReplayPlace,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let place = Place::from(arguments.place);
    let letters = place.dead_letters().await?;
    let (container, url) = (&letters.container, place.queue(DeploymentQueue::LastResort).await?);
    let client = place.reach(&url).await?;
    let bar = progress::count("dead letters");
    let (mut rescued, mut left) = (0_u64, 0_u64);
    loop {
        let messages = receive(&client, &url).await?;
        if messages.is_empty() {
            break;
        }
        for message in &messages {
            match rescue(&client, &url, container, message).await {
                Ok(()) => rescued += 1,
                Err(problem) => {
                    // The message stays hidden until its visibility timeout ends, so the next
                    // receive request does not return it.
                    left += 1;
                    let id = message.message_id().unwrap_or_default();
                    note(format_args!(
                        "{id}: {}; the message stays in the queue",
                        text::line(&chain(&problem))
                    ));
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if rescued + left == 0 {
        note(format_args!("{url} is empty"));
        return Ok(ExitCode::FAILURE);
    }
    out(&format!(
        "{} rescued to {}, {left} left in the queue\n",
        text::dead_letters(rescued),
        container.name
    ))?;
    Ok(if left == 0 { ExitCode::SUCCESS } else { ExitCode::from(super::FAILED) })
}

async fn receive(client: &Client, url: &Url) -> anyhow::Result<Vec<Message>> {
    let receive =
        client.receive_message().queue_url(url.as_str()).max_number_of_messages(BATCH_MAX);
    let receive = receive.wait_time_seconds(WAIT_SECONDS).message_attribute_names("All");
    let received =
        receive.message_system_attribute_names(MessageSystemAttributeName::All).send().await;
    let received = received.map_err(|error| aws_error(&error));
    Ok(received
        .with_context(|| format!("messages cannot be received from {url}"))?
        .messages
        .unwrap_or_default())
}

/// Returns the events queue if SQS moved the message from the events queue, because a publisher
/// wrote this message. Otherwise returns the last-resort queue, because lastmile wrote the message.
fn source(message: &Message) -> QueueName {
    let attributes = message.attributes();
    let given_up_by =
        attributes.and_then(|all| all.get(&MessageSystemAttributeName::DeadLetterQueueSourceArn));
    let by_events = |arn: &String| arn.ends_with(":events") || arn.contains("EventsQueue");
    if given_up_by.is_some_and(by_events) { QueueName::Events } else { QueueName::LastResort }
}

async fn rescue(
    client: &Client,
    url: &Url,
    container: &DeadLetterContainer,
    message: &Message,
) -> anyhow::Result<()> {
    let name = url.path().rsplit('/').next().unwrap_or_default();
    let event = event::sqs_event(std::slice::from_ref(message), name);
    let queues = SourceQueues::new(&[], source(message));
    let records = records::read(event::received(&event)?, &queues)?;
    let record = records.first().context("the message contains no record")?;
    let letter = deadletter::dead_letter_of(record, Machine.now_ms())?;
    let why = "rescued from a last-resort queue after its storage refused it";
    let key = blob::key(&letter, &container.prefix);
    let tag = Some(tagging(BlobTag::DeadLetter));
    container.put_if_absent(&key, blob::bytes(&letter, Some(why)), tag).await?;
    let stored = Some((container.name.clone(), key));
    // Record the outcome of the replay here, because the deadletter function, which normally
    // records it, has not stored this dead letter.
    if let Some(end) = ReplayEnd::of_dead_letter(&letter, stored, Machine.now_ms()) {
        let (key, bytes) =
            write_ends(&container.prefix, end.replay.job(), std::slice::from_ref(&end));
        container.put_if_absent(&key, bytes, None).await?;
    }
    let delete = client.delete_message().queue_url(url.as_str()).receipt_handle(&record.receipt);
    let deleted = delete.send().await;
    deleted.map(drop).map_err(|error| aws_error(&error))
}
