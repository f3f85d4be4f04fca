//! Formats the table that `check` prints after the findings: destination and attempts of each
//! subscription, or the reason why there are none.
//!
//! Separate because findings only concern single fields. They show neither which subscriptions are
//! affected by errors, nor the defaults of the dialects.

use std::collections::HashSet;

use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use dialects::{LeftOut, Reading, is_stock_knative};

use crate::operations::attempts::{Attempts, Tries};
use crate::operations::aws_targets::TargetRules;
use crate::operations::lints::AddressRules;
use crate::terminal::text;

const COLUMNS: [&str; 3] = ["subscription", "destination", "attempts"];
/// The maximum number of rows of the table, because people do not read longer tables.
const ROWS_MAX: usize = 10_000;

/// The rules of the deployment that decide which destinations it may use.
pub(super) struct Rules {
    pub(super) addresses: AddressRules,
    pub(super) targets: Option<TargetRules>,
}

impl Rules {
    /// Returns a clause for the row of a subscription: attempts are only made if the deployment
    /// allows the destination. Returns `None` if the rules already allow it.
    fn condition(&self, subscription: &Subscription) -> Option<&'static str> {
        let destination = &subscription.destination;
        if destination.aws.is_some() {
            let is_listed = |rules: &TargetRules| rules.problem(subscription).is_none();
            return (!self.targets.as_ref().is_some_and(is_listed))
                .then_some(", if the deployment lists this target");
        }
        self.addresses.refuse(&destination.url).then_some(", if the deployment allows this address")
    }
}

/// Formats the table; returns an empty text if there are no subscriptions.
pub(super) fn table(reading: &Reading, rules: &Rules, now_ms: u64) -> String {
    let Reading { catalogue, left_out, .. } = reading;
    let count = catalogue.subscriptions().count() + left_out.len();
    if count == 0 {
        return String::new();
    }
    let mut table = text::table(&COLUMNS);
    let mut attempts = Attempts::default();
    for subscription in catalogue.subscriptions().take(ROWS_MAX) {
        let destination = subscription.destination.display();
        let tried = match not_tried(subscription, reading, now_ms) {
            Some(reason) => format!("none, {reason}"),
            None => tried(subscription, &mut attempts, reading, rules),
        };
        table.add_row([subscription.name.to_string(), destination, tried]);
    }
    let shown = catalogue.subscriptions().count().min(ROWS_MAX);
    for LeftOut { name, at, reason } in left_out.iter().take(ROWS_MAX - shown) {
        let [name, at, reason] = [name, at, reason].map(|value| text::line(value));
        let wrong = format!("none; not deployed because of an error at {at}: {reason}");
        table.add_row([name, "-".to_owned(), wrong]);
    }
    let more = count.saturating_sub(ROWS_MAX);
    let more = if more == 0 { String::new() } else { more_subscriptions(more) };
    format!("{table}\n{more}")
}

fn more_subscriptions(count: usize) -> String {
    let count = text::counted(count as u64, "more subscription");
    format!("{count}; see lastmile explain for the attempts of each\n")
}

/// Returns the reason why a subscription makes no attempts; `None` if it makes attempts.
fn not_tried(subscription: &Subscription, reading: &Reading, now_ms: u64) -> Option<&'static str> {
    if subscription.paused {
        return Some("paused: its events become dead letters");
    }
    if subscription.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms) {
        return Some("expired: accepts no new events");
    }
    let topic = subscription.destination.topic()?;
    Some(if is_received(&topic, &reading.catalogue) {
        "events are forwarded to the subscriptions of that topic"
    } else if has_subscriptions(&topic, reading) {
        "nobody receives its events: the subscriptions of that topic have errors or no destination \
         of their own"
    } else {
        "nobody receives its events: no file has a subscription of that topic"
    })
}

