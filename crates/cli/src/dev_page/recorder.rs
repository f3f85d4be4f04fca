//! Log lines, records and exchanges, as steps of the feed.
//!
//! Separate from the feed, which knows nothing of log lines. An exchange is observed before the line about
//! it is logged, so what was observed is always read first; the line names the delivery, and the exchange
//! says which deliveries it carried.

use std::collections::VecDeque;
use std::sync::Arc;

use adapters::machine::Machine;
use delivery::delivery::Origin;
use delivery::delivery::outcome::Exchange;
use delivery::event::envelope::Elements;
use delivery::event::{Element, Input};
use delivery::ports::{Clock as _, Record};
use delivery::request::Request;
use delivery::subscription::Subscription;
use delivery::subscription::name::SubscriptionName;
use local::observe::Observation;
use local::watch::Line;
use tokio::sync::mpsc::UnboundedReceiver;
use uuid::Uuid;

use super::app::SharedApp;
use super::exchange::ShownExchange;
use super::feed::{Kind, Of, Published, What};
use crate::text;

/// Exchanges whose lines are still to come. More are forgotten, the oldest first.
const PENDING_MAX: usize = 1_000;
/// Further events of one record are not listed.
const ELEMENTS_MAX: usize = 100;

/// Reads what happens into the feed.
pub(super) struct Recorder {
    pub(super) app: SharedApp,
    pub(super) observed: UnboundedReceiver<Observation>,
    pub(super) lines: UnboundedReceiver<Line>,
    pub(super) pending: Pending,
}

/// Exchanges whose lines are still to come.
#[derive(Default)]
pub(super) struct Pending(VecDeque<PendingExchange>);

struct PendingExchange {
    request: Request,
    exchange: Exchange,
    /// Once the first of its deliveries was logged.
    shown: Option<Arc<ShownExchange>>,
}

impl Recorder {
    /// Until nobody sends any more.
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

    fn observe(&mut self, observation: Observation) {
        match observation {
            Observation::Received(record) => self.received(&record),
            Observation::Exchanged(of) => {
                let (request, exchange) = *of;
                self.pending.push(request, exchange);
            }
        }
    }

    fn received(&self, record: &Record) {
        let name = record.topic.as_deref().and_then(|topic| topic.parse().ok());
        let last = self.app.sources.last();
        let input = name.and_then(|name| last.reading.catalogue.topic(&name).map(|it| it.input));
        let all = published(record, input.unwrap_or(Input::Auto));
        self.app.change(|feed| {
            all.into_iter().for_each(|event| feed.publish(record.sent_ms, event));
        });
    }

    fn note(&mut self, line: &Line) {
        let of = of(line);
        let name = of.subscription.parse::<SubscriptionName>().ok();
        let last = self.app.sources.last();
        let subscription =
            name.and_then(|name| last.reading.catalogue.subscription(&name).cloned());
        let exchange = match line.name.as_str() {
            "delivery.attempted" | "delivery.answered_late" => {
                self.pending.take(line, of.delivery, subscription.as_deref())
            }
            _ => None,
        };
        let Some(mut what) = what(line, Machine.now_ms()) else { return };
        if let Some(exchange) = &exchange {
            what.at_ms = exchange.started_ms;
            what.destination.clone_from(&exchange.url);
            what.detail = exchange.detail.clone().unwrap_or(what.detail);
        } else if let Some(subscription) = subscription {
            what.destination = subscription.destination.display();
        }
        self.app.change(|feed| feed.add(of, what, exchange));
    }
}

impl Pending {
    fn push(&mut self, request: Request, exchange: Exchange) {
        // A handshake carries none, and nothing more is logged about it.
        if request.deliveries.is_empty() {
            return;
        }
        self.0.push_back(PendingExchange { request, exchange, shown: None });
        if self.0.len() > PENDING_MAX {
            self.0.pop_front();
        }
    }

    /// The exchange that a line is about. Older ones of the delivery, of which nothing was logged, are
    /// forgotten.
    fn take(
        &mut self,
        line: &Line,
        delivery: Option<Uuid>,
        subscription: Option<&Subscription>,
    ) -> Option<Arc<ShownExchange>> {
        let delivery = delivery?;
        let (status, took) = (line.field("status"), line.field("duration_ms"));
        let is_it = |it: &PendingExchange| {
            let its_status = it.exchange.status().map(|status| status.to_string());
            its_status.as_deref().unwrap_or_default() == status
                && it.exchange.duration_ms.to_string() == took
        };
        let mut found = None;
        for pending in self.0.iter_mut().rev() {
            let Some(at) = pending.request.deliveries.iter().position(|it| *it == delivery) else {
                continue;
            };
            if found.is_none() && is_it(pending) {
                let (request, exchange) = (&pending.request, &pending.exchange);
                let make = || Arc::new(ShownExchange::of(request, exchange, subscription));
                found = Some(Arc::clone(pending.shown.get_or_insert_with(make)));
            }
            pending.request.deliveries.swap_remove(at);
        }
        self.0.retain(|pending| !pending.request.deliveries.is_empty());
        found
    }
}

