//! A desk: every port of both functions, answering as told and keeping what it was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adapters::records::Record;
use delivery::deadletter::Container;
use delivery::manifest::{self, Source};
use delivery::outcome::{Ending, Exchange};
use delivery::ports::{
    Clock, Dice, HideRecord, Message, PutBlob, PutError, Queue, QueueError, QueueName, SecretError, Secrets, SendHttp,
    SubscriptionSource,
};
use delivery::request::Request;
use delivery::schedule::Jitter;
use delivery::secret::{Keyring, Secret, SecretName};
use delivery::subscription::Catalogue;

/// When a scene begins.
pub(crate) const NOW_MS: u64 = 1_795_158_180_000;

/// The deployment's container.
pub(crate) fn container() -> Container {
    Container { bucket: "letters".to_owned(), prefix: String::new() }
}

/// A published record of topic shop/orders, received for the first time.
pub(crate) fn record(message: &str, body: &str) -> Record {
    Record {
        message: message.to_owned(),
        receipt: message.to_owned(),
        queue: "events".to_owned(),
        body: body.into(),
        topic: Some("shop/orders".to_owned()),
        delivery: None,
        deadletter: None,
        traceparent: None,
        sent_ms: NOW_MS - 10,
        first_received_ms: NOW_MS,
        receives: 1,
    }
}

/// The topic shop/orders with so many subscriptions, s0, s1 and so on.
pub(crate) fn subscriptions(count: usize) -> Catalogue {
    catalogue(count, "")
}

/// The topic shop/orders with the subscription s0, whose dead letters go there.
pub(crate) fn subscriptions_with_sink(sink: &str) -> Catalogue {
    catalogue(1, &format!(", deadLetter: {{sink: '{sink}'}}"))
}

fn catalogue(count: usize, more: &str) -> Catalogue {
    let topic = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\n".to_owned();
    let subscription = |n: usize| {
        format!(
            "---\napiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: s{n}}}\n\
             spec: {{destination: {{url: 'https://s{n}.example.com/'}}, retry: {{jitterPercent: 0}}{more}}}\n"
        )
    };
    let text = (0..count).map(subscription).fold(topic, |text, next| text + &next);
    manifest::read(&[Source { name: "scene", text: &text }]).into_result().expect("the scene is right")
}

/// What a desk was asked.
#[derive(Default)]
struct Asked {
    now_ms: u64,
    slept_ms: u64,
    requests: usize,
    panics_left: usize,
    sent: Vec<(QueueName, Message)>,
    hidden: Vec<(String, String, u32)>,
    blobs: BTreeMap<String, String>,
}

/// Every port of both functions. Clones are the same desk.
#[derive(Clone)]
pub(crate) struct Desk {
    catalogue: Option<Arc<Catalogue>>,
    newer: Option<Arc<Catalogue>>,
    newest_is_readable: bool,
    ending: Ending,
    duration_ms: u64,
    takes_messages: bool,
    storage: BTreeMap<String, PutError>,
    asked: Arc<Mutex<Asked>>,
}

fn answer(status: u16) -> Ending {
    Ending::Answered { status, retry_after: None, body: Vec::new() }
}

/// How a scene sets its desk.
impl Desk {
    pub(crate) fn without_subscriptions() -> Self {
        Self {
            catalogue: None,
            newer: None,
            newest_is_readable: true,
            ending: answer(200),
            duration_ms: 0,
            takes_messages: true,
            storage: BTreeMap::new(),
            asked: Arc::new(Mutex::new(Asked { now_ms: NOW_MS, ..Asked::default() })),
        }
    }

    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self { catalogue: Some(Arc::new(catalogue)), ..Self::without_subscriptions() }
    }

    pub(crate) fn finding_on_reread(self, catalogue: Catalogue) -> Self {
        Self { newer: Some(Arc::new(catalogue)), ..self }
    }

    /// The last good subscriptions are there, but nobody can say what the newest are.
    pub(crate) fn with_a_broken_reload(self) -> Self {
        Self { newest_is_readable: false, ..self }
    }

    pub(crate) fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    pub(crate) fn answering(self, status: u16) -> Self {
        self.ending(answer(status))
    }

    /// Each exchange takes so long, and the clock moves with it.
    pub(crate) fn taking_ms(self, duration_ms: u64) -> Self {
        Self { duration_ms, ..self }
    }

    pub(crate) fn refusing_messages(self) -> Self {
        Self { takes_messages: false, ..self }
    }

    /// This bucket refuses every blob.
    pub(crate) fn refusing_blobs(mut self, bucket: &str, error: PutError) -> Self {
        self.storage.insert(bucket.to_owned(), error);
        self
    }

    pub(crate) fn panicking_once(self) -> Self {
        self.asked().panics_left = 1;
        self
    }
}

