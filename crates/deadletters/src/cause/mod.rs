//! Groups dead letters by cause: the same outcome, status and message, across subscriptions. Pure.
//!
//! This module forms the groups; its submodules read one dead letter each. [`title`] describes a
//! dead letter. [`body`] and [`shapes`] find the errors in a response. [`template`] replaces
//! varying parts with placeholders. [`templated`] restores the values that all dead letters of a
//! group share.
//!
//! Promises: dead letters that differ only in varying parts have one cause, in whatever order they
//! are added. The id of a cause depends on each dead letter alone, so it is the same in every run.
//! A title may lose values when a dead letter with other values is added.

mod body;
mod cut_json;
mod errors;
mod id;
mod kinds;
mod library_texts;
mod lines;
mod problem;
mod quotes;
mod shapes;
mod status;
mod template;
mod templated;
mod text;
mod title;
mod trace;
mod transport;
mod trend;
mod word;

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use delivery::deadletter::stored::{FailedAt, StoredDeadLetter};
use serde::Serialize;
use uuid::Uuid;

pub use self::id::{CauseId, CausePrefix};
use self::template::PLACEHOLDERS;
use self::templated::Shared;
use self::title::{Described, describe};
pub use self::trend::Trend;
use crate::facts::decided_ms;
use crate::stats::greatest_first;

/// A group of dead letters that failed in the same way.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// The id of the cause, which is the same in every run.
    pub id: CauseId,
    /// The title of the newest dead letter, such as `422 Field required: body.customer.email`.
    /// Placeholders replace parts that differ between dead letters.
    pub title: String,
    /// The outcome of the last attempt. If the dead-letter reason alone determines the cause, this
    /// field contains the reason instead.
    pub outcome: String,
    /// The HTTP status of the last response, if any.
    pub status: Option<u16>,
    /// The party that failed, such as the destination.
    pub at: FailedAt,
    /// True if the deliveries did not fail, but a person stopped them.
    pub is_set_aside: bool,
    /// True if the newest dead letter is newer than a dismissal of the cause. Always false if
    /// dismissals were not read.
    pub is_reopened: bool,
    /// The number of dead letters with this cause.
    pub count: u64,
    /// The share of this cause in all dead letters, from 0 to 1.
    pub share: f64,
    /// The subscriptions with their numbers of dead letters, highest number first.
    pub subscriptions: Vec<SubscriptionCount>,
    /// Time at which the first event became a dead letter.
    pub first_ms: Option<u64>,
    /// Time at which the last event became a dead letter.
    pub last_ms: Option<u64>,
    /// Time at which the oldest of the events was published. With retries, this is long before
    /// `first_ms`.
    pub oldest_event_ms: Option<u64>,
    /// The trend of the cause: more or less frequent than before. [`Trend`] defines the compared
    /// times.
    pub trend: Trend,
    /// The id of the dead letter with the latest attempt. That dead letter contains the newest
    /// response of the endpoint.
    pub example: Uuid,
}

impl Cause {
    /// True if the title contains a placeholder, such as `<number>`.
    #[must_use]
    pub fn has_placeholder(&self) -> bool {
        PLACEHOLDERS.iter().any(|placeholder| self.title.contains(placeholder))
    }
}

/// A subscription, and its number of dead letters with one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubscriptionCount {
    /// The full name of the subscription, `namespace/topic/name`.
    pub name: String,
    /// The number of dead letters of the subscription.
    pub count: u64,
}

/// Returns the id of the cause of a dead letter.
#[must_use]
pub fn cause_id(letter: &StoredDeadLetter) -> CauseId {
    id_of(&describe(letter))
}

/// Returns the id of the cause of a dead letter, and its title with placeholders.
#[must_use]
pub fn titled_cause(letter: &StoredDeadLetter) -> (CauseId, String) {
    let described = describe(letter);
    (id_of(&described), described.title.template)
}

/// The cause of one dead letter. Callers that group dead letters repeatedly store this value,
/// because finding the cause in the response is the slowest step.
#[derive(Debug)]
pub struct KnownCause {
    id: CauseId,
    described: Described,
}

impl KnownCause {
    /// Finds the cause of a dead letter.
    #[must_use]
    pub fn from_letter(letter: &StoredDeadLetter) -> Self {
        let described = describe(letter);
        Self { id: id_of(&described), described }
    }

    /// Returns the id of the cause.
    #[must_use]
    pub fn id(&self) -> CauseId {
        self.id
    }
}

fn id_of(described: &Described) -> CauseId {
    CauseId::new(&described.outcome, described.status, &described.message)
}