/// The events of a record.
fn published(record: &Record, input: Input) -> Vec<Published> {
    let of = |index: usize| Published {
        origin: Some(Origin {
            message: record.message.clone(),
            index: u32::try_from(index).unwrap_or(u32::MAX),
        }),
        topic: record.topic.clone(),
        ..Published::default()
    };
    let Ok(elements) = Elements::of(&record.body, input) else {
        let event_type = "malformed".to_owned();
        return vec![Published { event_type, body: Some(Arc::clone(&record.body)), ..of(0) }];
    };
    let listed = 0..elements.len().min(ELEMENTS_MAX);
    let events = listed.map(|index| match elements.decode(index) {
        Element::Event(event) => {
            let members = event.members();
            let value = |value: Option<std::borrow::Cow<'_, str>>| {
                value.map(|it| text::first_chars(&it, VALUE_MAX_CHARS)).unwrap_or_default()
            };
            let (id, event_type) = (value(members.id()), value(members.event_type()));
            let source = value(members.source());
            let body = Some(Arc::clone(event.text()));
            Published { id, event_type, source, body, ..of(index) }
        }
        Element::Malformed { .. } => Published {
            event_type: "malformed".to_owned(),
            body: Some(elements.body_of(index..index + 1)),
            ..of(index)
        },
    });
    events.collect()
}

/// Values that publishers choose are cut to this length, as in the log.
const VALUE_MAX_CHARS: usize = 512;

fn of(line: &Line) -> Of {
    let field = |name| line.field(name).to_owned();
    let subscription = field("subscription");
    let topic = match line.field("topic") {
        "" => subscription.rsplit_once('/').map(|(topic, _)| topic.to_owned()),
        topic => Some(topic.to_owned()),
    };
    Of {
        delivery: line.field("delivery_id").parse().ok(),
        topic: topic.filter(|topic| !topic.is_empty()),
        subscription,
        message: Some(field("message_id")).filter(|message| !message.is_empty()),
        event_id: field("event_id"),
        event_type: field("type"),
        source: field("source"),
    }
}

/// What a line says; `None` for one that adds nothing.
fn what(line: &Line, now_ms: u64) -> Option<What> {
    let field = |name| line.field(name).to_owned();
    let number = |name| line.field(name).parse::<u64>().ok();
    let new = |kind, name: &str| What::new(now_ms, kind, name);
    let wait_ms = number("wait_ms");
    let due_ms = wait_ms.map(|wait_ms| now_ms.saturating_add(wait_ms));
    let again = |verb: &str| {
        wait_ms.map(|ms| format!("{verb} in {}", text::duration(ms))).unwrap_or_default()
    };
    let after = || match line.field("attempts") {
        "1" => "after 1 attempt".to_owned(),
        attempts => format!("after {attempts} attempts"),
    };
    let reason =
        || What { outcome: field("reason"), detail: field("detail"), ..new(Kind::End, "") };
    Some(match line.name.as_str() {
        "delivery.attempted" => attempted(line, now_ms),
        "delivery.ended" => match line.field("end") {
            "Delivered" => return None,
            "DeadLettered" => What { name: "dead letter".to_owned(), next: after(), ..reason() },
            _ => What { name: "dropped".to_owned(), next: after(), ..reason() },
        },
        "deadletter.stored" => {
            let key = line.field("key");
            let id = key.rsplit('/').next().and_then(|name| name.strip_suffix(".json"));
            What {
                name: "dead letter stored".to_owned(),
                detail: format!("{}/{key}", line.field("container")),
                dead_letter: id.and_then(|id| id.parse().ok()),
                ..reason()
            }
        }
        "deadletter.handed_over" => What {
            name: "dead letter sent".to_owned(),
            next: format!("accepted by its sink, {}", line.field("sink")),
            ..reason()
        },
        "delivery.held" => What {
            outcome: field("why"),
            detail: held_because(line.field("why")).to_owned(),
            next: again("again"),
            due_ms,
            ..new(Kind::Wait, "held")
        },
        "delivery.put_off" => What {
            outcome: field("outcome"),
            detail: "its destination keeps failing".to_owned(),
            next: again("again"),
            due_ms,
            ..new(Kind::Wait, "put off")
        },
        "delivery.abandoned" => What {
            outcome: "no answer yet".to_owned(),
            next: "again in the slow lane".to_owned(),
            ..new(Kind::Wait, "abandoned")
        },
        "delivery.answered_late" => What {
            outcome: text::outcome(None, line.field("status").parse().ok()),
            duration_ms: number("duration_ms"),
            next: "delivered".to_owned(),
            ..new(Kind::Good, "late answer")
        },
        "event.unmatched" => {
            What { outcome: "no subscription wants it".to_owned(), ..new(Kind::End, "unmatched") }
        }
        name => What { outcome: others(line), ..new(Kind::Note, name) },
    })
}

