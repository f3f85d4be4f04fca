//! The ways a letter can be sent again: to its subscription or a topic through the events queue, or
//! straight to a URL.
//!
//! What happens is a [`Fate`] per letter, never an `Err`: the ledger writes it down. A way is tried
//! before a job begins, so that a queue that is not there costs no ledger.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use adapters::http::HttpSender;
use adapters::machine::Machine;
use adapters::queues::BATCH_ENTRIES_MAX;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{DisplayErrorContext, ProvideErrorMetadata as _, SdkError};
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchError;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use delivery::address::{AddressPolicy, OwnAddresses, PrivateDestinations};
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::delivery::outcome::TransportResult;
use delivery::delivery::{Delivery, Origin};
use delivery::event::{Event, Input, Shape};
use delivery::ports::{Attribute, Clock as _, MESSAGE_MAX_BYTES, Message, SendHttp as _};
use delivery::request::{ANSWER_MAX_BYTES, Method, Request};
use delivery::subscription::name::TopicName;
use delivery::time::duration::SECOND_MS;
use delivery::wire::{DELIVERY_ATTRIBUTE, TOPIC_ATTRIBUTE, write_delivery};
use futures::future::join_all;
use url::Url;
use uuid::Uuid;

use crate::commands::dev::allow_private;
use crate::queue;

/// How long an endpoint has to answer.
const TIMEOUT_MS: u64 = 30 * SECOND_MS;

/// Where letters go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum To {
    /// Each to its own subscription.
    Subscription,
    /// To whoever subscribes to a topic.
    Topic(TopicName),
    /// To one address.
    Url(Url),
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subscription => f.write_str("subscription"),
            Self::Topic(topic) => write!(f, "topic {topic}"),
            Self::Url(url) => write!(f, "{url}"),
        }
    }
}

impl FromStr for To {
    type Err = String;

    /// Reads what a ledger says.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("topic ")) {
            ("subscription", _) => Ok(Self::Subscription),
            (_, Some(topic)) => topic.parse().map(Self::Topic),
            (url, None) => {
                url.parse().map(Self::Url).map_err(|error| format!("\"{url}\": {error}"))
            }
        }
    }
}

/// A letter on its way.
pub(crate) struct Parcel {
    /// The id of its new delivery.
    pub(crate) delivery: Uuid,
    pub(crate) letter: StoredDeadLetter,
}

/// What became of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    Sent,
    /// It was not taken, for this reason.
    Refused(String),
    /// It cannot go this way at all.
    Unfit(String),
    /// Nobody knows.
    Uncertain(String),
}

/// A way that was tried.
pub(crate) enum Sender {
    Queue { client: Client, url: String, topic: Option<TopicName> },
    Http { http: Box<HttpSender>, url: Url },
}

impl Sender {
    /// Opens the way, and looks whether anybody is there.
    ///
    /// # Errors
    /// When the queue does not answer; says what to start.
    pub(crate) async fn open(to: &To, queue: &Url) -> anyhow::Result<Self> {
        let topic = match to {
            To::Url(url) => {
                let private =
                    PrivateDestinations::parse(&allow_private()).map_err(anyhow::Error::msg)?;
                let http = HttpSender::new(AddressPolicy::new(private, OwnAddresses::default()))?;
                return Ok(Self::Http { http: Box::new(http), url: url.clone() });
            }
            To::Topic(topic) => Some(topic.clone()),
            To::Subscription => None,
        };
        let client = queue::reach(queue).await?;
        Ok(Self::Queue { client, url: queue.to_string(), topic })
    }

    /// Sends parcels, at most a chunk of them; tells of each.
    pub(crate) async fn send(&self, parcels: &[Parcel]) -> Vec<Fate> {
        match self {
            Self::Http { http, url } => {
                join_all(parcels.iter().map(|parcel| post(http, url, parcel))).await
            }
            Self::Queue { client, url, topic } => {
                let mut fates: Vec<Option<Fate>> = vec![None; parcels.len()];
                let mut entries = Vec::new();
                for (index, parcel) in parcels.iter().enumerate() {
                    match entry(index, parcel, topic.as_ref()) {
                        Ok(entry) => entries.push(entry),
                        Err(problem) => fates[index] = Some(Fate::Unfit(problem)),
                    }
                }
                for batch in batches(entries) {
                    for (index, fate) in send_batch(client, url, batch).await {
                        fates[index] = Some(fate);
                    }
                }
                let silent =
                    || Fate::Uncertain("the answer does not mention the message".to_owned());
                fates.into_iter().map(|fate| fate.unwrap_or_else(silent)).collect()
            }
        }
    }
}