/// What a scene asks its desk afterwards.
impl Desk {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn requests(&self) -> usize {
        self.asked().requests
    }

    pub(crate) fn slept_ms(&self) -> u64 {
        self.asked().slept_ms
    }

    pub(crate) fn sent(&self) -> Vec<(QueueName, Message)> {
        self.asked().sent.clone()
    }

    /// Queue, receipt and seconds of each record that was hidden.
    pub(crate) fn hidden(&self) -> Vec<(String, String, u32)> {
        self.asked().hidden.clone()
    }

    /// `bucket/key` and text of each blob.
    pub(crate) fn blobs(&self) -> Vec<(String, String)> {
        self.asked().blobs.clone().into_iter().collect()
    }
}

impl SendHttp for Desk {
    async fn exchange(&self, _: &Request) -> Exchange {
        let mut asked = self.asked();
        asked.requests += 1;
        if asked.panics_left > 0 {
            asked.panics_left -= 1;
            panic!("as the scene wants it");
        }
        let started_ms = asked.now_ms;
        asked.now_ms += self.duration_ms;
        Exchange::new(self.ending.clone(), started_ms, self.duration_ms)
    }
}

impl Secrets for Desk {
    async fn keyring(&self, names: &[&SecretName]) -> Result<Keyring, SecretError> {
        Ok(names.iter().map(|name| ((*name).clone(), Secret::new("hush".to_owned()))).collect())
    }
}

impl Queue for Desk {
    async fn send(&self, queue: QueueName, message: Message) -> Result<(), QueueError> {
        if !self.takes_messages {
            return Err(QueueError("as the scene wants it".to_owned()));
        }
        self.asked().sent.push((queue, message));
        Ok(())
    }
}

impl HideRecord for Desk {
    async fn hide(&self, queue: &str, receipt: &str, seconds: u32) {
        self.asked().hidden.push((queue.to_owned(), receipt.to_owned(), seconds));
    }
}

impl PutBlob for Desk {
    async fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>) -> Result<(), PutError> {
        if let Some(error) = self.storage.get(bucket) {
            return Err(error.clone());
        }
        let text = String::from_utf8(bytes).expect("a blob is text");
        self.asked().blobs.entry(format!("{bucket}/{key}")).or_insert(text);
        Ok(())
    }
}

impl SubscriptionSource for Desk {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        self.catalogue.clone().ok_or_else(|| "subscriptions.yaml:1:1: broken".to_owned())
    }

    async fn reread(&self) -> Result<Arc<Catalogue>, String> {
        if !self.newest_is_readable {
            return Err("subscriptions.yaml:1:1: broken".to_owned());
        }
        self.newer.clone().or_else(|| self.catalogue.clone()).ok_or_else(|| "broken".to_owned())
    }
}

impl Clock for Desk {
    fn now_ms(&self) -> u64 {
        self.asked().now_ms
    }

    async fn sleep(&self, wait_ms: u64) {
        let mut asked = self.asked();
        asked.now_ms += wait_ms;
        asked.slept_ms += wait_ms;
    }
}

impl Dice for Desk {
    fn roll(&self) -> Jitter {
        Jitter::NONE
    }
}
