//! A record with more deliveries than run in place is divided into parts. Pure.
//!
//! A part is a message with some of the elements for some of the subscriptions, and what it becomes is
//! decided when it is received: it runs in place, or is divided again. The ids of deliveries are those
//! of the undivided record. However large a record is, it becomes about a hundred parts at most, so a
//! redelivery repeats no more than those.
//!
//! For example, 12 events for two subscriptions are 24 requests. Ten requests run in place, so a part has five events. The parts begin
//! with the events 0, 5 and 10. One event for 2,500 subscriptions becomes three parts, with at most 1,000 subscriptions each. They become
//! parts of ten subscriptions, which run in place. Both examples are acceptance tests (`divided.rs`).
//!
//! Elements are divided first. Where several subscriptions match and one of them batches, elements are
//! divided down to some thousands, and then subscriptions, so that the events of a batch stay together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use delivery::event::envelope::Elements;
use delivery::machine::step::Grouping;
use delivery::ports::{Message, QueueName};
use delivery::subscription::Subscription;
use delivery::subscription::name::NameRange;

use super::publish::Published;
use super::{Decoded, WorkItem};

/// Requests of one record that run in place, or dead letters of it; a record with more is divided.
pub const REQUESTS_IN_PLACE: usize = 10;
/// The most deliveries of one record that run in place, and events that nothing matches: the largest
/// batch, and what was there before it began.
const EVENTS_IN_PLACE: usize = 6_000;
/// With more events than these no further request begins.
const EVENTS_BEFORE_A_REQUEST: usize = 1_000;

/// Where a subscription among several batches, subscriptions are divided only for so few elements.
const ELEMENTS_TOGETHER: usize = 5_000;

/// With more deliveries than these, the others are not counted: their parts are divided again anyway.
const COUNTED_MAX: usize = 20_000;

/// How many subscriptions are counted of an element: one with more does not run in place.
const MATCHES_COUNTED_MAX: usize = EVENTS_IN_PLACE + 1;

/// A record is divided into at most so many parts at a time; a part that is too large for a message
/// is divided at once.
pub const PARTS_MAX: usize = 100;

/// What runs in place: elements are added until one is too many.
#[derive(Default)]
struct InPlace {
    grouping: Grouping,
    letters: usize,
    events: usize,
}

impl InPlace {
    /// Adds the items of an element; whether there was room for them.
    fn takes(&mut self, items: &[WorkItem], now_ms: u64) -> bool {
        let requests = self.requests();
        for item in items {
            match item {
                WorkItem::Deliver(subscription, delivery) => {
                    self.grouping.place(subscription, delivery, now_ms);
                }
                WorkItem::DeadLetter(_) | WorkItem::Forward(..) => self.letters += 1,
            }
        }
        let begins_one = self.requests() > requests;
        let is_late = self.events > EVENTS_BEFORE_A_REQUEST;
        self.events += items.len().max(1);
        self.requests() <= REQUESTS_IN_PLACE
            && self.events <= EVENTS_IN_PLACE
            && !(is_late && begins_one)
    }

    fn requests(&self) -> usize {
        self.grouping.count() + self.letters
    }
}

/// The items of a published record: its deliveries, or, if they are too many, its parts.
pub(crate) fn items_of(published: &Published<'_>, elements: &Elements<'_>) -> Decoded {
    if elements.len() == 1 {
        return items_of_one(published, elements);
    }
    let (mut decoded, mut in_place) = (Decoded::default(), InPlace::default());
    // The index of the first element of each leaf: what runs in place together.
    let mut leaves = vec![0];
    let (mut has_too_large, mut matched) = (false, Subscriptions::default());
    let mut counted = 0;
    for index in 0..elements.len() {
        let mut read = published.read(elements, index, MATCHES_COUNTED_MAX);
        counted += read.items.len();
        decoded.missing.append(&mut read.missing);
        matched.note(&read.items);
        if !in_place.takes(&read.items, published.grouped_at_ms()) {
            in_place = InPlace::default();
            if index > 0 {
                leaves.push(index);
            }
            has_too_large |= !in_place.takes(&read.items, published.grouped_at_ms());
        }
        if leaves.len() == 1 && !has_too_large {
            decoded.append(&mut read);
        } else if counted > COUNTED_MAX {
            extrapolate(&mut leaves, elements.len());
            break;
        }
    }
    if leaves.len() == 1 && !has_too_large {
        return decoded;
    }
    let missing = decoded.missing;
    let mut division = Division { published, elements, decoded: Decoded::default() };
    if matched.keep_batches() {
        division.divide_by_names(&leaves);
    } else {
        division.divide_elements(&leaves, elements.len());
    }
    Decoded { missing, ..division.decoded }
}