fn attempted(line: &Line, now_ms: u64) -> What {
    let number = |name| line.field(name).parse::<u64>().ok();
    let (wait_ms, status) = (number("wait_ms"), line.field("status").parse::<u16>().ok());
    let kind = match (line.field("verdict"), status) {
        ("delivered", _) => Kind::Good,
        (_, Some(_)) => Kind::Failed,
        (_, None) => Kind::Silent,
    };
    let leg = match line.field("leg") {
        "sink" => "to its sink, ",
        "reply" => "reply, ",
        _ => "",
    };
    let next = match (line.field("verdict"), wait_ms) {
        ("retry", Some(wait_ms)) => format!("retry in {}", text::duration(wait_ms)),
        ("retry", None) => "no attempt is left".to_owned(),
        ("undeliverable", _) => "not retried".to_owned(),
        (verdict, _) => verdict.to_owned(),
    };
    What {
        outcome: text::outcome(Some(line.field("outcome")), status),
        detail: line.field("why").to_owned(),
        duration_ms: number("duration_ms"),
        next,
        due_ms: wait_ms.map(|wait_ms| now_ms.saturating_add(wait_ms)),
        ..What::new(now_ms, kind, format!("{leg}attempt {}", line.field("attempt")))
    }
}

/// What the words of a hold mean.
fn held_because(word: &str) -> &'static str {
    match word {
        "paused" => "the subscription is paused",
        "consent" => "the destination has not consented yet",
        "rate" => "the rate of the destination is used up",
        "concurrency" => "the destination takes no more requests at once",
        "time" => "the invocation had no time left",
        "slow" => "the destination is slow: attempted in the slow lane",
        "disabled" => "the destination is disabled",
        "retryAfter" => "the destination asked to be left alone",
        _ => "",
    }
}

/// The fields that no column has.
fn others(line: &Line) -> String {
    const SHOWN: [&str; 6] =
        ["subscription", "event_id", "type", "source", "delivery_id", "trace_id"];
    let fields = line.fields.iter().filter(|(name, _)| !SHOWN.contains(name));
    let fields: Vec<String> = fields.map(|(name, value)| format!("{name}={value}")).collect();
    fields.join("  ")
}

#[cfg(test)]
mod tests {
    use delivery::delivery::outcome::TransportResult;
    use delivery::request::Method;
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    fn line(name: &str, fields: &[(&'static str, &str)]) -> Line {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let level = LevelFilter::INFO.into_level().unwrap();
        Line { name: name.to_owned(), at_ms: 0, level, fields }
    }

    fn request(body: &'static str, deliveries: Vec<Uuid>) -> Request {
        Request {
            method: Method::Post,
            url: "http://127.0.0.1:1/".parse().unwrap(),
            headers: Vec::new(),
            body: body.into(),
            timeout_ms: 1,
            answer_max_bytes: 1,
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

    #[test]
    fn attempts_say_what_comes_next() {
        let attempted = |fields: &[(&'static str, &str)]| {
            let what = what(&line("delivery.attempted", fields), 1_000).unwrap();
            (what.kind, what.outcome, what.next, what.due_ms)
        };
        let busy = [("outcome", "Busy"), ("status", "503"), ("verdict", "retry")];
        assert_eq!(
            attempted(&[&busy[..], &[("wait_ms", "10000")]].concat()),
            (
                Kind::Failed,
                "503 Service Unavailable (Busy)".to_owned(),
                "retry in 10 s".to_owned(),
                Some(11_000)
            )
        );
        assert_eq!(attempted(&busy).2, "no attempt is left");
        let delivered = [("outcome", "Success"), ("status", "200"), ("verdict", "delivered")];
        assert_eq!(attempted(&delivered).0, Kind::Good);
        let silent = [("outcome", "SocketError"), ("verdict", "undeliverable")];
        assert_eq!(attempted(&silent).2, "not retried");
        assert!(what(&line("delivery.ended", &[("end", "Delivered")]), 1).is_none());
    }

    #[test]
    fn a_stored_dead_letter_is_linked_by_the_id_in_its_key() {
        let id = "00000000-0000-0000-0000-000000000001";
        let key = format!("shop/orders/billing/2026/11/20/7/{id}.json");
        let stored = line("deadletter.stored", &[("container", "dead-letters"), ("key", &key)]);
        let what = what(&stored, 1).unwrap();
        assert_eq!(what.dead_letter, Some(Uuid::from_u128(1)));
        assert_eq!(what.detail, format!("dead-letters/{key}"));
    }
}
