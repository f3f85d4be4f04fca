//! Reports the records and requests of the functions on this machine, for a page that shows them.
//!
//! Log lines never contain bodies or headers, but developers want to see both. The observer wraps
//! the ports of a function. The functions do not depend on it, and are the same libraries as in the
//! cloud.
//!
//! Promises: an exchange is observed before the function receives its result, and therefore before
//! any log line about it. Nothing waits for the observer. Redacts nothing: requests contain
//! secrets, which the receiver must redact before showing or storing them.

use delivery::delivery::outcome::Exchange;
use delivery::ports::{Late, QueueName, Record, SendHttp};
use delivery::request::Request;
use tokio::sync::mpsc::UnboundedSender;

/// A received record, or an exchange with a destination.
#[derive(Debug)]
pub enum Observation {
    /// A record of the events queue. It is reported again when SQS redelivers it.
    Received(Record),
    /// A request and its exchange, including secrets.
    Exchanged(Box<(Request, Exchange)>),
}

/// Sends observations to a channel. The default observer has no channel.
#[derive(Debug, Clone, Default)]
pub struct Observer(Option<UnboundedSender<Observation>>);

impl Observer {
    /// Creates an observer that sends to this channel.
    #[must_use]
    pub fn new(sender: UnboundedSender<Observation>) -> Self {
        Self(Some(sender))
    }

    /// Reports those records that come from the events queue.
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

/// A sender that reports each exchange to an observer.
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
