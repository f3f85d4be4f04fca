//! The table that `check` prints after the findings: destination and attempts of each subscription, or the reason for
//! none.
//!
//! Separate because findings are about fields. A reader of the findings alone would have to know which subscriptions
//! have an error, and what the defaults of their dialects are.

use delivery::manifest::LeftOut;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;

use crate::attempts::{Attempts, Tries};
use crate::lints::AddressRules;
use crate::text;

const COLUMNS: [&str; 3] = ["subscription", "destination", "attempts"];
/// The most rows of the table: more than anybody reads, and fewer than a catalogue may have.
const ROWS_MAX: usize = 10_000;

/// The table, empty if there is no subscription.
pub(super) fn table(
    catalogue: &Catalogue,
    left_out: &[LeftOut],
    rules: &AddressRules,
    now_ms: u64,
) -> String {
    let count = catalogue.subscriptions().count() + left_out.len();
    if count == 0 {
        return String::new();
    }
    let mut table = text::table(&COLUMNS);
    let mut attempts = Attempts::default();
    for subscription in catalogue.subscriptions().take(ROWS_MAX) {
        let destination = subscription.destination.display();
        let tried = tried(subscription, &mut attempts, rules, now_ms);
        table.add_row([subscription.name.to_string(), destination, tried]);
    }
    let shown = catalogue.subscriptions().count().min(ROWS_MAX);
    for LeftOut { name, reason } in left_out.iter().take(ROWS_MAX - shown) {
        let (name, reason) = (text::line(name), text::line(reason));
        table.add_row([name, "-".to_owned(), format!("none, not deployed: {reason}")]);
    }
    let more = count.saturating_sub(ROWS_MAX);
    let more = if more == 0 { String::new() } else { more_subscriptions(more) };
    format!("{table}\n{more}")
}

fn more_subscriptions(count: usize) -> String {
    let count = text::counted(count as u64, "more subscription");
    format!("{count}: lastmile explain shows the attempts of each\n")
}

/// The number of attempts and the time of the last one, or the reason for none.
fn tried<'a>(
    subscription: &'a Subscription,
    attempts: &mut Attempts<'a>,
    rules: &AddressRules,
    now_ms: u64,
) -> String {
    if subscription.paused {
        return "none, paused: its events become dead letters".to_owned();
    }
    if subscription.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms) {
        return "none, expired: it takes no new events".to_owned();
    }
    if subscription.destination.topic().is_some() {
        return "none, its events go on to the subscriptions of that topic".to_owned();
    }
    let Tries { attempts, last_at_ms } = attempts.of(subscription);
    let mut tried = text::counted(attempts as u64, "attempt");
    if attempts > 1 {
        tried.push_str(&format!(" within {}", text::duration(last_at_ms)));
    }
    if rules.refuse(&subscription.destination.url) {
        tried.push_str(", if the deployment allows this address");
    }
    tried
}

#[cfg(test)]
mod tests {
    use delivery::manifest::{Source, read};

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
";

    #[test]
    fn the_table_shows_whether_where_and_how_often_each_subscription_is_tried() {
        let reading = read(&[Source { name: "f", text: SUBSCRIPTIONS }]);
        let rules = AddressRules::of(None).unwrap();
        let table = table(&reading.catalogue, &reading.left_out, &rules, 0);
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|of| !of.is_empty()).collect())
            .collect();
        let problem = reading.findings[0].message.as_str();
        let wrong = format!("none, not deployed: {problem}");
        assert_eq!(
            rows,
            [
                COLUMNS.to_vec(),
                vec!["n/t/often", "https://a.example.com/", "3 attempts within 11 min"],
                vec!["n/t/once", "https://b.example.com/", "1 attempt"],
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
                vec!["n/t/wrong", "-", &wrong],
            ]
        );
    }

    #[test]
    fn without_subscriptions_there_is_no_table() {
        let rules = AddressRules::of(None).unwrap();
        assert_eq!(table(&Catalogue::default(), &[], &rules, 0), "");
    }
}