/// The ranges of names of a record, cut around those in which no subscription can be used.
pub(crate) fn around(published: &Published<'_>, unusable: &[NameRange]) -> Vec<NameRange> {
    let ends = |range: &NameRange| [Some(range.from.clone()), range.before.clone()];
    let cuts: Vec<String> = unusable.iter().flat_map(ends).flatten().collect();
    let names = published.names();
    // A range that begins or ends where all of them do is not cut there.
    let cuts: Vec<&str> = cuts
        .iter()
        .map(String::as_str)
        .filter(|cut| *cut > names.from.as_str() && !names.ends_before(cut))
        .collect();
    ranges_between(names, cuts)
}

/// The ranges of these names between the cuts, or several of them together if there would be too many.
fn ranges_between(names: &NameRange, cuts: Vec<&str>) -> Vec<NameRange> {
    let step = step(cuts.len() + 1);
    names.cut_at(&cuts.into_iter().skip(step - 1).step_by(step).collect::<Vec<_>>())
}

/// All elements of a record for each of these ranges of names.
pub(crate) fn for_names(
    published: &Published<'_>,
    elements: &Elements<'_>,
    ranges: Vec<NameRange>,
) -> impl Iterator<Item = Message> {
    let parts = ranges.len();
    ranges.into_iter().enumerate().map(move |(place, names)| {
        let part = published.part(0, names).with_share(parts, place);
        Message::of_publication(part, elements.body_of(0..elements.len()))
    })
}

/// The items of a record of one element, as most are. Each of its deliveries is a request.
fn items_of_one(published: &Published<'_>, elements: &Elements<'_>) -> Decoded {
    let read = published.read(elements, 0, REQUESTS_IN_PLACE + 1);
    if read.items.len() <= REQUESTS_IN_PLACE {
        return read;
    }
    let Ok(event) = published.event(elements, 0) else { return read };
    // Their names are enough: there may be a hundred thousand.
    let matching: Vec<&Arc<Subscription>> = published.matching(&event).collect();
    let names = matching.iter().map(|of| of.name.name.as_str());
    let mut division = Division { published, elements, decoded: Decoded::default() };
    let parts = division.cut_at(names.step_by(REQUESTS_IN_PLACE).skip(1).collect());
    if parts.iter().all(Message::fits) {
        parts.into_iter().for_each(|part| division.send(part));
    } else {
        division.run_in_place(0);
    }
    division.decoded
}

/// Adds leaves for the elements that were not counted, as long as the counted ones are on average. The
/// last one was not counted to its end, so it is replaced.
fn extrapolate(leaves: &mut Vec<usize>, end: usize) {
    let start = leaves.pop().unwrap_or_default();
    let length = match leaves.len() {
        0 => 1,
        counted => start.div_ceil(counted),
    };
    leaves.extend((start..end).step_by(length));
}

/// The subscriptions that match a record, as far as they decide how it is divided.
#[derive(Default)]
struct Subscriptions {
    first: Option<Arc<Subscription>>,
    are_several: bool,
    batch: bool,
}

impl Subscriptions {
    fn note(&mut self, items: &[WorkItem]) {
        for item in items {
            if let WorkItem::Deliver(subscription, _) = item {
                let first = self.first.get_or_insert_with(|| Arc::clone(subscription));
                self.are_several |= !Arc::ptr_eq(first, subscription);
                self.batch |= subscription.batch.is_some();
            }
        }
    }

    /// Whether events of a batch would be torn apart for the sake of others.
    fn keep_batches(&self) -> bool {
        self.are_several && self.batch
    }
}