/// An entry of a batch, and what it weighs.
struct Entry {
    index: usize,
    bytes: usize,
    entry: SendMessageBatchRequestEntry,
}

fn entry(
    index: usize,
    Parcel { delivery, letter }: &Parcel,
    topic: Option<&TopicName>,
) -> Result<Entry, String> {
    let body: Arc<str> = letter.event.as_str().into();
    let message = message(*delivery, letter, &body, topic);
    let bytes = message.size_bytes();
    if !message.fits() {
        return Err(format!(
            "with its state it has {bytes} bytes, and a message has at most {MESSAGE_MAX_BYTES}"
        ));
    }
    let mut entry =
        SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body.as_ref());
    let named = message.topic.as_ref().map(|topic| (TOPIC_ATTRIBUTE, topic.to_string()));
    let delivery = match message.attribute {
        Attribute::Delivery(value) if topic.is_none() => Some((DELIVERY_ATTRIBUTE, value)),
        Attribute::Delivery(_) | Attribute::DeadLetter(_) => None,
    };
    for (name, value) in named.into_iter().chain(delivery) {
        let value =
            MessageAttributeValue::builder().data_type("String").string_value(value).build();
        entry = entry.message_attributes(name, value.map_err(|error| error.to_string())?);
    }
    Ok(Entry { index, bytes, entry: entry.build().map_err(|error| error.to_string())? })
}

/// The delivery anew: nothing attempted, its own id, the same event and trace.
fn message(
    id: Uuid,
    letter: &StoredDeadLetter,
    body: &Arc<str>,
    topic: Option<&TopicName>,
) -> Message {
    let origin = Origin { message: letter.id.to_string(), index: 0 };
    let event = Event::recall(body, Input::Auto);
    let new = Delivery::new(event, letter.subscription.clone(), origin, Machine.now_ms());
    let delivery = Delivery { id, traceparent: letter.traceparent.clone(), ..new };
    Message {
        body: Arc::clone(body),
        topic: Some(topic.unwrap_or(&letter.subscription.topic).clone()),
        attribute: Attribute::Delivery(write_delivery(&delivery)),
        subscription: letter.subscription.clone(),
        wait_ms: 0,
    }
}

/// Batches that SQS takes: ten entries, one message's size together.
fn batches(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let mut batches: Vec<(usize, Vec<Entry>)> = Vec::new();
    for entry in entries {
        match batches.last_mut() {
            Some((bytes, batch))
                if batch.len() < BATCH_ENTRIES_MAX && *bytes + entry.bytes <= MESSAGE_MAX_BYTES =>
            {
                *bytes += entry.bytes;
                batch.push(entry);
            }
            Some(_) | None => batches.push((entry.bytes, vec![entry])),
        }
    }
    batches.into_iter().map(|(_, batch)| batch).collect()
}

/// Sends one batch. What refuses it as a whole may mean one message of it: then each goes alone.
async fn send_batch(client: &Client, url: &str, batch: Vec<Entry>) -> Vec<(usize, Fate)> {
    let indices: Vec<usize> = batch.iter().map(|entry| entry.index).collect();
    let entries: Vec<SendMessageBatchRequestEntry> =
        batch.into_iter().map(|entry| entry.entry).collect();
    match send_once(client, url, entries.clone()).await {
        Ok(fates) => fates,
        Err(error) if refuses(&error) && entries.len() > 1 => {
            let alone = entries.into_iter().zip(indices).map(|(entry, index)| async move {
                let sent = send_once(client, url, vec![entry]).await;
                sent.unwrap_or_else(|error| vec![(index, fate(&error))])
            });
            join_all(alone).await.into_iter().flatten().collect()
        }
        Err(error) => indices.into_iter().map(|index| (index, fate(&error))).collect(),
    }
}

async fn send_once(
    client: &Client,
    url: &str,
    entries: Vec<SendMessageBatchRequestEntry>,
) -> Result<Vec<(usize, Fate)>, SdkError<SendMessageBatchError>> {
    let sent = client.send_message_batch().queue_url(url).set_entries(Some(entries)).send().await?;
    let taken = sent.successful().iter().map(|entry| (entry.id(), Fate::Sent));
    let failed = sent.failed().iter().map(|entry| {
        (
            entry.id(),
            Fate::Refused(format!("{}: {}", entry.code(), entry.message().unwrap_or_default())),
        )
    });
    Ok(taken.chain(failed).filter_map(|(id, fate)| Some((id.parse().ok()?, fate))).collect())
}

