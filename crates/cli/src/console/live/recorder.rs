//! Converts log lines, records and exchanges to steps of the feed.
//!
//! Separate from the feed, which does not depend on log lines. The wording of log lines is in
//! `line_words`, because the terminal uses the same texts. An exchange is observed before its line
//! is logged, so the recorder reads observations first. The line contains the id of one delivery;
//! the exchange contains the ids of all deliveries in its request.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use delivery::delivery::Origin;
use delivery::delivery::outcome::Exchange;
use delivery::event::envelope::Elements;
use delivery::event::{Element, Input};
use delivery::ports::Record;
use delivery::request::Request;
use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use local::observe::Observation;
use local::watch::Line;
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use super::Live;
use super::feed::{Published, StepFacts, Subject};
use crate::console::app::SharedConsole;
use crate::operations::line_words::words;
use crate::operations::shown_exchange::ShownExchange;
use crate::terminal::text;

/// The maximum number of exchanges that wait for their log lines. The oldest are dropped first.
const PENDING_MAX: usize = 1_000;
/// The maximum number of events of one record that are added to the feed.
const ELEMENTS_MAX: usize = 100;

/// Adds observations and log lines to the feed.
pub(super) struct Recorder {
    pub(super) console: SharedConsole,
    pub(super) observed: UnboundedReceiver<Observation>,
    pub(super) lines: UnboundedReceiver<Line>,
    pub(super) pending: Pending,
}

/// The exchanges that wait for their log lines.
#[derive(Default)]
pub(super) struct Pending(VecDeque<PendingExchange>);

struct PendingExchange {
    request: Request,
    exchange: Exchange,
    /// The redacted exchange; set when the log line of its first delivery is read.
    shown: Option<Arc<ShownExchange>>,
}

impl Recorder {
    /// Reads observations and log lines until all senders are dropped.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                Some(observation) = self.observed.recv() => self.observe(observation),
                Some(line) = self.lines.recv() => {
                    while let Ok(observation) = self.observed.try_recv() {
                        self.observe(observation);
                    }
                    self.note(&line);
                }
                else => return,
            }
        }
    }

    fn live(&self) -> &Live {
        self.console.live.as_ref().expect("a recorder runs only where there is a live part")
    }

    /// Adds an ended attempt to the statistics of its subscription.
    fn record_traffic(&self, line: &Line, subject: &Subject) {
        let is_success = match line.name.as_str() {
            "delivery.delivered" => true,
            // A successful attempt that must be repeated is logged as `delivery.attempted`.
            "delivery.attempted" => line.field("verdict") == "delivered",
            _ => return,
        };
        // An event that is forwarded to another topic has no attempt. Attempts at a sink or a reply
        // address are not attempts at the destination.
        let duration_ms = line.field("duration_ms").parse().ok();
        if duration_ms.is_none() || matches!(line.field("leg"), "sink" | "reply") {
            return;
        }
        let mut traffic = self.live().traffic.lock().unwrap_or_else(PoisonError::into_inner);
        traffic.add(line.at_ms, &subject.subscription, is_success, duration_ms);
    }

    fn observe(&mut self, observation: Observation) {
        match observation {
            Observation::Received(record) => self.received(&record),
            Observation::Exchanged(exchanged) => {
                let (request, exchange) = *exchanged;
                self.pending.push(request, exchange);
            }
        }
    }

    fn received(&self, record: &Record) {
        let name = record.topic.as_deref().and_then(|topic| topic.parse().ok());
        let last = self.console.sources.last();
        let input = name
            .and_then(|name| last.reading.catalogue.topic(&name).map(|topic| topic.settings.input));
        let all = published(record, input.unwrap_or(Input::Auto));
        self.live().change(|feed| {
            all.into_iter().for_each(|event| feed.publish(record.sent_ms, event));
        });
    }

    fn note(&mut self, line: &Line) {
        let subject = subject(line);
        let name = subject.subscription.parse::<SubscriptionName>().ok();
        let last = self.console.sources.last();
        let subscription =
            name.and_then(|name| last.reading.catalogue.subscription(&name).cloned());
        let exchange = match line.name.as_str() {
            "delivery.attempted" | "delivery.delivered" | "delivery.answered_late" => {
                self.pending.take(line, subject.delivery, subscription.as_deref())
            }
            _ => None,
        };
        let Some(words) = words(line) else { return };
        let destination = match (&exchange, &subscription) {
            (Some(exchange), _) => exchange.url.clone(),
            (None, Some(subscription)) if words.target.is_empty() => {
                subscription.destination.display()
            }
            (None, _) => String::new(),
        };
        let due_ms = words.wait_ms.map(|wait_ms| line.at_ms.saturating_add(wait_ms));
        let mut facts = StepFacts { at_ms: line.at_ms, words, destination, due_ms };
        if let Some(exchange) = &exchange {
            facts.at_ms = exchange.started_ms;
            if let Some(detail) = &exchange.detail {
                facts.words.detail.clone_from(detail);
            }
        }
        self.record_traffic(line, &subject);
        self.live().change(|feed| match (line.name.as_str(), subject.delivery) {
            ("delivery.attempting", _) => feed.begin(subject, facts),
            (
                "delivery.attempted" | "delivery.delivered" | "delivery.abandoned",
                Some(delivery),
            ) => {
                feed.end(delivery);
                feed.add(subject, facts, exchange);
            }
            _ => feed.add(subject, facts, exchange),
        });
    }
}

