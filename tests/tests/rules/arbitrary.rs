//! Random deliveries and dead letters of every kind that messages can carry.

use std::fmt::Debug;

use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::delivery::replay::Replay;
use delivery::delivery::{
    Addresses, Batching, DeadLetter, Delivery, DeliveryTarget, Entry, History, Hold, Origin,
    RESPONSE_KEPT_BYTES, Returned, Store, Word,
};
use delivery::event::mapping::Mapped;
use delivery::event::{Event, Input};
use delivery::subscription::dead_letter_format::{ErrorData, Format, Layout};
use delivery::subscription::name::{SubscriptionName, TopicName, is_name};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

use crate::samples::EVENT;

/// Any delivery of the sample event.
pub(crate) fn delivery() -> impl Strategy<Value = Delivery> {
    let origin =
        ("\\PC{0,40}", any::<u32>()).prop_map(|(message, index)| Origin { message, index });
    let moments = (any::<u64>(), any::<u64>(), any::<u64>());
    let state = (any::<u32>(), history(), option::of(response()));
    (name(), origin, moments, state, routing(), option::of(replay())).prop_map(
        |(name, origin, moments, state, routing, replay)| {
            let (published_ms, starts_ms, due_ms) = moments;
            let (attempts, history, last_response) = state;
            let (target, (hops, replies_left), via, batching, traceparent, hold) = routing;
            let event = Event::recall(&EVENT.into(), Input::CloudEvents);
            let new = Delivery::new(event, name, origin, published_ms);
            Delivery {
                attempts,
                starts_ms,
                due_ms,
                history,
                last_response,
                target,
                hops,
                replies_left,
                via,
                batching,
                hold,
                traceparent,
                replay,
                ..new
            }
        },
    )
}

/// Any job that replays any dead letter.
fn replay() -> impl Strategy<Value = Replay> {
    ("[A-Za-z0-9_-][A-Za-z0-9._-]{0,30}", any::<u128>())
        .prop_map(|(job, letter)| Replay::new(&job, Uuid::from_u128(letter)).expect("a valid name"))
}

type Routing =
    (DeliveryTarget, (u32, Option<u32>), Vec<TopicName>, Word<Batching>, Option<String>, Hold);

/// Any position in a chain of replies, in a batch and in a trace.
fn routing() -> impl Strategy<Value = Routing> {
    let target = select(&[DeliveryTarget::Destination, DeliveryTarget::Reply][..]);
    let batching = [Batching::Allowed, Batching::RetryAlone, Batching::Disabled];
    let batching = word(select(Vec::from(batching)));
    let via = vec(name().prop_map(|name| name.topic), 0..3);
    (
        target,
        (prop_oneof![Just(0), any::<u32>()], option::of(any::<u32>())),
        via,
        batching,
        option::of("00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]"),
        (any::<[u32; 6]>(), any::<u64>()).prop_map(
            |([count, turns, starts, slots, away, permits], until_ms)| Hold {
                count,
                turns,
                starts,
                permits,
                slots,
                away,
                until_ms,
            },
        ),
    )
}

/// Any delivery that sends such a dead letter to its sink.
pub(crate) fn sink_delivery() -> impl Strategy<Value = Delivery> {
    (delivery(), letter()).prop_map(|(delivery, letter)| Delivery {
        target: DeliveryTarget::Sink(Box::new(letter)),
        ..delivery
    })
}

