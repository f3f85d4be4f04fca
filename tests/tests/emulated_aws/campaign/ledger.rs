//! The published events, and the end of each of their deliveries.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::destinations::Delivered;
use super::subscriptions::{TOPIC, UNKNOWN, WIDE, paths_of};

/// One event in fifty has a topic without subscriptions, and one in ten a topic with many
/// subscriptions.
const UNKNOWN_EVERY: usize = 50;
const WIDE_EVERY: usize = 10;

/// The topic and the id of an event.
pub(super) fn nth_event(number: usize) -> (&'static str, String) {
    let topic = match number {
        number if number % UNKNOWN_EVERY == 7 => UNKNOWN,
        number if number.is_multiple_of(WIDE_EVERY) => WIDE,
        _ => TOPIC,
    };
    (topic, format!("event-{number}"))
}

/// The ends of the deliveries of all published events.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    pub(super) events: usize,
    pub(super) deliveries: usize,
    pub(super) delivered: usize,
    /// 200 responses after the first of a delivery.
    pub(super) duplicates: usize,
    pub(super) dead_lettered: usize,
    pub(super) delivered_and_dead_lettered: usize,
    /// Blobs after the first of a delivery.
    pub(super) duplicate_blobs: usize,
    pub(super) reasons: BTreeMap<String, usize>,
    pub(super) lost: Vec<Delivered>,
    /// Deliveries that ended but were never published.
    pub(super) invented: Vec<Delivered>,
}

/// Accounts for the first `published` events, from the accepted deliveries and the stored dead
/// letters.
pub(super) fn accounts(
    published: usize,
    mut taken: HashMap<Delivered, usize>,
    letters: &[(String, Value)],
) -> Accounts {
    let mut accounts = Accounts { events: published, ..Accounts::default() };
    let mut dead: HashMap<Delivered, usize> = HashMap::new();
    for (key, letter) in letters {
        let reason = &letter["deadletterProperties"]["deadletterreasoncode"];
        let reason = reason.as_str().expect("a dead letter has a reason").to_owned();
        *accounts.reasons.entry(reason).or_default() += 1;
        *dead.entry(delivery_of(key, letter)).or_default() += 1;
    }
    for number in 0..published {
        let (topic, id) = nth_event(number);
        // A record that its queue gave up has one dead letter for all of its deliveries.
        let whole = dead.remove(&(format!("/{topic}/_unprocessed"), id.clone())).unwrap_or(0);
        for path in paths_of(topic) {
            let delivery = (path, id.clone());
            let (taken, dead) = (taken.remove(&delivery), dead.remove(&delivery));
            accounts.add(delivery, taken.unwrap_or(0), dead.unwrap_or(0) + whole);
        }
    }
    accounts.invented.extend(taken.into_keys().chain(dead.into_keys()));
    accounts
}

impl Accounts {
    fn add(&mut self, delivery: Delivered, taken: usize, dead: usize) {
        self.deliveries += 1;
        self.delivered += usize::from(taken > 0);
        self.duplicates += taken.saturating_sub(1);
        self.dead_lettered += usize::from(dead > 0);
        self.duplicate_blobs += dead.saturating_sub(1);
        self.delivered_and_dead_lettered += usize::from(taken > 0 && dead > 0);
        if taken == 0 && dead == 0 {
            self.lost.push(delivery);
        }
    }
}

/// Returns the delivery of a dead letter: `/<namespace>/<topic>/<subscription>` of its key, and the
/// event's id.
fn delivery_of(key: &str, letter: &Value) -> Delivered {
    let path: Vec<&str> = key.split('/').take(3).collect();
    let id = letter["event"]["id"].as_str().expect("a dead letter holds its event");
    (format!("/{}", path.join("/")), id.to_owned())
}

#[test]
fn what_ended_nowhere_is_lost_and_what_nobody_published_is_invented() {
    let delivery = |path: &str, id: &str| (path.to_owned(), id.to_owned());
    let taken = [(delivery("/shop/wide/wide-0", "event-0"), 2), (delivery("/a/b/c", "other"), 1)];
    let letter = serde_json::json!({
        "event": {"id": "event-1"},
        "deadletterProperties": {"deadletterreasoncode": "TimeToLiveExceeded"},
    });
    let letters = [("shop/campaign/down/2026/11/20/7/1.json".to_owned(), letter)];
    let accounts = accounts(2, taken.into(), &letters);
    assert_eq!((accounts.deliveries, accounts.delivered, accounts.dead_lettered), (18, 1, 1));
    assert_eq!((accounts.duplicates, accounts.lost.len()), (1, 16));
    assert_eq!(accounts.invented, [delivery("/a/b/c", "other")]);
}