/// A record while it is divided.
struct Division<'a> {
    published: &'a Published<'a>,
    elements: &'a Elements<'a>,
    decoded: Decoded,
}

impl Division<'_> {
    /// Divides so that batches stay together, unless a part would be too large for a message.
    fn divide_by_names(&mut self, leaves: &[usize]) {
        let (parts, unmatched) = if self.elements.len() > ELEMENTS_TOGETHER {
            (self.chunks(), Vec::new())
        } else {
            self.ranges_of_names()
        };
        if parts.iter().all(Message::fits) {
            parts.into_iter().for_each(|part| self.send(part));
            // No part can know that no other takes them.
            unmatched.into_iter().for_each(|index| self.run_in_place(index));
        } else {
            self.divide_elements(leaves, self.elements.len());
        }
    }

    /// The elements in parts that are divided by names later.
    fn chunks(&self) -> Vec<Message> {
        let end = self.elements.len();
        let starts = (0..end).step_by(ELEMENTS_TOGETHER);
        let chunk = |start: usize| start..(start + ELEMENTS_TOGETHER).min(end);
        starts.map(|start| self.part(chunk(start), self.published.names().clone())).collect()
    }

    /// All elements for some names each, and those that no name takes.
    fn ranges_of_names(&self) -> (Vec<Message>, Vec<usize>) {
        let Matched { names, unmatched } = self.matched();
        (self.cut_at(cuts(&names)), unmatched)
    }

    /// All elements for the names between these, or for several such ranges if they are too many.
    fn cut_at(&self, cuts: Vec<&str>) -> Vec<Message> {
        let ranges = ranges_between(self.published.names(), cuts);
        for_names(self.published, self.elements, ranges).collect()
    }

    /// Divides by elements, so that each part holds whole leaves.
    fn divide_elements(&mut self, leaves: &[usize], end: usize) {
        let step = step(leaves.len());
        for (index, chunk) in leaves.chunks(step).enumerate() {
            let next = leaves.get((index + 1) * step).copied().unwrap_or(end);
            self.send_elements(chunk[0]..next);
        }
    }

    /// Sends some elements as one part. If it is too large for a message it is halved; a single element
    /// runs in place, or it would become a dead letter without one attempt.
    fn send_elements(&mut self, elements: Range<usize>) {
        let part = self.part(elements.clone(), self.published.names().clone());
        // All of it would only be received again.
        let is_all = elements.len() == self.elements.len();
        if part.fits() && !is_all {
            self.send(part);
        } else if elements.len() == 1 {
            self.run_in_place(elements.start);
        } else {
            let middle = elements.start + elements.len() / 2;
            self.send_elements(elements.start..middle);
            self.send_elements(middle..elements.end);
        }
    }

    fn part(&self, elements: Range<usize>, names: NameRange) -> Message {
        let part = self.published.part(elements.start, names);
        Message::of_publication(part, self.elements.body_of(elements))
    }

    fn send(&mut self, part: Message) {
        self.decoded.items.push(WorkItem::Forward(QueueName::FanOut, Box::new(part)));
    }

    fn run_in_place(&mut self, index: usize) {
        self.decoded.append(&mut self.published.read(self.elements, index, usize::MAX));
    }

    fn matched(&self) -> Matched {
        let mut matched = Matched::default();
        for index in 0..self.elements.len() {
            let Ok(event) = self.published.event(self.elements, index) else { continue };
            let mut is_unmatched = true;
            for subscription in self.published.matching(&event) {
                is_unmatched = false;
                let name = matched.names.entry(subscription.name.name.clone()).or_default();
                name.batches = subscription.batch.is_some();
                // Whether there are more than run in place is all that counts.
                if name.requests.count() <= REQUESTS_IN_PLACE {
                    let delivery = self.published.delivery(index, &event, subscription);
                    name.requests.place(subscription, &delivery, self.published.grouped_at_ms());
                }
            }
            if is_unmatched && self.published.is_for_all() {
                matched.unmatched.push(index);
            }
        }
        matched
    }
}

/// Which subscriptions match elements of a record.
#[derive(Default)]
struct Matched {
    names: BTreeMap<String, MatchedName>,
    /// The elements that none matches.
    unmatched: Vec<usize>,
}