impl Pending {
    fn push(&mut self, request: Request, exchange: Exchange) {
        // The request of a handshake contains no delivery, so no log line follows.
        if request.deliveries.is_empty() {
            return;
        }
        self.0.push_back(PendingExchange { request, exchange, shown: None });
        if self.0.len() > PENDING_MAX {
            self.0.pop_front();
        }
    }

    /// Finds the exchange that a log line is about. Drops older exchanges of the same delivery for
    /// which no line was logged.
    fn take(
        &mut self,
        line: &Line,
        delivery: Option<Uuid>,
        subscription: Option<&Subscription>,
    ) -> Option<Arc<ShownExchange>> {
        let delivery = delivery?;
        let (status, took) = (line.field("status"), line.field("duration_ms"));
        let matches_line = |candidate: &PendingExchange| {
            let its_status = candidate.exchange.status().map(|status| status.to_string());
            its_status.as_deref().unwrap_or_default() == status
                && candidate.exchange.duration_ms.to_string() == took
        };
        let mut found = None;
        for pending in self.0.iter_mut().rev() {
            let Some(at) = pending.request.deliveries.iter().position(|id| *id == delivery) else {
                continue;
            };
            if found.is_none() && matches_line(pending) {
                let (request, exchange) = (&pending.request, &pending.exchange);
                let make = || Arc::new(ShownExchange::new(request, exchange, subscription));
                found = Some(Arc::clone(pending.shown.get_or_insert_with(make)));
            }
            pending.request.deliveries.swap_remove(at);
        }
        self.0.retain(|pending| !pending.request.deliveries.is_empty());
        found
    }
}

/// Parses the events in a record of the events queue, for the feed.
fn published(record: &Record, input: Input) -> Vec<Published> {
    let with_origin = |index: usize| Published {
        origin: Some(Origin {
            message: record.message.clone(),
            index: u32::try_from(index).unwrap_or(u32::MAX),
        }),
        topic: record.topic.as_deref().map(|topic| text::first_chars(topic, VALUE_MAX_CHARS)),
        ..Published::default()
    };
    let Ok(elements) = Elements::parse(&record.body, input) else {
        let event_type = "malformed".to_owned();
        return vec![Published {
            event_type,
            body: Some(Arc::clone(&record.body)),
            ..with_origin(0)
        }];
    };
    let listed = 0..elements.len().min(ELEMENTS_MAX);
    let events = listed.map(|index| match elements.decode(index) {
        Element::Event(event) => {
            let members = event.members();
            let value = |value: Option<std::borrow::Cow<'_, str>>| {
                value.map(|member| text::first_chars(&member, VALUE_MAX_CHARS)).unwrap_or_default()
            };
            let (id, event_type) = (value(members.id()), value(members.event_type()));
            let source = value(members.source());
            let body = Some(Arc::clone(event.text()));
            Published { id, event_type, source, body, ..with_origin(index) }
        }
        Element::Malformed { .. } => Published {
            event_type: "malformed".to_owned(),
            body: Some(elements.body_of(index..index + 1)),
            ..with_origin(index)
        },
    });
    events.collect()
}

/// The length to which the log cuts values that publishers choose, in characters.
const VALUE_MAX_CHARS: usize = 512;

fn subject(line: &Line) -> Subject {
    let field = |name| text::first_chars(line.field(name), VALUE_MAX_CHARS);
    let subscription = field("subscription");
    let topic = match line.field("topic") {
        "" => subscription.rsplit_once('/').map(|(topic, _)| topic.to_owned()),
        topic => Some(text::first_chars(topic, VALUE_MAX_CHARS)),
    };
    Subject {
        delivery: line.field("delivery_id").parse().ok(),
        topic: topic.filter(|topic| !topic.is_empty()),
        subscription,
        message: Some(field("message_id")).filter(|message| !message.is_empty()),
        event_id: field("event_id"),
        event_type: field("type"),
        source: field("source"),
    }
}

#[cfg(test)]
mod tests {
    use delivery::delivery::outcome::TransportResult;
    use delivery::request::{Method, Needs};

    use super::*;
    use crate::operations::line_words::tests::line;

    fn request(body: &'static str, deliveries: Vec<Uuid>) -> Request {
        Request {
            method: Method::Post,
            url: "http://127.0.0.1:1/".parse().unwrap(),
            headers: Vec::new(),
            body: body.into(),
            timeout_ms: 1,
            needs: Needs::Status,
            answer_max_bytes: 1,
            tls: delivery::request::tls::RequestTls::default(),
            signer: None,
            hidden: Vec::new(),
            deliveries,
        }
    }

    fn answered(status: u16, duration_ms: u64) -> Exchange {
        let result = TransportResult::Answered { status, retry_after: None, body: Vec::new() };
        Exchange::new(result, 1, duration_ms)
    }

    #[test]
    fn a_line_gets_the_exchange_of_its_delivery_and_an_older_one_is_forgotten() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut pending = Pending::default();
        pending.push(request("handshake", Vec::new()), answered(200, 1));
        pending.push(request("late", vec![a]), answered(500, 9_000));
        pending.push(request("both", vec![a, b]), answered(503, 5));
        let attempted = line("delivery.attempted", &[("status", "503"), ("duration_ms", "5")]);
        for delivery in [a, b] {
            let found = pending.take(&attempted, Some(delivery), None).expect("it was observed");
            assert_eq!((found.body.text.as_str(), found.deliveries), ("both", 2));
        }
        assert!(pending.0.is_empty() && pending.take(&attempted, Some(a), None).is_none());
    }
}
