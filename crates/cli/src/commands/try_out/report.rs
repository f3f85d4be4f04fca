//! Formats the result of `try` for people: the request and its response without credentials, the
//! verdict, and dispatch's next step. Pure.
//!
//! Separate from sending. All statements are results of `machine::step` and `explain`.

use delivery::delivery::Delivery;
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::explain::{Always, Endpoint, explain};
use delivery::machine::reply;
use delivery::machine::step::{End, Settled, settle, settle_batched};
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::sink_text;
use delivery::waits::Jitter;

use super::Made;
use crate::operations::exchange_text;
use crate::operations::shown_exchange::ShownExchange;
use crate::terminal::text;

pub(super) struct Report {
    pub(super) text: String,
    pub(super) is_delivered: bool,
}

impl Report {
    /// Processes the result of a request as dispatch does, and describes it. All deliveries in the
    /// request end in the same way.
    pub(super) fn new(
        catalogue: &Catalogue,
        subscription: &Subscription,
        mut deliveries: Vec<Delivery>,
        made: &Made,
    ) -> Self {
        let Made { request, exchange, credentials, is_second } = made;
        let now_ms = exchange.ended_ms();
        let settle_one = if deliveries.len() > 1 { settle_batched } else { settle };
        let again = "the destination refused the first token; this request has a new token\n\n";
        let mut text = if *is_second { again.to_owned() } else { String::new() };
        text.push_str(&match request {
            Ok(request) => shown(&ShownExchange::hiding(
                credentials.clone(),
                request,
                exchange,
                Some(subscription),
            )),
            Err(problem) => {
                let problem = credentials.hide_in_text(problem.to_string());
                format!("not sent: {}\n", text::line(&problem))
            }
        });
        let Some(delivery) = deliveries.first_mut() else {
            return Self { text, is_delivered: false };
        };
        let Settled { verdict, end } =
            settle_one(delivery, subscription, exchange, now_ms, Jitter::NONE);
        let outcome = exchange.outcome(&subscription.retry);
        text.push_str(&format!(
            "\noutcome: {}, in {}\nverdict: {}\nnext: {}\n",
            text::outcome(Some(outcome.as_str()), exchange.status()),
            text::duration(exchange.duration_ms),
            verdict.as_str(),
            next(&end, delivery, subscription, catalogue, exchange)
        ));
        if let End::Retry { .. } = end {
            text.push_str(&prospects(subscription, delivery.published_ms, exchange));
        }
        Self { text, is_delivered: end == End::Done }
    }
}

/// Formats the request and the response as HTTP messages, with secrets redacted.
fn shown(exchange: &ShownExchange) -> String {
    let request = exchange_text::request(exchange);
    let detail = exchange.detail.iter().map(|detail| format!("\n{}\n", text::line(detail)));
    let detail: String = detail.collect();
    match &exchange.response {
        Some(response) => {
            let name = text::status_name(response.status).unwrap_or_default();
            let status = format!("{} {name}", response.status);
            format!(
                "{request}\n{}\n{}{}{detail}",
                status.trim_end(),
                exchange_text::headers(&response.headers),
                exchange_text::body(&response.body)
            )
        }
        None => format!("{request}\nno response\n{detail}"),
    }
}

/// Describes what dispatch would do next: retry, deliver a reply, or store a dead letter.
fn next(
    end: &End,
    delivery: &Delivery,
    subscription: &Subscription,
    catalogue: &Catalogue,
    exchange: &Exchange,
) -> String {
    let retry = &subscription.retry;
    match end {
        End::Done => {
            let now_ms = exchange.ended_ms();
            let replies = reply::follow_ups(delivery, subscription, exchange, catalogue, now_ms);
            match replies.len() as u64 {
                0 => "none: the event is delivered".to_owned(),
                count => format!("the reply causes {}", text::counted(count, "message")),
            }
        }
        End::Retry { wait_ms } => {
            let jitter = match retry.jitter_percent {
                0 => String::new(),
                percent => format!(", plus up to {percent} %"),
            };
            let attempt = delivery.attempts.saturating_add(1);
            let most = retry.max_attempts;
            format!("attempt {attempt} of {most} after {}{jitter}", text::duration(*wait_ms))
        }
        End::DeadLetter(letter) | End::ToSink(letter) => {
            let delay = match letter.not_before_ms.saturating_sub(letter.decided_ms) {
                0 => String::new(),
                delay_ms => format!(", {} later", text::duration(delay_ms)),
            };
            let sink = sink_text(&subscription.dead_letter);
            format!("a dead letter, {}, to {sink}{delay}", letter.reason)
        }
        End::Drop(reason) => format!("the event is dropped, {reason}"),
    }
}

/// Describes the further attempts of the delivery if the endpoint always responded like this.
fn prospects(subscription: &Subscription, published_ms: u64, exchange: &Exchange) -> String {
    let Some(always) = Always::as_in(exchange) else { return String::new() };
    let retry_after = if let TransportResult::Answered { retry_after, .. } = &exchange.result {
        retry_after.clone()
    } else {
        None
    };
    let life = explain(subscription, &Endpoint { always, retry_after }, published_ms);
    format!(
        "if every response is the same: {}, then the delivery ends with {} after {}\n",
        text::counted(life.attempts.len() as u64, "attempt"),
        life.reason_name(),
        text::duration(life.ended_ms)
    )
}
