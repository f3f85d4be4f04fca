//! What the functions on this machine receive and send, for a page that shows it.
//!
//! Log lines never hold bodies or headers, and a developer wants to see both. Separate, and at the ports,
//! so that the functions are the same libraries as in the cloud and know nothing of it.
//!
//! Promises: an exchange is observed before the function sees how it ended, so before any log line about it;
//! nothing waits for the observer. Does not hide anything: requests hold secrets, and whoever observes has to
//! redact them before they are shown or kept.

use delivery::delivery::outcome::Exchange;
use delivery::ports::{Late, QueueName, Record, SendHttp};
use delivery::request::Request;
use tokio::sync::mpsc::UnboundedSender;

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

/// A sender, with an observer of its exchanges.
#[derive(Debug)]
pub(crate) struct ObservedSender<S> {
    pub(crate) sender: S,
    pub(crate) observer: Observer,
}

impl<S: SendHttp + Sync> SendHttp for ObservedSender<S> {
    async fn exchange(&self, request: &Request) -> Exchange {
        let exchange = self.sender.exchange(request).await;
        self.observer.exchanged(request, &exchange);
        exchange
    }

    async fn exchange_or_late(&self, request: &Request) -> (Exchange, Option<Late>) {
        let (exchange, late) = self.sender.exchange_or_late(request).await;
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
