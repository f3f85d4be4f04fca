//! Divides a record into parts if it has more deliveries than may run in place (in the invocation
//! that received the record). Pure.
//!
//! A part is a message with some of the elements, for some of the subscriptions. A received part is
//! treated like the record: it runs in place or is divided again. The ids of deliveries do not
//! depend on the division. A record becomes about a hundred parts at most, so a redelivery repeats
//! at most that many messages.
//!
//! The rule is: **divide the elements. Divide the subscriptions only if there is one element, or if
//! the division would split a batch.** A part with some of the elements is for all subscriptions.
//! It carries each element once, and detects elements that match no subscription. A part with some
//! of the subscriptions carries all elements.
//!
//! ```text
//! 12 events for a and b               24 requests, 10 run in place
//! ├─ events  0..5                     10 requests, run in place
//! ├─ events  5..10                    10 requests, run in place
//! └─ events 10..12                     4 requests, run in place
//!
//! 25 events for a, b and c, b batches 51 requests
//! ├─ 25 events for ..b                25 requests: divided into 10, 10 and 5 events
//! ├─ 25 events for b..c                1 request, runs in place
//! └─ 25 events for c..                25 requests: divided into 10, 10 and 5 events
//! ```
//!
//! One event for 2,500 subscriptions becomes three parts for at most 1,000 subscriptions each. Each
//! of these is divided into parts for ten subscriptions. There are four exceptions, which the
//! acceptance tests in `divided.rs` cover, like the examples:
//!
//! - There are more than 5,000 elements and several subscriptions, and one of them batches: the
//!   elements are first divided into parts of 5,000 or more elements, which may split a batch.
//! - The body and a range of subscriptions do not fit one message: the elements are halved.
//! - A part of several elements does not fit one message: the part is halved.
//! - A part of one element does not fit one message: the element runs in place.

use std::collections::BTreeMap;
use std::ops::Range;

use delivery::event::envelope::Elements;
use delivery::machine::step::Grouping;
use delivery::ports::{Message, QueueName};
use delivery::subscription::name::NameRange;

use super::publish::Published;
use super::{Decoded, WorkItem};

/// Maximum number of requests and dead letters of one record that run in place (in the invocation
/// that received the record). A record with more is divided.
pub const REQUESTS_IN_PLACE: usize = 10;
/// Maximum number of parts into which a record or a part is divided.
pub const PARTS_MAX: usize = 100;

/// Maximum number of deliveries and unmatched events of one record that run in place. The largest
/// batch (5,000) still fits after [`EVENTS_BEFORE_A_REQUEST`] other deliveries.
const EVENTS_IN_PLACE: usize = 6_000;
/// After this many deliveries, this invocation begins no further request of the record.
const EVENTS_BEFORE_A_REQUEST: usize = 1_000;
/// Maximum number of elements that are matched before a record is divided.
const MATCHED_TOGETHER: usize = 5_000;
/// Maximum number of deliveries that are counted while matching. An incomplete count is enough,
/// because each part counts its own deliveries again.
const COUNTED_MAX: usize = 20_000;

/// Counts the items of a record that would run in place, to compare the counts with the limits.
#[derive(Default)]
struct InPlace {
    grouping: Grouping,
    letters: usize,
    /// Number of deliveries and unmatched events.
    events: usize,
    deliveries: usize,
}

impl InPlace {
    /// Counts the items of one element. Returns true if all items counted so far are within the
    /// limits.
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
        let is_late = self.deliveries > EVENTS_BEFORE_A_REQUEST;
        self.deliveries += items.len();
        self.events += items.len().max(1);
        self.requests() <= REQUESTS_IN_PLACE
            && self.events <= EVENTS_IN_PLACE
            && !(is_late && begins_one)
    }

    fn requests(&self) -> usize {
        self.grouping.count() + self.letters
    }
}

/// Returns the items of a published record: its deliveries, or its parts if there are too many
/// deliveries.
pub(crate) fn items_of(published: &Published<'_>, elements: &Elements<'_>) -> Decoded {
    let (mut decoded, mut in_place) = (Decoded::default(), InPlace::default());
    for index in 0..elements.len() {
        // The deliveries of one element go to different subscriptions and share no request, so
        // reading one more than the limit is enough.
        let mut read = published.read(elements, index, REQUESTS_IN_PLACE + 1);
        let has_room = in_place.takes(&read.items, published.grouped_at_ms());
        decoded.append(&mut read);
        if !has_room {
            let mut division = Division { published, elements, decoded: Decoded::default() };
            division.divide(index);
            return Decoded { missing: decoded.missing, ..division.decoded };
        }
    }
    decoded
}