/// Groups of dead letters by cause. Dead letters are added one by one.
#[derive(Debug, Default)]
pub struct Causes(HashMap<CauseId, Group>);

/// The dead letters of one cause that were added so far.
#[derive(Debug)]
struct Group {
    described: Described,
    shared: Shared,
    at: FailedAt,
    is_set_aside: bool,
    subscriptions: BTreeMap<String, u64>,
    count: u64,
    times_ms: Vec<u64>,
    oldest_event_ms: Option<u64>,
    /// Time and id of the newest dead letter. The id breaks ties, so the title does not depend on
    /// the order of reading.
    newest: (Option<u64>, Uuid),
    /// Time of the last attempt, and id of the dead letter with that attempt.
    last_attempted: (Option<u64>, Uuid),
}

impl Causes {
    /// Adds a dead letter to the group of its cause.
    pub fn add(&mut self, letter: &StoredDeadLetter) {
        self.add_known(letter, &KnownCause::from_letter(letter));
    }

    /// Adds a dead letter whose cause is already known.
    pub fn add_known(&mut self, letter: &StoredDeadLetter, cause: &KnownCause) {
        let KnownCause { id, described } = cause;
        let newest = (decided_ms(letter), letter.id);
        match self.0.entry(*id) {
            Entry::Occupied(mut group) => group.get_mut().add(letter, described, newest),
            Entry::Vacant(place) => _ = place.insert(Group::new(letter, described, newest)),
        }
    }

    /// Returns the causes, sorted by number of dead letters, highest first. Causes of deliveries
    /// that a person stopped come before all others. `end_ms` is the end of the time range, at
    /// which the last window of each [`Trend`] ends.
    #[must_use]
    pub fn sorted(self, end_ms: u64) -> Vec<Cause> {
        let total: u64 = self.0.values().map(|group| group.count).sum();
        let times = self.0.values().flat_map(|group| &group.times_ms);
        let range_from_ms = times.min().copied().unwrap_or(end_ms);
        let cause = |(id, group): (CauseId, Group)| group.cause(id, total, range_from_ms, end_ms);
        let mut causes: Vec<Cause> = self.0.into_iter().map(cause).collect();
        causes.sort_by_cached_key(|cause| {
            (!cause.is_set_aside, Reverse(cause.count), cause.title.clone(), cause.id)
        });
        causes
    }
}

impl Group {
    fn new(letter: &StoredDeadLetter, described: &Described, newest: (Option<u64>, Uuid)) -> Self {
        Self {
            shared: Shared::new(&described.title),
            described: described.clone(),
            at: letter.failure().at,
            is_set_aside: letter.is_set_aside(),
            subscriptions: BTreeMap::from([(letter.subscription.to_string(), 1)]),
            count: 1,
            times_ms: newest.0.into_iter().collect(),
            oldest_event_ms: letter.published_ms,
            newest,
            last_attempted: (letter.last_attempt_ms, letter.id),
        }
    }

    fn add(&mut self, letter: &StoredDeadLetter, described: &Described, at: (Option<u64>, Uuid)) {
        self.count += 1;
        self.shared.add(&described.title);
        *self.subscriptions.entry(letter.subscription.to_string()).or_default() += 1;
        self.times_ms.extend(at.0);
        self.oldest_event_ms = self.oldest_event_ms.into_iter().chain(letter.published_ms).min();
        self.last_attempted = self.last_attempted.max((letter.last_attempt_ms, letter.id));
        if at >= self.newest {
            (self.newest, self.described) = (at, described.clone());
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a share is shown as a percentage")]
    fn cause(self, id: CauseId, total: u64, range_from_ms: u64, end_ms: u64) -> Cause {
        let counts = greatest_first(&self.subscriptions).into_iter();
        let subscriptions =
            counts.map(|(name, count)| SubscriptionCount { name: name.to_owned(), count });
        Cause {
            id,
            title: self.shared.shown(&self.described.title),
            outcome: self.described.outcome,
            status: self.described.status,
            at: self.at,
            is_set_aside: self.is_set_aside,
            is_reopened: false,
            count: self.count,
            share: self.count as f64 / total.max(1) as f64,
            subscriptions: subscriptions.collect(),
            first_ms: self.times_ms.iter().min().copied(),
            last_ms: self.times_ms.iter().max().copied(),
            oldest_event_ms: self.oldest_event_ms,
            trend: Trend::new(&self.times_ms, range_from_ms, end_ms),
            example: self.last_attempted.1,
        }
    }
}

#[cfg(test)]
mod frameworks_tests;
#[cfg(test)]
mod library_rows;
#[cfg(test)]
mod tests;
