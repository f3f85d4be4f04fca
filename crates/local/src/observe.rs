//! Reports the records and requests of the functions on this machine, for a page that shows them.
//!
//! Log lines never contain bodies or headers, but developers want to see both. Separate, and at the
//! ports, so that the functions are the same libraries as in the cloud, and do not depend on it.
//!
//! Promises: an exchange is observed before the function receives its result, and therefore before
//! any log line about it. Nothing waits for the observer. Redacts nothing: requests contain
//! secrets, which the receiver must redact before showing or storing them.

use delivery::delivery::outcome::Exchange;
use delivery::ports::{Late, QueueName, Record, SendHttp};
use delivery::request::Request;
use tokio::sync::mpsc::UnboundedSender;

/// A received record, or a sent request.
#[derive(Debug)]
pub enum Observation {
    /// A record of the events queue; repeated when it is redelivered.
    Received(Record),
    /// A request and its result, including secrets.
    Exchanged(Box<(Request, Exchange)>),
}

/// Sends observations to a channel; by default to none.
#[derive(Debug, Clone, Default)]
pub struct Observer(Option<UnboundedSender<Observation>>);

impl Observer {
    /// Creates an observer that sends to this channel.
    #[must_use]
    pub fn new(sender: UnboundedSender<Observation>) -> Self {
        Self(Some(sender))
    }

    /// Reports the records of the events queue among these.
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
            // Ignore a closed channel: the program is ending.
            let _ = sender.send(observation());
        }
    }
}

/// Reports the exchanges of a sender.
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
