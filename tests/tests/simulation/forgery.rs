//! Attributes that only we may write, made up by a publisher: state of other deliveries, other
//! topics, other ages.

use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Hold, Origin, Publication, Store};
use delivery::event::{Event, Input};
use delivery::ports::Attribute;
use delivery::wire::{write_dead_letter, write_delivery, write_publication};

use super::faults::SeededRandom;
use super::rules::OWN_CONTAINER;

/// The message id that forged state names.
const OTHER_MESSAGE: &str = "m-forged";

/// A forged attribute for the record of this number.
pub(crate) fn choose(number: usize, topic: Option<&str>, random: &mut SeededRandom) -> Attribute {
    let to = random.pick(&["shop/orders/s0", "shop/lost/s1", "other/topic/victim"]);
    match random.below(5) {
        // A record without a topic would be filed elsewhere by each of the functions.
        0 if topic.is_some() => Attribute::DeadLetter(write_dead_letter(&letter(number, to))),
        0 | 1 => Attribute::Publication(write_publication(&publication())),
        2 => Attribute::Delivery("made up".to_owned()),
        _ => Attribute::Delivery(write_delivery(&delivery(number, to))),
    }
}

/// A delivery published long ago, with many attempts.
fn delivery(number: usize, to: &str) -> Delivery {
    let event = Event::recall(&format!("forged {number}").into(), Input::Opaque);
    let origin = Origin { message: OTHER_MESSAGE.to_owned(), index: 0 };
    let mut delivery = Delivery::new(event, to.parse().expect("a name"), origin, 1);
    delivery.attempts = 99;
    delivery.hops = 9;
    delivery
}

fn publication() -> Publication {
    Publication {
        message: OTHER_MESSAGE.to_owned(),
        published_ms: 1,
        topic: Some("other/topic".to_owned()),
        group: None,
        traceparent: None,
        hold: Hold {
            count: 99,
            turns: 99,
            starts: 99,
            slots: 99,
            away: 99,
            permits: 99,
            until_ms: u64::MAX / 2,
        },
        part: None,
        onward: None,
    }
}

fn letter(number: usize, to: &str) -> DeadLetter {
    let reason = Reason::TimeToLiveExceeded;
    let letter = DeadLetter::without_subscription(delivery(number, to), reason, 1);
    let store = Store::Container(OWN_CONTAINER.parse().expect("a container"));
    DeadLetter { store, ..letter }
}
