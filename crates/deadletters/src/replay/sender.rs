//! Sends dead letters to a target: the subscription of each dead letter through the retry queue, a
//! topic through the events queue, or a URL directly.
//!
//! Separate because this module handles targets but no ledgers. Sending a dead letter returns a
//! [`SendResult`], never an `Err`, because the ledger records the result.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use adapters::aws_error::sentence;
use adapters::error_words::CONNECTION_REFUSED;
use adapters::http::HttpSender;
use adapters::machine::Machine;
use adapters::queues::{BATCH_ENTRIES_MAX, text_attribute};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchError;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use delivery::address::{AddressPolicy, OwnAddresses, PrivateDestinations};
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::delivery::outcome::TransportResult;
use delivery::delivery::replay::Replay;
use delivery::ports::{
    Attribute, Clock as _, MESSAGE_MAX_BYTES, Message, MessageGroup, SendHttp as _,
};
use delivery::request::{ANSWER_MAX_BYTES, Method, Needs, Request, content_type};
use delivery::subscription::display;
use delivery::subscription::name::TopicName;
use delivery::time::duration::SECOND_MS;
use delivery::wire::{TOPIC_ATTRIBUTE, write_delivery};
use futures::future::join_all;
use url::Url;
use uuid::Uuid;

use crate::ledger::SUBSCRIPTION;

/// Marks a URL in a ledger as stored without its user info and query.
const SHORTENED: &str = "shortened ";
/// Time within which an endpoint must respond.
const RESPONSE_TIMEOUT_MS: u64 = 30 * SECOND_MS;

/// The target to which a replay sends its dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayTarget {
    /// Each dead letter is sent to its own subscription.
    Subscription,
    /// Each dead letter is sent to all subscriptions of a topic.
    Topic(TopicName),
    /// Each dead letter is sent to one URL by direct HTTP requests.
    Url(Url),
}

impl ReplayTarget {
    /// Formats the target for people. Omits the user info and the query of a URL.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Url(url) => display(url),
            Self::Subscription | Self::Topic(_) => self.to_string(),
        }
    }

    /// Formats a target from a ledger for people, without the mark of a shortened URL.
    #[must_use]
    pub fn shown_of(in_ledger: &str) -> String {
        let shortened = || in_ledger.strip_prefix(SHORTENED).unwrap_or(in_ledger).to_owned();
        in_ledger.parse().map_or_else(|_| shortened(), |target: Self| target.shown())
    }

    /// Returns the target of a resumed job. A given URL replaces the shortened URL in the ledger if
    /// both match.
    ///
    /// # Errors
    /// Fails if the ledger has a shortened URL and no URL is given, or the given URL does not
    /// match.
    pub fn resumed(in_ledger: &str, given: Option<Url>) -> Result<Self, String> {
        let Some(given) = given.map(Self::Url) else { return in_ledger.parse() };
        let of_job = match in_ledger.strip_prefix(SHORTENED) {
            Some(shown) => shown.to_owned(),
            None => in_ledger.parse::<Self>()?.shown(),
        };
        if of_job == given.shown() {
            Ok(given)
        } else {
            Err(format!(
                "the job sends to {of_job}, not to {}: use the address of the job, or start a new job",
                given.shown()
            ))
        }
    }
}

/// Formats the target as in a ledger. Omits the user info and the query of a URL, because they may
/// contain credentials.
impl fmt::Display for ReplayTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subscription => f.write_str(SUBSCRIPTION),
            Self::Topic(topic) => write!(f, "topic {topic}"),
            Self::Url(url) if display(url) == url.as_str() => write!(f, "{url}"),
            Self::Url(url) => write!(f, "{SHORTENED}{}", display(url)),
        }
    }
}

impl FromStr for ReplayTarget {
    type Err = String;

    /// Parses a target from its text in a ledger.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(shown) = text.strip_prefix(SHORTENED) {
            return Err(format!(
                "the job does not store the user and the query of its address {shown}: continue \
                 with --resume and the full --to-url"
            ));
        }
        match (text, text.strip_prefix("topic ")) {
            (SUBSCRIPTION, _) => Ok(Self::Subscription),
            (_, Some(topic)) => topic.parse().map(Self::Topic),
            (url, None) => {
                url.parse().map(Self::Url).map_err(|error| format!("\"{url}\": {error}"))
            }
        }
    }
}

/// A dead letter that is sent as a new delivery.
pub(crate) struct ReplayItem {
    /// The id of the new delivery.
    pub(crate) delivery: Uuid,
    pub(crate) letter: StoredDeadLetter,
    /// The job and the dead letter for which the result is recorded; `None` to record no result.
    pub(crate) replay: Option<Replay>,
}