/// A subscription that matches at least one element.
#[derive(Default)]
struct MatchedName {
    /// The requests to it.
    requests: Grouping,
    batches: bool,
}

/// Where the names are cut, so that the requests of a range run in place. Without batches a range may
/// have more: its elements are divided later.
fn cuts(names: &BTreeMap<String, MatchedName>) -> Vec<&str> {
    let (mut cuts, mut requests, mut batches) = (Vec::new(), 0, false);
    for (name, of) in names {
        let sum = requests + of.requests.count();
        let joins = sum <= REQUESTS_IN_PLACE || !(batches || of.batches);
        if requests > 0 && !joins {
            cuts.push(name.as_str());
            (requests, batches) = (0, false);
        }
        requests += of.requests.count();
        batches |= of.batches;
    }
    if cuts.is_empty() {
        // Few requests with very many events.
        cuts.extend(names.keys().nth(names.len() / 2).map(String::as_str));
    }
    cuts
}

/// How many of these go into one part: as few as make it at most [`PARTS_MAX`] parts, and a power of
/// it, so that parts of parts are full.
fn step(count: usize) -> usize {
    let mut step = 1;
    while count.div_ceil(step) > PARTS_MAX {
        step *= PARTS_MAX;
    }
    step
}

#[cfg(test)]
mod tests {
    use delivery::delivery::{Delivery, Origin};
    use delivery::event::{Event, Input};
    use delivery::subscription::name::SubscriptionName;
    use delivery::subscription::profile::Dialect;

    use super::*;

    /// Names in order, each with its number of requests and whether it batches.
    fn matched(names: &[(&str, usize, bool)]) -> BTreeMap<String, MatchedName> {
        let url = "https://example.com/".parse().unwrap();
        let name: SubscriptionName = "n/t/s".parse().unwrap();
        let subscription = Arc::new(Subscription::new(name.clone(), Dialect::Native, url));
        let event = Event::recall(&"{}".into(), Input::Auto);
        let origin = Origin { message: "m1".to_owned(), index: 0 };
        let delivery = Delivery::new(event, name, origin, 0);
        let of = |requests: usize, batches: bool| {
            let mut of = MatchedName { batches, ..MatchedName::default() };
            (0..requests).for_each(|_| {
                of.requests.place(&subscription, &delivery, 0);
            });
            of
        };
        names
            .iter()
            .map(|(name, requests, batches)| ((*name).to_owned(), of(*requests, *batches)))
            .collect()
    }

    #[test]
    fn as_many_names_stay_together_as_have_ten_requests() {
        let names = matched(&[("a", 4, true), ("b", 6, true), ("c", 1, true), ("d", 9, true)]);
        assert_eq!(cuts(&names), ["c"]);
        // The first one is never cut off from nothing.
        let names = matched(&[("a", 11, true), ("b", 10, true), ("c", 1, true)]);
        assert_eq!(cuts(&names), ["b", "c"]);
    }

    #[test]
    fn more_stay_together_where_their_elements_are_divided_later_and_none_of_them_batches() {
        let single = [("a", 50, false), ("b", 50, false), ("c", 50, false)];
        let names = matched(&[&single[..], &[("d", 5, true), ("e", 5, false)]].concat());
        assert_eq!(cuts(&names), ["d"]);
        // Neither before nor behind a batch.
        let single = [("b", 50, false), ("c", 50, false), ("d", 50, false)];
        let names = matched(&[&[("a", 1, true)], &single[..]].concat());
        assert_eq!(cuts(&names), ["b"]);
    }

    #[test]
    fn few_requests_with_very_many_events_are_cut_in_the_middle() {
        let names = matched(&[("a", 2, true), ("b", 2, true), ("c", 2, true), ("d", 2, true)]);
        assert_eq!(cuts(&names), ["c"]);
        assert_eq!(cuts(&matched(&[("a", 2, true), ("b", 2, true)])), ["b"]);
    }

    #[test]
    fn parts_are_at_most_a_hundred_and_those_of_parts_are_full() {
        let steps = [1, 100, 101, 10_000, 10_001].map(step);
        assert_eq!(steps, [1, 1, 100, 100, 10_000]);
    }
}