/// Whether the queue answered, and said no.
fn refuses(error: &SdkError<SendMessageBatchError>) -> bool {
    error.raw_response().is_some_and(|response| response.status().is_client_error())
}

fn fate(error: &SdkError<SendMessageBatchError>) -> Fate {
    let said =
        error.code().zip(error.message()).map(|(code, message)| format!("{message} ({code})"));
    let problem = said.unwrap_or_else(|| DisplayErrorContext(error).to_string());
    if refuses(error) { Fate::Refused(problem) } else { Fate::Uncertain(problem) }
}

async fn post(http: &HttpSender, url: &Url, Parcel { delivery, letter }: &Parcel) -> Fate {
    let body: Arc<str> = letter.event.as_str().into();
    let content_type = match Event::recall(&body, Input::Auto).shape() {
        Shape::CloudEvent => "application/cloudevents+json; charset=utf-8",
        Shape::EventGrid | Shape::Custom | Shape::Opaque => "application/json; charset=utf-8",
    };
    let mut headers = vec![
        ("content-type".to_owned(), content_type.to_owned()),
        ("webhook-id".to_owned(), delivery.to_string()),
    ];
    // A blob is what somebody wrote: a text that is no header must not keep its event from being
    // sent.
    let sendable =
        letter.traceparent.as_ref().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    headers.extend(sendable.map(|parent| ("traceparent".to_owned(), parent.clone())));
    let request = Request {
        method: Method::Post,
        url: url.clone(),
        headers,
        body: letter.event.clone().into_bytes().into(),
        timeout_ms: TIMEOUT_MS,
        answer_max_bytes: ANSWER_MAX_BYTES,
    };
    let exchange = http.exchange(&request).await;
    let problem = |what: &str| exchange.detail.clone().unwrap_or_else(|| what.to_owned());
    match &exchange.result {
        TransportResult::Answered { status: 200..=299, .. } => Fate::Sent,
        TransportResult::Answered { status, .. } => {
            Fate::Refused(format!("{url} answered {status}"))
        }
        TransportResult::TimedOut => Fate::Uncertain(problem("no answer in time")),
        TransportResult::SocketError => {
            Fate::Uncertain(problem("the connection was refused or broke off"))
        }
        TransportResult::ResolutionError => Fate::Refused(problem("the name does not resolve")),
        TransportResult::TlsError => Fate::Refused(problem("the certificate was refused")),
        TransportResult::Blocked => {
            Fate::Refused(problem("the address is one that is not sent to"))
        }
        TransportResult::Unsendable | TransportResult::Aborted => {
            Fate::Unfit(problem("no request can be made of it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::letter;
    use super::*;

    #[test]
    fn where_letters_go_is_read_back_from_a_ledger() {
        for to in [
            To::Subscription,
            To::Topic("a/b".parse().unwrap()),
            To::Url("http://127.0.0.1:1/x".parse().unwrap()),
        ] {
            assert_eq!(to.to_string().parse(), Ok(to));
        }
    }

    #[test]
    fn a_replayed_delivery_is_fresh_and_keeps_the_event_to_the_byte() {
        let traceparent =
            Some("00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01".to_owned());
        let (letter, id) = (StoredDeadLetter { traceparent, ..letter(1) }, Uuid::from_u128(7));
        let body: Arc<str> = letter.event.as_str().into();
        let Attribute::Delivery(attribute) = message(id, &letter, &body, None).attribute else {
            panic!("a delivery")
        };
        let read =
            delivery::wire::read_delivery(&attribute, Event::recall(&body, Input::Auto)).unwrap();
        assert_eq!(
            (read.id, read.attempts, read.history.newest(), read.first_ms),
            (id, 0, None, None)
        );
        assert_eq!((&read.subscription, read.due_ms), (&letter.subscription, read.published_ms));
        assert_eq!(
            (read.event.text().as_ref(), &read.traceparent),
            (letter.event.as_str(), &letter.traceparent)
        );
    }

    #[test]
    fn a_batch_holds_ten_messages_and_no_more_than_fits() {
        let parcel = |bytes: usize| Parcel {
            delivery: Uuid::from_u128(1),
            letter: StoredDeadLetter { event: "x".repeat(bytes), ..letter(1) },
        };
        let lengths = |bytes: usize, parcels: usize| {
            let entries = (0..parcels).map(|index| entry(index, &parcel(bytes), None).unwrap());
            batches(entries.collect()).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(10, 10), [10]);
        assert_eq!(lengths(400_000, 5), [2, 2, 1]);
        assert!(
            entry(0, &parcel(MESSAGE_MAX_BYTES), None)
                .is_err_and(|problem| problem.contains("at most 1048576"))
        );
    }
}