/// The result of sending one dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SendResult {
    /// The target accepted the dead letter.
    Sent,
    /// The target refused the dead letter, for this reason.
    Refused(String),
    /// The target can never accept the dead letter, for this reason.
    Unfit(String),
    /// The target may or may not have accepted the dead letter; the text is the problem.
    Uncertain(String),
}

/// Sends dead letters to one target.
pub struct ReplaySender(Transport);

enum Transport {
    Queue { client: Client, url: String, topic: Option<TopicName> },
    Http { http: Box<HttpSender>, url: Url },
}

impl ReplaySender {
    /// Creates a sender to a queue. With a topic, `url` is the events queue. Without one, it is the
    /// retry queue, and each dead letter goes to its own subscription.
    #[must_use]
    pub fn to_queue(client: Client, url: &Url, topic: Option<TopicName>) -> Self {
        Self(Transport::Queue { client, url: url.to_string(), topic })
    }

    /// Creates a sender to a URL. Private addresses are refused unless they are allowed.
    ///
    /// # Errors
    /// Fails if the HTTP client cannot be created.
    pub fn to_url(url: Url, allowed: PrivateDestinations) -> anyhow::Result<Self> {
        let http = HttpSender::new(AddressPolicy::new(allowed, OwnAddresses::default()))?;
        Ok(Self(Transport::Http { http: Box::new(http), url }))
    }

    /// True if results come from the destination itself, not from a queue.
    pub(crate) fn answers_at_once(&self) -> bool {
        match &self.0 {
            Transport::Http { .. } => true,
            Transport::Queue { .. } => false,
        }
    }

    /// Sends at most one chunk of items. Returns one result for each.
    pub(crate) async fn send(&self, items: &[ReplayItem]) -> Vec<SendResult> {
        match &self.0 {
            Transport::Http { http, url } => {
                join_all(items.iter().map(|item| post(http, url, item))).await
            }
            Transport::Queue { client, url, topic } => {
                let mut results: Vec<Option<SendResult>> = vec![None; items.len()];
                let mut entries = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    match entry(index, item, topic.as_ref()) {
                        Ok(entry) => entries.push(entry),
                        Err(problem) => results[index] = Some(SendResult::Unfit(problem)),
                    }
                }
                for batch in batches(entries) {
                    for (index, result) in send_batch(client, url, batch).await {
                        results[index] = Some(result);
                    }
                }
                let missing = || {
                    SendResult::Uncertain("the response does not mention the message".to_owned())
                };
                results.into_iter().map(|result| result.unwrap_or_else(missing)).collect()
            }
        }
    }
}

/// A message of a batch, with its size.
struct BatchEntry {
    index: usize,
    bytes: usize,
    entry: SendMessageBatchRequestEntry,
}

fn entry(
    index: usize,
    ReplayItem { delivery, letter, replay }: &ReplayItem,
    topic: Option<&TopicName>,
) -> Result<BatchEntry, String> {
    let body: Arc<str> = letter.event.as_str().into();
    let message = message(*delivery, letter, replay.as_ref(), topic);
    let bytes = message.size_bytes();
    if !message.fits() {
        return Err(format!(
            "the event with its state has {bytes} bytes; the limit for a message is \
             {MESSAGE_MAX_BYTES} bytes"
        ));
    }
    let mut entry =
        SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body.as_ref());
    for (name, value) in message.attributes() {
        // A topic receives the bare event, as from a publisher: no delivery exists yet.
        if topic.is_some() && name != TOPIC_ATTRIBUTE {
            continue;
        }
        entry = entry.message_attributes(name, text_attribute(&value));
    }
    Ok(BatchEntry { index, bytes, entry: entry.build().map_err(|error| error.to_string())? })
}

/// Builds the message of a new delivery to the subscription of the dead letter.
fn message(
    id: Uuid,
    letter: &StoredDeadLetter,
    replay: Option<&Replay>,
    topic: Option<&TopicName>,
) -> Message {
    let delivery = letter.again(id, replay.cloned(), Machine.now_ms());
    // This topic does not exist. If an events queue receives the message by mistake, no
    // subscription gets the event.
    let nowhere = || TopicName { namespace: "_".to_owned(), topic: "replay".to_owned() };
    Message {
        body: Arc::clone(delivery.event.text()),
        topic: Some(topic.cloned().unwrap_or_else(nowhere)),
        attribute: Attribute::Delivery(write_delivery(&delivery)),
        group: MessageGroup::Subscription(letter.subscription.clone()),
        receives: 0,
        unread: 0,
        wait_ms: 0,
    }
}

