//! The wiring of `functions/deadletter/src/main.rs`.

use adapters::machine::Machine;
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Store};
use delivery::ports::Clock as _;
use delivery::time::duration::{HOUR_MS, MINUTE_MS};
use delivery::wire::write_dead_letter;

use crate::environment::DEADLETTER;
use crate::records::{delivery, given_up, invocation, record, sent_at};
use crate::runtime_api::Invocation;
use crate::world::World;

fn letter() -> DeadLetter {
    let delivery = delivery("shop/later/s");
    DeadLetter::without_subscription(delivery, Reason::TimeToLiveExceeded, Machine.now_ms())
}

/// The attribute is ignored on an unknown queue, or if the events queue gave the record up: a
/// publisher may have written it.
#[tokio::test]
async fn a_dead_letter_is_believed_on_its_own_queue_only() {
    for (queue, given_up_by, believed) in [
        ("dead-letter", None, true),
        ("dead-letter", Some("isolation"), true),
        ("dead-letter", Some("events"), false),
        ("unknown", None, false),
    ] {
        let world = World::start().await;
        let elsewhere = Store::Container("config/letters".parse().expect("a container"));
        let attribute = write_dead_letter(&DeadLetter { store: elsewhere, ..letter() });
        let attributes = [("topic", "shop/taken"), ("deadletter", &*attribute)];
        let records = [given_up(record("m1", queue, &attributes), given_up_by)];
        let mut function = world.run(&DEADLETTER, &[], invocation(&records)).await;
        assert_eq!(function.returned().await, [""; 0], "{queue}");
        let named = world.keys("config").await.into_iter().find(|key| key.starts_with("letters/"));
        assert_eq!(named.is_some(), believed, "{queue}: {named:?}");
        let own = world.keys("dead-letters").await;
        let unprocessed = own.iter().any(|key| key.starts_with("shop/taken/_unprocessed/"));
        assert_eq!((unprocessed, own.len()), (!believed, usize::from(!believed)), "{own:?}");
    }
}

#[tokio::test]
async fn the_response_names_the_records_that_the_queue_did_not_take_back() {
    let world = World::start().await;
    let absent = world.queue_url("absent");
    let early = DeadLetter { not_before_ms: Machine.now_ms() + 3_600_000, ..letter() };
    let attributes = [letter(), early, letter()].map(|letter| write_dead_letter(&letter));
    let records = ["m1", "m2", "m3"].iter().zip(&attributes);
    let records: Vec<_> =
        records.map(|(id, letter)| record(id, "absent", &[("deadletter", letter)])).collect();
    let changes = [("DEAD_LETTER_QUEUE_URL", absent.as_str())];
    let mut function = world.run(&DEADLETTER, &changes, invocation(&records)).await;
    assert_eq!(function.returned().await, ["m2"]);
}

/// By the wrong clock, the dead letter has been due for 55 minutes.
#[tokio::test]
async fn a_function_whose_clock_is_an_hour_ahead_stores_no_dead_letter_too_early() {
    let world = World::start().await;
    let aws_ms = Machine.now_ms() - HOUR_MS;
    let early = DeadLetter { not_before_ms: aws_ms + 5 * MINUTE_MS, ..letter() };
    let attribute = write_dead_letter(&early);
    let records = [sent_at(aws_ms, "m1", "dead-letter", &[("deadletter", &attribute)])];
    let ahead = Invocation { clock_is_ahead_ms: 3_600_000, ..invocation(&records) };
    let mut function = world.run(&DEADLETTER, &[], ahead).await;
    assert_eq!(function.returned().await, [""; 0]);
    assert_eq!((world.keys("dead-letters").await, world.held("dead-letter").await), (vec![], 1));
    assert!(function.has_line("clock.corrected"));
}

#[tokio::test]
async fn metrics_of_deadletter_are_lines_of_json() {
    let world = World::start().await;
    let attribute = write_dead_letter(&letter());
    let records = [record("m1", "dead-letter", &[("deadletter", &attribute)])];
    let mut function = world.run(&DEADLETTER, &[], invocation(&records)).await;
    assert_eq!(function.returned().await, [""; 0]);
    let metrics = function.line("_aws").await;
    assert_eq!(metrics["_aws"]["CloudWatchMetrics"][0]["Namespace"], "lastmile/tested");
}