/// Divides the range of names of a record at both ends of each range in `unusable`, which contains
/// the ranges without usable subscriptions.
pub(crate) fn around(published: &Published<'_>, unusable: &[NameRange]) -> Vec<NameRange> {
    let ends = |range: &NameRange| [Some(range.from.clone()), range.before.clone()];
    let cuts: Vec<String> = unusable.iter().flat_map(ends).flatten().collect();
    let names = published.names();
    // A cut at either end of all names divides nothing.
    let cuts: Vec<&str> = cuts
        .iter()
        .map(String::as_str)
        .filter(|cut| *cut > names.from.as_str() && !names.ends_before(cut))
        .collect();
    ranges_between(names, cuts)
}

/// Returns the ranges between the cuts. Joins neighbouring ranges if there would be too many.
fn ranges_between(names: &NameRange, cuts: Vec<&str>) -> Vec<NameRange> {
    let step = step(cuts.len() + 1);
    names.cut_at(&cuts.into_iter().skip(step - 1).step_by(step).collect::<Vec<_>>())
}

/// Returns one part per range of subscription names, each with all elements of the record.
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

struct Division<'a> {
    published: &'a Published<'a>,
    elements: &'a Elements<'a>,
    decoded: Decoded,
}

impl Division<'_> {
    /// Divides the record into parts. `in_place` is the number of leading elements that would run
    /// in place together.
    fn divide(&mut self, in_place: usize) {
        let matched = self.matched();
        if matched.names.len() <= 1 || !(matched.has_batches || self.elements.len() == 1) {
            return self.divide_elements(in_place);
        }
        if self.elements.len() > MATCHED_TOGETHER {
            return self.divide_elements(MATCHED_TOGETHER);
        }
        let is_one = self.elements.len() == 1;
        let ranges = ranges_between(self.published.names(), cuts(&matched.names, is_one));
        let parts: Vec<Message> = for_names(self.published, self.elements, ranges).collect();
        if !parts.iter().all(Message::fits) {
            return self.divide_elements(self.elements.len().div_ceil(2));
        }
        let unmatched = matched.unmatched;
        parts.into_iter().for_each(|part| self.send(part));
        // A part has only some subscriptions, so it cannot detect that no subscription matches an
        // element.
        unmatched.into_iter().for_each(|index| self.run_in_place(index));
    }

    /// Divides the elements into parts of `length`. Uses a multiple of `length` if there would be
    /// too many parts.
    fn divide_elements(&mut self, length: usize) {
        let (length, end) = (length.max(1), self.elements.len());
        let length = length * step(end.div_ceil(length));
        for start in (0..end).step_by(length) {
            self.send_elements(start..(start + length).min(end));
        }
    }

    /// Sends some elements as one part. A part that is too large for a message is halved. A single
    /// element that is too large runs in place; otherwise it would become a dead letter without an
    /// attempt.
    fn send_elements(&mut self, elements: Range<usize>) {
        let part = self.published.part(elements.start, self.published.names().clone());
        let part = Message::of_publication(part, self.elements.body_of(elements.clone()));
        // A part with all elements would only be received and divided again.
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

    fn send(&mut self, part: Message) {
        self.decoded.items.push(WorkItem::Forward(QueueName::Retry, Box::new(part)));
    }

    fn run_in_place(&mut self, index: usize) {
        self.decoded.append(&mut self.published.read(self.elements, index, usize::MAX));
    }

    /// Matches at most the first [`MATCHED_TOGETHER`] elements.
    fn matched(&self) -> Matched<'_> {
        let (mut matched, mut counted) = (Matched::default(), 0);
        for index in 0..self.elements.len().min(MATCHED_TOGETHER) {
            let Ok(event) = self.published.event(self.elements, index) else { continue };
            let mut subscriptions = self.published.matching(&event).peekable();
            if subscriptions.peek().is_none() && self.published.is_for_all() {
                matched.unmatched.push(index);
            }
            if counted > COUNTED_MAX {
                if matched.has_batches {
                    continue;
                }
                break;
            }
            for subscription in subscriptions {
                counted += 1;
                let requests = matched.names.entry(&subscription.name.name).or_default();
                if subscription.batch.is_none() {
                    requests.single += 1;
                    continue;
                }
                matched.has_batches = true;
                // Only exceeding the limit matters, so counting stops there.
                if requests.count() <= REQUESTS_IN_PLACE {
                    let delivery = self.published.delivery(index, &event, subscription);
                    let now_ms = self.published.grouped_at_ms();
                    requests.batched.place(subscription, &delivery, now_ms);
                }
            }
        }
        matched
    }
}

/// The subscriptions that match elements of a record, with their number of requests.
#[derive(Default)]
struct Matched<'a> {
    /// The requests of each subscription, by its name.
    names: BTreeMap<&'a str, Requests>,
    /// True if at least one subscription batches.
    has_batches: bool,
    /// Indexes of the elements that match no subscription.
    unmatched: Vec<usize>,
}