/// Splits messages into batches within the limits of SQS: at most ten messages, whose total size is
/// at most the limit for one message.
fn batches(entries: Vec<BatchEntry>) -> Vec<Vec<BatchEntry>> {
    let mut batches: Vec<(usize, Vec<BatchEntry>)> = Vec::new();
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

/// Sends one batch. If the queue refuses the whole batch, sends each message alone, because one of
/// them may be the cause.
async fn send_batch(
    client: &Client,
    url: &str,
    batch: Vec<BatchEntry>,
) -> Vec<(usize, SendResult)> {
    let indices: Vec<usize> = batch.iter().map(|entry| entry.index).collect();
    let entries: Vec<SendMessageBatchRequestEntry> =
        batch.into_iter().map(|entry| entry.entry).collect();
    match send_once(client, url, entries.clone()).await {
        Ok(results) => results,
        Err(error) if is_refusal(&error) && entries.len() > 1 => {
            let alone = entries.into_iter().zip(indices).map(|(entry, index)| async move {
                let sent = send_once(client, url, vec![entry]).await;
                sent.unwrap_or_else(|error| vec![(index, result_of(&error))])
            });
            join_all(alone).await.into_iter().flatten().collect()
        }
        Err(error) => indices.into_iter().map(|index| (index, result_of(&error))).collect(),
    }
}

async fn send_once(
    client: &Client,
    url: &str,
    entries: Vec<SendMessageBatchRequestEntry>,
) -> Result<Vec<(usize, SendResult)>, SdkError<SendMessageBatchError>> {
    let sent = client.send_message_batch().queue_url(url).set_entries(Some(entries)).send().await?;
    let accepted = sent.successful().iter().map(|entry| (entry.id(), SendResult::Sent));
    let failed = sent.failed().iter().map(|entry| {
        let problem = format!("{}: {}", entry.code(), entry.message().unwrap_or_default());
        (entry.id(), SendResult::Refused(problem))
    });
    Ok(accepted.chain(failed).filter_map(|(id, result)| Some((id.parse().ok()?, result))).collect())
}

/// True if the queue responded with a refusal.
fn is_refusal(error: &SdkError<SendMessageBatchError>) -> bool {
    // After a 5xx response, the messages may still be in the queue.
    error.raw_response().is_some_and(|response| response.status().is_client_error())
}

fn result_of(error: &SdkError<SendMessageBatchError>) -> SendResult {
    let described =
        error.code().zip(error.message()).map(|(code, message)| format!("{message} ({code})"));
    let problem = described.unwrap_or_else(|| sentence(error));
    if is_refusal(error) || problem.ends_with(CONNECTION_REFUSED) {
        SendResult::Refused(problem)
    } else {
        SendResult::Uncertain(problem)
    }
}

async fn post(
    http: &HttpSender,
    url: &Url,
    ReplayItem { delivery, letter, .. }: &ReplayItem,
) -> SendResult {
    let content_type = content_type(letter.published().shape());
    let mut headers = vec![
        ("content-type".to_owned(), content_type.to_owned()),
        // The id of Standard Webhooks, by which a receiver recognizes a duplicate.
        ("webhook-id".to_owned(), delivery.to_string()),
    ];
    // Blobs may come from other writers, so the text may not be a valid header. It must not prevent
    // the event from being sent.
    let sendable =
        letter.traceparent.as_ref().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    headers.extend(sendable.map(|parent| ("traceparent".to_owned(), parent.clone())));
    let request = Request {
        method: Method::Post,
        url: url.clone(),
        headers,
        body: letter.event.clone().into_bytes().into(),
        timeout_ms: RESPONSE_TIMEOUT_MS,
        needs: Needs::Status,
        answer_max_bytes: ANSWER_MAX_BYTES,
        tls: delivery::request::tls::RequestTls::default(),
        signer: None,
        hidden: Vec::new(),
        deliveries: vec![*delivery],
    };
    let exchange = http.exchange(&request).await;
    let detail = exchange.detail;
    let why = |problem: &str| detail.clone().unwrap_or_else(|| problem.to_owned());
    match exchange.result {
        TransportResult::Answered { status: 200..=299, .. } => SendResult::Sent,
        TransportResult::Answered { status, .. } => {
            SendResult::Refused(format!("{} responded with {status}", display(url)))
        }
        TransportResult::TimedOut => SendResult::Uncertain(why("no response in time")),
        TransportResult::SocketError if detail.as_deref() == Some(CONNECTION_REFUSED) => {
            SendResult::Refused(CONNECTION_REFUSED.to_owned())
        }
        // The event may have arrived before the connection broke.
        TransportResult::SocketError => SendResult::Uncertain(why("the connection was lost")),
        TransportResult::ResolutionError => {
            SendResult::Refused(why("the host name does not resolve"))
        }
        TransportResult::TlsError => SendResult::Refused(why("the certificate was not accepted")),
        TransportResult::Blocked => SendResult::Refused(why("the address is not allowed")),
        TransportResult::Unsendable | TransportResult::Aborted => {
            SendResult::Unfit(why("the event cannot be sent as a request"))
        }
    }
}

#[cfg(test)]
mod tests {
    use delivery::event::{Event, Input};

    use super::*;
    use crate::samples::letter;

    #[test]
    fn a_target_is_read_back_from_a_ledger() {
        for target in [
            ReplayTarget::Subscription,
            ReplayTarget::Topic("a/b".parse().unwrap()),
            ReplayTarget::Url("http://127.0.0.1:1/x".parse().unwrap()),
        ] {
            assert_eq!(target.to_string().parse(), Ok(target));
        }
    }

    #[test]
    fn of_an_address_with_credentials_a_ledger_has_the_rest_and_the_whole_is_given_again() {
        let url = |text: &str| text.parse::<Url>().unwrap();
        let whole = url("https://u:hush@a.example.com/x?code=hush");
        let stored = ReplayTarget::Url(whole.clone()).to_string();
        assert_eq!(stored, "shortened https://a.example.com/x");
        for in_ledger in [&stored, whole.as_str()] {
            assert_eq!(ReplayTarget::shown_of(in_ledger), "https://a.example.com/x");
        }
        let resumed = |in_ledger: &str, given: &Url| {
            ReplayTarget::resumed(in_ledger, Some(given.clone())).map_err(|error| {
                assert!(!error.contains("hush"), "{error}");
            })
        };
        assert!(
            ReplayTarget::resumed(&stored, None).is_err_and(|error| error.contains("--to-url"))
        );
        // A ledger that an earlier version wrote contains the full URL.
        for in_ledger in [&stored, whole.as_str()] {
            assert_eq!(resumed(in_ledger, &whole), Ok(ReplayTarget::Url(whole.clone())));
            assert_eq!(resumed(in_ledger, &url("https://u:hush@a.example.com/y")), Err(()));
        }
        let of_earlier = ReplayTarget::resumed(whole.as_str(), None);
        assert_eq!(of_earlier, Ok(ReplayTarget::Url(whole.clone())));
        assert_eq!(resumed("subscription", &whole), Err(()));
    }

    #[test]
    fn a_replayed_delivery_is_fresh_and_keeps_the_event_to_the_byte() {
        let traceparent =
            Some("00-0af7651916cd43dd8448eb211c80319c-b9c7c989f97918e1-01".to_owned());
        let (letter, id) = (StoredDeadLetter { traceparent, ..letter(1) }, Uuid::from_u128(7));
        let body: Arc<str> = letter.event.as_str().into();
        let replay = Replay::new("j", letter.id).unwrap();
        let sent = message(id, &letter, Some(&replay), None);
        let Attribute::Delivery(attribute) = sent.attribute else { panic!("a delivery") };
        let read =
            delivery::wire::read_delivery(&attribute, Event::recall(&body, Input::Auto)).unwrap();
        assert_eq!((read.id, read.attempts, read.history.newest()), (id, 0, None));
        assert_eq!(read.replay, Some(replay));
        assert_eq!((&read.subscription, read.due_ms), (&letter.subscription, read.published_ms));
        assert_eq!(
            (read.event.text().as_ref(), &read.traceparent),
            (letter.event.as_str(), &letter.traceparent)
        );
    }

    #[test]
    fn a_batch_holds_ten_messages_and_no_more_than_fits() {
        let item = |bytes: usize| ReplayItem {
            delivery: Uuid::from_u128(1),
            letter: StoredDeadLetter { event: "x".repeat(bytes), ..letter(1) },
            replay: None,
        };
        let lengths = |bytes: usize, items: usize| {
            let entries = (0..items).map(|index| entry(index, &item(bytes), None).unwrap());
            batches(entries.collect()).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(10, 10), [10]);
        assert_eq!(lengths(400_000, 5), [2, 2, 1]);
        assert!(
            entry(0, &item(MESSAGE_MAX_BYTES), None)
                .is_err_and(|problem| problem.contains("is 1048576 bytes"))
        );
    }
}
