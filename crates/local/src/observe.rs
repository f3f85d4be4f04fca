//! What the functions on this machine receive and send, for a page that shows it.
//!
//! Log lines never hold bodies or headers, and a developer wants to see both. Separate, and at the ports,
//! so that the functions are the same libraries as in the cloud and know nothing of it.
//!
//! Promises: an exchange is observed before the function sees how it ended, so before any log line about it;
//! nothing waits for the observer. Does not hide anything: requests hold secrets, and whoever observes has to
//! redact them before they are shown or kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::aws_ports::AwsPorts;
use delivery::delivery::outcome::Exchange;
use delivery::machine::consent::{ConsentKey, Granted};
use delivery::ports::{
    ChangeVisibility, Clock, ConsentError, Consents, JitterSource, Late, Message, PutBlob,
    PutError, PutMessage, Queue, QueueError, QueueName, Record, SecretError, Secrets, SendHttp,
    SharedDocument, SharedDocumentError, SharedDocuments, SubscriptionSource,
};
use delivery::request::Request;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::schedule::Jitter;
use delivery::subscription::secret::{Keyring, SecretName};
use delivery::subscription::sink::SinkQueue;
use tokio::sync::mpsc::UnboundedSender;
use url::Url;
use uuid::Uuid;

/// Something that was received or sent.
#[derive(Debug)]
pub enum Observation {
    /// A record of the events queue; again when it is redelivered.
    Received(Record),
    /// A request and how it ended, as they are: with secrets.
    Exchanged(Box<(Request, Exchange)>),
}

/// Who is told; nobody by default.
#[derive(Debug, Clone, Default)]
pub struct Observer(Option<UnboundedSender<Observation>>);

impl Observer {
    /// One that is told by this channel.
    #[must_use]
    pub fn new(sender: UnboundedSender<Observation>) -> Self {
        Self(Some(sender))
    }

    /// Tells of the records of the events queue among these.
    pub(crate) fn received(&self, records: &[Record]) {
        for record in records.iter().filter(|record| record.queue == QueueName::Events) {
            self.tell(|| Observation::Received(record.clone()));
        }
    }

    fn exchanged(&self, request: &Request, exchange: &Exchange) {
        self.tell(|| Observation::Exchanged(Box::new((request.clone(), exchange.clone()))));
    }

    fn tell(&self, observation: impl FnOnce() -> Observation) {
        if let Some(sender) = &self.0 {
            // The receiver is gone when the program ends: no error.
            let _ = sender.send(observation());
        }
    }
}

/// The ports of the dispatch function, with an observer of its requests.
#[derive(Debug)]
pub(crate) struct ObservedPorts {
    pub(crate) ports: AwsPorts,
    pub(crate) observer: Observer,
}

impl SendHttp for ObservedPorts {
    async fn exchange(&self, request: &Request) -> Exchange {
        let exchange = self.ports.exchange(request).await;
        self.observer.exchanged(request, &exchange);
        exchange
    }

    async fn exchange_or_late(&self, request: &Request) -> (Exchange, Option<Late>) {
        let (exchange, late) = self.ports.exchange_or_late(request).await;
        self.observer.exchanged(request, &exchange);
        let Some(late) = late else { return (exchange, None) };
        let (request, observer) = (request.clone(), self.observer.clone());
        let late: Late = Box::pin(async move {
            let exchange = late.await;
            observer.exchanged(&request, &exchange);
            exchange
        });
        (exchange, Some(late))
    }
}

impl SubscriptionSource for ObservedPorts {
    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        self.ports.current().await
    }

    async fn with_topics(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        self.ports.with_topics(known, topics).await
    }

    async fn reread(
        &self,
        known: Arc<Catalogue>,
        topics: &BTreeSet<TopicName>,
    ) -> Result<Arc<Catalogue>, String> {
        self.ports.reread(known, topics).await
    }
}

impl Secrets for ObservedPorts {
    async fn keyring(&self, names: &[&SecretName], to: &Url) -> Result<Keyring, SecretError> {
        self.ports.keyring(names, to).await
    }
}

impl Consents for ObservedPorts {
    async fn consent(&self, key: &ConsentKey) -> Result<Option<Granted>, ConsentError> {
        self.ports.consent(key).await
    }

    async fn keep_consent(&self, key: &ConsentKey, granted: &Granted) -> Result<(), ConsentError> {
        self.ports.keep_consent(key, granted).await
    }
}

impl SharedDocuments for ObservedPorts {
    async fn shared(&self, key: &str) -> Result<Option<SharedDocument>, SharedDocumentError> {
        self.ports.shared(key).await
    }

    async fn replace_shared(
        &self,
        key: &str,
        bytes: Vec<u8>,
        version: Option<&str>,
    ) -> Result<bool, SharedDocumentError> {
        self.ports.replace_shared(key, bytes, version).await
    }
}

impl JitterSource for ObservedPorts {
    fn next_jitter(&self) -> Jitter {
        self.ports.next_jitter()
    }
}

impl Queue for ObservedPorts {
    async fn send(&self, queue: QueueName, message: Message) -> Result<(), QueueError> {
        self.ports.send(queue, message).await
    }
}

impl ChangeVisibility for ObservedPorts {
    async fn change_visibility(&self, queue: QueueName, receipt: &str, seconds: u32) {
        self.ports.change_visibility(queue, receipt, seconds).await;
    }
}

impl PutBlob for ObservedPorts {
    async fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>) -> Result<(), PutError> {
        self.ports.put(bucket, key, bytes).await
    }
}

impl PutMessage for ObservedPorts {
    async fn put_message(&self, queue: &SinkQueue, id: Uuid, json: &str) -> Result<(), PutError> {
        self.ports.put_message(queue, id, json).await
    }
}

impl Clock for ObservedPorts {
    fn now_ms(&self) -> u64 {
        self.ports.now_ms()
    }

    async fn sleep(&self, wait_ms: u64) {
        self.ports.sleep(wait_ms).await;
    }
}