#[derive(Default)]
struct Requests {
    /// Number of requests with a single event. Counted without building their deliveries, because
    /// there may be a hundred thousand.
    single: usize,
    batched: Grouping,
}

impl Requests {
    fn count(&self) -> usize {
        self.single + self.batched.count()
    }
}

/// Returns the subscription names at which parts begin. All requests of one part run in place. If
/// the record has several elements, a part without batches may have more requests, because its
/// elements are divided later.
fn cuts<'a>(names: &BTreeMap<&'a str, Requests>, is_one_element: bool) -> Vec<&'a str> {
    let (mut cuts, mut in_part, mut batches) = (Vec::new(), 0, false);
    for (name, requests) in names {
        let has_batches = requests.batched.count() > 0;
        let must_fit = is_one_element || batches || has_batches;
        let joins = !must_fit || in_part + requests.count() <= REQUESTS_IN_PLACE;
        if in_part > 0 && !joins {
            cuts.push(*name);
            (in_part, batches) = (0, false);
        }
        in_part += requests.count();
        batches |= has_batches;
    }
    if cuts.is_empty() {
        // The requests are few, but have very many events.
        cuts.extend(names.keys().nth(names.len() / 2));
    }
    cuts
}

/// Returns the number of parts to join into one, so that at most [`PARTS_MAX`] parts remain. The
/// result is a power of `PARTS_MAX`, so that a joined part is later divided into exactly that many.
fn step(count: usize) -> usize {
    let mut step = 1;
    while count.div_ceil(step) > PARTS_MAX {
        step *= PARTS_MAX;
    }
    step
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use delivery::delivery::{Delivery, Origin};
    use delivery::event::{Event, Input};
    use delivery::subscription::Subscription;
    use delivery::subscription::name::SubscriptionName;
    use delivery::subscription::profile::Dialect;

    use super::*;

    /// Returns the requests of one subscription, which either batches events or not.
    fn requests_of(requests: usize, batches: bool) -> Requests {
        let url = "https://example.com/".parse().unwrap();
        let name: SubscriptionName = "n/t/s".parse().unwrap();
        let subscription = Arc::new(Subscription::new(name.clone(), Dialect::Native, url));
        let event = Event::recall(&"{}".into(), Input::Auto);
        let origin = Origin { message: "m1".to_owned(), index: 0 };
        let delivery = Delivery::new(event, name, origin, 0);
        let mut all = Requests::default();
        match batches {
            true => (0..requests).for_each(|_| _ = all.batched.place(&subscription, &delivery, 0)),
            false => all.single = requests,
        }
        all
    }

    /// Returns the cuts between these names, for a record with one element or with several.
    fn cuts_of(names: &[(&'static str, usize, bool)], is_one_element: bool) -> Vec<&'static str> {
        let names =
            names.iter().map(|(name, requests, batches)| (*name, requests_of(*requests, *batches)));
        cuts(&names.collect(), is_one_element)
    }

    #[test]
    fn as_many_names_stay_together_as_have_ten_requests() {
        for batches in [true, false] {
            let names = [("a", 4), ("b", 6), ("c", 1), ("d", 9)];
            assert_eq!(
                cuts_of(&names.map(|(name, requests)| (name, requests, batches)), !batches),
                ["c"]
            );
            // There is never a cut before the first name.
            let names =
                [("a", 11), ("b", 10), ("c", 1)].map(|(name, requests)| (name, requests, batches));
            assert_eq!(cuts_of(&names, !batches), ["b", "c"]);
        }
    }

    #[test]
    fn more_stay_together_where_their_elements_are_divided_later_and_none_of_them_batches() {
        let single = [("a", 50, false), ("b", 50, false), ("c", 50, false)];
        let names = [&single[..], &[("d", 5, true), ("e", 5, false)]].concat();
        assert_eq!(cuts_of(&names, false), ["d"]);
        // Names after a batch are also cut off if the part would have more than ten requests.
        let single = [("b", 50, false), ("c", 50, false), ("d", 50, false)];
        let names = [&[("a", 1, true)], &single[..]].concat();
        assert_eq!(cuts_of(&names, false), ["b"]);
    }

    #[test]
    fn few_requests_with_very_many_events_are_cut_in_the_middle() {
        let four = ["a", "b", "c", "d"].map(|name| (name, 2, true));
        assert_eq!(cuts_of(&four, false), ["c"]);
        assert_eq!(cuts_of(&four[..2], false), ["b"]);
    }

    #[test]
    fn parts_are_at_most_a_hundred_and_those_of_parts_are_full() {
        let steps = [1, 100, 101, 10_000, 10_001].map(step);
        assert_eq!(steps, [1, 1, 100, 100, 10_000]);
    }
}
