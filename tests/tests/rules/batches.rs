//! Output batching: which deliveries share a request, what such a request is, and what its refusal
//! means.

use delivery::subscription::Signing;
use std::sync::Arc;

use delivery::delivery::outcome::{Exchange, TransportResult, Verdict};
use delivery::delivery::reason::Reason;
use delivery::delivery::{Batching, Delivery, Word};
use delivery::event::Input;
use delivery::event::schema::Schema;
use delivery::machine::step::{Arrival, End, arrive, group, settle, settle_batched};
use delivery::request::{AttemptContext, compose};
use delivery::subscription::header::{Header, Value};
use delivery::subscription::profile::Dialect;
use delivery::subscription::secret::{Keyring, Secret};
use delivery::subscription::{Batch, OnRefused, Subscription};
use delivery::waits::Jitter;
use proptest::collection::vec;
use proptest::prelude::*;
use uuid::Uuid;

use crate::requests::assert_printed;
use crate::samples::{PUBLISHED_MS, answered, delivery_of, subscription};

/// A delivery that is about to be grouped.
struct Member(Delivery);

impl AsRef<Delivery> for Member {
    fn as_ref(&self) -> &Delivery {
        &self.0
    }
}

fn batching(max_events: u32, preferred_bytes: u64) -> Subscription {
    let mut subscription = subscription(Dialect::Native);
    subscription.batch = Some(Batch { max_events, preferred_bytes, on_refused: OnRefused::Split });
    subscription
}