/// Returns true if events of a topic are delivered to at least one destination that is not a topic.
fn is_received(topic: &TopicName, catalogue: &Catalogue) -> bool {
    let (mut open, mut seen) = (vec![topic.clone()], HashSet::new());
    while let Some(topic) = open.pop() {
        let of_topic = catalogue.topic_subscriptions(&topic).into_iter();
        for subscription in of_topic.flat_map(|entry| entry.subscriptions()) {
            let Some(next) = subscription.destination.topic() else { return true };
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    false
}

/// Returns true if the files describe a subscription of a topic, including invalid subscriptions.
fn has_subscriptions(topic: &TopicName, reading: &Reading) -> bool {
    let of_topic = format!("{topic}/");
    reading
        .catalogue
        .topic_subscriptions(topic)
        .is_some_and(|subscriptions| !subscriptions.is_empty())
        || reading.left_out.iter().any(|subscription| subscription.name.starts_with(&of_topic))
}

/// Describes the number of attempts, and the time of the last attempt.
fn tried<'a>(
    subscription: &'a Subscription,
    attempts: &mut Attempts<'a>,
    reading: &Reading,
    rules: &Rules,
) -> String {
    let Tries { attempts, last_at_ms } = attempts.tries(subscription);
    let mut tried = text::counted(attempts as u64, "attempt");
    if attempts > 1 {
        tried.push_str(&format!(" within {}", text::duration(last_at_ms)));
    }
    if reading.origins.get(&subscription.name).is_some_and(is_stock_knative) {
        tried.push_str(", from the defaults of stock Knative");
    }
    tried.push_str(rules.condition(subscription).unwrap_or_default());
    tried
}

#[cfg(test)]
mod tests {
    use dialects::{Source, read};

    use super::*;

    const SUBSCRIPTIONS: &str = "
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: n, topic: t, name: often}
spec:
  destination: {url: 'https://a.example.com/'}
  retry: {maxAttempts: 3, schedule: {kind: waits, waits: [PT1M, PT10M]}, neverRetry: [500]}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: n, topic: t, name: once}
spec: {destination: {url: 'https://b.example.com/'}, retry: {maxAttempts: 1}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: n, topic: t, name: paused}
spec: {destination: {url: 'https://c.example.com/'}, paused: true}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: n, topic: t, name: wrong}
spec: {destination: {url: nowhere}}
---
apiVersion: lastmile.dev/v1
kind: Subscription
metadata: {namespace: n, topic: t, name: private}
spec: {destination: {url: 'http://127.0.0.1:9180/'}, retry: {maxAttempts: 1}}
---
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {namespace: n, name: other}
---
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {namespace: n, name: next}
---
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {namespace: n, name: empty}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {namespace: n, name: onward}
spec: {broker: t, subscriber: {ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: other}}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {namespace: n, name: nowhere}
spec: {broker: t, subscriber: {ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: next}}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {namespace: n, name: back}
spec: {broker: next, subscriber: {ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: empty}}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {namespace: n, name: to-nobody}
spec: {broker: t, subscriber: {ref: {apiVersion: eventing.knative.dev/v1, kind: Broker, name: empty}}}
---
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {namespace: n, name: stock}
spec: {broker: other, subscriber: {uri: 'https://d.example.com/'}}
";

    #[test]
    fn the_table_shows_whether_where_and_how_often_each_subscription_is_tried() {
        let reading = read(&[Source { name: "f", text: SUBSCRIPTIONS }]);
        let rules = Rules { addresses: AddressRules::load(None).unwrap(), targets: None };
        let table = table(&reading, &rules, 0);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        let problem = reading.findings[0].message.as_str();
        let to_nobody = "none, nobody receives its events: the subscriptions of that topic have \
                         errors or no destination of their own";
        let wrong = format!(
            "none; not deployed because of an error at f:22:27: spec.destination.url: {problem}"
        );
        assert_eq!(
            rows,
            [
                COLUMNS.to_vec(),
                vec![
                    "n/next/back",
                    "topic:n/empty",
                    "none, nobody receives its events: no file has a subscription of that topic"
                ],
                vec![
                    "n/other/stock",
                    "https://d.example.com/",
                    "11 attempts within 6 min 49 s, from the defaults of stock Knative"
                ],
                vec!["n/t/nowhere", "topic:n/next", to_nobody],
                vec!["n/t/often", "https://a.example.com/", "3 attempts within 11 min"],
                vec!["n/t/once", "https://b.example.com/", "1 attempt"],
                vec![
                    "n/t/onward",
                    "topic:n/other",
                    "none, events are forwarded to the subscriptions of that topic"
                ],
                vec![
                    "n/t/paused",
                    "https://c.example.com/",
                    "none, paused: its events become dead letters"
                ],
                vec![
                    "n/t/private",
                    "http://127.0.0.1:9180/",
                    "1 attempt, if the deployment allows this address"
                ],
                vec![
                    "n/t/to-nobody",
                    "topic:n/empty",
                    "none, nobody receives its events: no file has a subscription of that topic"
                ],
                vec!["n/t/wrong", "-", &wrong],
            ]
        );
    }

    #[test]
    fn without_subscriptions_there_is_no_table() {
        let rules = Rules { addresses: AddressRules::load(None).unwrap(), targets: None };
        assert_eq!(table(&read(&[]), &rules, 0), "");
    }
}