/// Any dead letter about such a delivery.
pub(crate) fn letter() -> impl Strategy<Value = DeadLetter> {
    let moments = (any::<u64>(), any::<u64>(), any::<u64>());
    let target_fields = (store(), option::of(".{0,80}"), vec((".{0,20}", ".{0,20}"), 0..4));
    let stored = (delivery(), reason(), option::of(".{0,80}"), moments, target_fields).prop_map(
        |(
            delivery,
            reason,
            detail,
            (decided_ms, not_before_ms, keep_trying_for_ms),
            target_fields,
        )| {
            let (store, destination, headers) = target_fields;
            let known = Reason::ProcessingFailed;
            let bare = DeadLetter::without_subscription(delivery, known, decided_ms);
            DeadLetter {
                reason,
                detail,
                not_before_ms,
                keep_trying_for_ms,
                store,
                destination,
                headers,
                ..bare
            }
        },
    );
    let written = (select(&Format::ALL[..]), select(&Layout::ALL[..]), select(&ErrorData::ALL[..]));
    let sink = (option::of(".{0,40}"), option::of(returned()));
    (stored, written, option::of(mapped()), option::of((".{0,40}", ".{0,40}")), sink).prop_map(
        |(letter, (format, layout, error_data), mapped, addresses, (sink_error, returned))| {
            let addresses = addresses.map(|(subscriber, failed)| Addresses { subscriber, failed });
            DeadLetter {
                format,
                layout,
                error_data,
                mapped,
                addresses,
                sink_error,
                returned,
                ..letter
            }
        },
    )
}

fn mapped() -> impl Strategy<Value = Mapped> {
    let optional = || option::of(".{0,20}");
    let always = (".{0,20}", ".{0,20}", ".{0,20}");
    (always, optional(), optional(), optional()).prop_map(
        |((id, topic, event_time), event_type, subject, data_version)| Mapped {
            id,
            topic,
            event_time,
            event_type,
            subject,
            data_version,
        },
    )
}

/// Any name that a subscription file may contain.
pub(crate) fn name() -> impl Strategy<Value = SubscriptionName> {
    let part = "[^/\\p{Cc}]{1,20}".prop_filter("a name has its limits", |text| is_name(text));
    [part.clone(), part.clone(), part]
        .prop_map(|parts| parts.join("/").parse().expect("three names"))
}

fn history() -> impl Strategy<Value = History> {
    let outcome = word(select(&Outcome::ALL[..]));
    let more = btree_map("more[a-z]{1,5}", any::<u32>().prop_map(Into::into), 0..3);
    let entry = (any::<u64>(), outcome, option::of(any::<u16>()), any::<u64>(), more);
    let entry = entry.prop_map(|(at_ms, outcome, status, duration_ms, more)| Entry {
        at_ms,
        outcome,
        status,
        duration_ms,
        more,
    });
    vec(entry, 0..60).prop_map(|entries| History::restore(entries, 0))
}

fn response() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..=RESPONSE_KEPT_BYTES), ".{0,200}".prop_map(String::into_bytes)]
}

fn reason() -> impl Strategy<Value = Word<Reason>> {
    word(prop_oneof![select(&Reason::NAMED[..]), (100_u16..600).prop_map(Reason::of_status)])
}

/// Such a word, or one of a newer version.
fn word<T: Clone + Debug>(known: impl Strategy<Value = T>) -> impl Strategy<Value = Word<T>> {
    prop_oneof![
        9 => known.prop_map(Word::Known),
        1 => "new[A-Za-z0-9_-]{0,20}".prop_map(|word| Word::Other(word.into())),
    ]
}

fn store() -> impl Strategy<Value = Store> {
    let container = "[a-z0-9.-]{3,63}(/[a-z/]{0,20})?";
    let queue = r"sqs\.[a-z0-9-]{1,20}\.amazonaws\.com/[0-9]{12}/[A-Za-z0-9_-]{1,80}";
    prop_oneof![
        Just(Store::DefaultContainer),
        container.prop_map(|text| Store::Container(
            text.parse().expect("a bucket and perhaps a prefix")
        )),
        queue.prop_map(|text| Store::Queue(text.parse().expect("a queue"))),
    ]
}

fn returned() -> impl Strategy<Value = Returned> {
    let texts = (option::of(".{0,40}"), option::of(".{0,40}"));
    (texts, reason(), any::<u32>(), history(), option::of(response())).prop_map(
        |((address, detail), reason, attempts, history, last_response)| Returned {
            address,
            reason,
            detail,
            attempts,
            history,
            last_response,
        },
    )
}