/// A CloudEvent of exactly this many bytes, at least 62.
fn event(id: usize, bytes: usize) -> Delivery {
    let bare = format!(r#"{{"specversion":"1.0","id":"{id:05}","source":"/s","type":"t","x":""}}"#);
    let padding = "x".repeat(bytes.saturating_sub(bare.len()));
    let mut delivery =
        delivery_of(&bare.replace(r#""x":"""#, &format!(r#""x":"{padding}""#)), Input::Auto);
    delivery.id = Uuid::from_u128(id as u128);
    delivery
}

/// The ids of each group, in order.
fn groups(subscription: &Subscription, deliveries: Vec<Delivery>) -> Vec<Vec<u128>> {
    let subscription = Arc::new(subscription.clone());
    let members = deliveries
        .into_iter()
        .map(|delivery| (Arc::clone(&subscription), Member(delivery)))
        .collect();
    let groups = group(members, PUBLISHED_MS);
    groups
        .iter()
        .map(|group| group.members.iter().map(|member| member.0.id.as_u128()).collect())
        .collect()
}

#[test]
fn without_batching_each_delivery_is_one_request() {
    assert_eq!(
        groups(&subscription(Dialect::Native), vec![event(1, 80), event(2, 80)]),
        [[1], [2]]
    );
}

#[test]
fn the_limit_of_events_is_hard_and_the_preferred_size_is_soft() {
    let seven = || (1..=7).map(|id| event(id, 100)).collect::<Vec<_>>();
    assert_eq!(groups(&batching(3, 64 * 1_024), seven()), [vec![1, 2, 3], vec![4, 5, 6], vec![7]]);
    // Two events of 100 bytes with brackets and a comma are 203 bytes.
    assert_eq!(
        groups(&batching(5_000, 203), seven()),
        [vec![1, 2], vec![3, 4], vec![5, 6], vec![7]]
    );
    assert_eq!(groups(&batching(5_000, 202), seven()), [[1], [2], [3], [4], [5], [6], [7]]);
    let large_between = vec![event(1, 100), event(2, 5_000), event(3, 100)];
    assert_eq!(groups(&batching(5_000, 1_024), large_between), [[1], [2], [3]]);
}

#[test]
fn only_matching_due_deliveries_share_a_request() {
    let mut later = event(2, 80);
    later.due_ms = PUBLISHED_MS + 1;
    let refused = Delivery { batching: Batching::RetryAlone.into(), ..event(3, 80) };
    let unbatched = Delivery { batching: Batching::Disabled.into(), ..event(4, 80) };
    let mut grid = delivery_of(
        r#"{"id":"1","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13Z"}"#,
        Input::Auto,
    );
    grid.id = Uuid::from_u128(5);
    let newer = Delivery { batching: Word::Other("in_pairs".into()), ..event(7, 80) };
    let deliveries = vec![event(1, 80), later, refused, unbatched, grid, event(6, 80), newer];
    assert_eq!(
        groups(&batching(9, 9_999), deliveries),
        [vec![1, 6], vec![2], vec![3], vec![4], vec![5], vec![7]]
    );
    let mut binary = batching(9, 9_999);
    binary.destination.schema = Some(Schema::CloudEventsBinary);
    assert_eq!(groups(&binary, vec![event(1, 80), event(2, 80)]), [[1], [2]]);
}

#[test]
fn events_with_different_values_of_a_dynamic_header_are_not_batched() {
    let mut by_length = batching(9, 9_999);
    let value = Value::Path("x".parse().expect("a path"));
    by_length.destination.headers = vec![Header { name: "x-x".to_owned(), value }];
    let deliveries = vec![event(1, 80), event(2, 90), event(3, 80), event(4, 90)];
    assert_eq!(groups(&by_length, deliveries), [[1, 3], [2, 4]]);
}

fn request_of(subscription: &Subscription, deliveries: &[Delivery]) -> delivery::request::Request {
    let secret = (
        "env:S".parse().expect("a name"),
        Secret::new("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3".to_owned()),
    );
    let keyring: Keyring = [secret].into_iter().collect();
    let deliveries: Vec<&Delivery> = deliveries.iter().collect();
    let context = AttemptContext { keyring: &keyring, now_ms: PUBLISHED_MS, timeout_ms: 30_000 };
    compose(subscription, &deliveries, context).expect("it can be sent")
}

#[test]
fn a_batch_is_an_array_of_its_schema() {
    let grid = |id: &str| {
        let event = r#"{"id":"ID","subject":"s","eventType":"t","eventTime":"2020-08-13T17:18:13Z","dataVersion":"2","data":{"n": 1.50}}"#;
        delivery_of(&event.replace("ID", id), Input::Auto)
    };
    let mut subscription = batching(9, 9_999);
    assert_printed("batch-cloudevents", &request_of(&subscription, &[event(1, 80), event(2, 85)]));
    assert_printed("batch-of-one-cloudevent", &request_of(&subscription, &[event(1, 80)]));
    subscription.destination.notification_headers = true;
    assert_printed(
        "batch-event-grid",
        &request_of(&subscription, &[grid("1"), Delivery { attempts: 3, ..grid("2") }]),
    );
    let custom = ["1", "{\"a\": 1}"].map(|text| delivery_of(text, Input::Custom));
    assert_printed("batch-custom", &request_of(&subscription, &custom));
    // A batch is an array even where a single event is sent as it was published.
    subscription.destination.plain_json = true;
    assert_printed("batch-custom", &request_of(&subscription, &custom));
}

#[test]
fn a_batch_is_signed_under_a_name_of_its_own_that_does_not_depend_on_the_order() {
    let mut subscription = batching(9, 9_999);
    subscription.destination.signing =
        Some(Signing { secrets: vec!["env:S".parse().expect("a name")], public_keys: None });
    let id = |deliveries: &[Delivery]| {
        let headers = request_of(&subscription, deliveries).headers;
        headers.into_iter().find(|(name, _)| name == "webhook-id").expect("an id").1
    };
    let both = id(&[event(1, 80), event(2, 80)]);
    assert_eq!(both, id(&[event(2, 80), event(1, 80)]));
    assert_eq!(both.parse::<Uuid>().map(|id| id.get_version_num()), Ok(5));
    assert_ne!(both, id(&[event(1, 80), event(3, 80)]));
}

#[test]
fn each_event_of_a_refused_batch_gets_one_retry_alone() {
    let mut subscription = batching(9, 9_999);
    subscription.retry.max_attempts = 1;
    let mut delivery = event(1, 80);
    let settled = settle_batched(
        &mut delivery,
        &subscription,
        &answered(400, PUBLISHED_MS),
        PUBLISHED_MS,
        Jitter::NONE,
    );
    assert_eq!(settled.verdict, Verdict::Undeliverable(Reason::UndeliverableDueToHttpBadRequest));
    assert_eq!(settled.end, End::Retry { wait_ms: 0 });
    assert_eq!((delivery.attempts, delivery.batching.known()), (1, Some(Batching::RetryAlone)));
    assert_eq!(
        arrive(&delivery, &subscription, PUBLISHED_MS),
        Arrival::Attempt,
        "whatever the limit is"
    );
    let settled = settle(
        &mut delivery,
        &subscription,
        &answered(503, PUBLISHED_MS),
        PUBLISHED_MS,
        Jitter::NONE,
    );
    assert!(
        matches!(&settled.end, End::DeadLetter(letter) if letter.reason == Reason::MaxDeliveryAttemptsExceeded)
    );
    assert_eq!((delivery.attempts, delivery.batching.known()), (2, Some(Batching::Disabled)));
}

#[test]
fn any_other_result_of_a_batch_applies_to_each_of_its_events() {
    for (on_refused, exchange) in [
        (OnRefused::Split, answered(200, PUBLISHED_MS)),
        (OnRefused::Split, answered(503, PUBLISHED_MS)),
        (OnRefused::Split, Exchange::new(TransportResult::TimedOut, PUBLISHED_MS, 5)),
        (OnRefused::Split, Exchange::new(TransportResult::Blocked, PUBLISHED_MS, 0)),
        (OnRefused::All, answered(400, PUBLISHED_MS)),
    ] {
        let mut subscription = batching(9, 9_999);
        subscription.batch = Some(Batch { max_events: 9, preferred_bytes: 9_999, on_refused });
        let (mut together, mut alone) = (event(1, 80), event(1, 80));
        let settled =
            settle_batched(&mut together, &subscription, &exchange, PUBLISHED_MS, Jitter::NONE);
        assert_eq!(
            settled,
            settle(&mut alone, &subscription, &exchange, PUBLISHED_MS, Jitter::NONE)
        );
        assert_eq!(together, alone);
    }
}

proptest! {
    /// Each delivery is in one group, no group exceeds the limits, and no two neighbours could have
    /// been merged.
    #[test]
    fn groups_contain_every_delivery_once_and_are_as_few_as_their_order_allows(
        sizes in vec(70_usize..400, 0..60),
        max_events in 1_u32..12,
        preferred_bytes in 60_u64..2_000,
    ) {
        let deliveries: Vec<Delivery> = sizes.iter().enumerate().map(|(id, bytes)| event(id, *bytes)).collect();
        let groups = groups(&batching(max_events, preferred_bytes), deliveries);
        let size = |group: &[u128]| group.iter().map(|id| sizes[*id as usize] as u64 + 1).sum::<u64>() + 1;
        for group in &groups {
            prop_assert!(group.len() <= max_events as usize);
            prop_assert!(group.len() == 1 || size(group) <= preferred_bytes, "{group:?}");
        }
        for pair in groups.windows(2) {
            let joined = [&pair[0][..], &pair[1][..1]].concat();
            prop_assert!(joined.len() > max_events as usize || size(&joined) > preferred_bytes, "{pair:?}");
        }
        prop_assert_eq!(groups.concat(), (0..sizes.len() as u128).collect::<Vec<_>>());
    }
}
