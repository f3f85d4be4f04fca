//! Faults of the table that last for a moment, each at the worst moment: no delivery is lost or late because of one, and no
//! limit is exceeded.

use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::news::News;
use delivery::delivery::health::shared::{DestinationState, Document as _};
use delivery::ports::{Clock as _, Message, QueueName, Record};
use delivery::subscription::{Concurrency, Disable, Subscription};
use delivery::table::Expected;
use delivery::time::duration::{DAY_MS, HOUR_MS, MINUTE_MS};
use lastmile_tests::fake_ports::reactions::answers;
use lastmile_tests::fake_ports::{FakePorts, NOW_MS};

use crate::examples::{
    EVENT, carried, catalogue_of, record, retry_record, subscription,
    subscriptions_with_destination, tried,
};
use crate::process::Process;

/// So many events that are published now.
fn events(ports: &FakePorts, count: usize) -> Vec<Record> {
    let sent_ms = ports.now_ms();
    (0..count).map(|at| Record { sent_ms, ..record(&format!("{sent_ms}-{at}"), EVENT) }).collect()
}

fn due() -> Record {
    retry_record(&tried())
}

fn latest_ms(sent: &[(QueueName, Message)]) -> u64 {
    sent.iter().map(|(_, message)| carried(message).due_ms).max().expect("some wait")
}

/// A destination that is disabled once it has failed for an hour.
fn disabling() -> Subscription {
    let mut disabling = subscription("shop/orders/s0");
    disabling.destination.probation = true;
    disabling.destination.disable = Some(Disable { after_ms: HOUR_MS });
    disabling.retry.time_to_live_ms = Some(10 * DAY_MS);
    disabling
}

fn key() -> DestinationKey {
    DestinationKey::new("shop", &disabling().destination.url)
}

fn state(ports: &FakePorts) -> DestinationState {
    let text = ports.entry_text(&key().health_item("shop")).expect("a state");
    DestinationState::read(text.as_bytes()).expect("a state")
}

/// A destination fails for an hour; this happens before the probe that disables it.
fn fail_until_disabled(happens: impl Fn(&FakePorts)) -> (FakePorts, Process) {
    let ports = FakePorts::new(catalogue_of([disabling()])).with_status(503);
    let process = Process::new(ports.clone());
    events(&ports, 10).into_iter().for_each(|event| drop(process.invoke(&[event])));
    loop {
        let failing = state(&ports).failing.expect("it fails");
        ports.advance_ms(failing.until_ms.saturating_sub(ports.now_ms()) + 1);
        let is_last = ports.now_ms() >= failing.since_ms + HOUR_MS;
        if is_last {
            happens(&ports);
        }
        process.invoke(&[due()]);
        if is_last {
            return (ports, process);
        }
    }
}

/// True if it gets a request from this process, some time later.
fn is_attempted(ports: &FakePorts, by: &Process) -> bool {
    ports.advance_ms(2 * HOUR_MS);
    let before = ports.requests();
    by.invoke(&events(ports, 1));
    ports.requests() > before
}

#[test]
fn a_switch_is_told_though_the_answer_to_its_write_was_lost_and_the_client_tried_again() {
    // The probe is claimed by the first write; the second one says what it showed.
    let (ports, finder) = fail_until_disabled(|ports| ports.lose_answer_after(1));
    for process in [finder, Process::new(ports.clone())] {
        assert!(!is_attempted(&ports, &process));
    }
}

#[test]
fn an_operator_who_enables_last_wins() {
    // Between the write of the state and that of the news.
    let (ports, finder) = fail_until_disabled(|ports| {
        ports.before_news(|table, now_ms| {
            let item = key().health_item("shop");
            let stored = table.entry(&item, now_ms).expect("a state");
            let state = DestinationState::read(stored.text.as_bytes()).expect("a state");
            assert!(state.disabled.is_some(), "the process wrote it");
            let enabled = state.enabled(now_ms);
            table.replace(&item, &enabled.entry(), Expected::Anything, now_ms);
            for news in News::of_state(key(), &enabled, now_ms) {
                table.replace(&news.item(), &news.entry(), Expected::Anything, now_ms);
            }
        });
    });
    for process in [finder, Process::new(ports.clone())] {
        assert!(is_attempted(&ports, &process));
    }
}

/// A destination that takes one request a second, of which each of a hundred functions makes one in 100 s while it cannot
/// reach the table.
fn one_a_second(time_to_live_ms: u64) -> (FakePorts, Process) {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.max_per_second = Some(1);
    limited.retry.time_to_live_ms = Some(time_to_live_ms);
    let ports = FakePorts::new(catalogue_of([limited]));
    let process = Process::one_of(100, ports.clone());
    (ports, process)
}

#[test]
fn while_the_table_is_away_nobody_waits_beyond_its_return() {
    let (ports, process) = one_a_second(HOUR_MS);
    ports.set_table_unreachable(true);
    let sent = process.invoke(&events(&ports, 100));
    assert_eq!((ports.requests(), sent.len()), (1, 99));
    let waits = sent.iter().map(|(_, message)| message.wait_ms);
    assert_eq!(waits.max(), Some(30_000));
}

#[test]
fn a_long_outage_of_the_table_leaves_no_backlog_of_its_own() {
    let (ports, process) = one_a_second(DAY_MS);
    ports.set_table_unreachable(true);
    let mut sent = Vec::new();
    for _ in 0..600 {
        sent.extend(process.invoke(&events(&ports, 1)));
        ports.advance_ms(3_000);
    }
    let over_ms = ports.now_ms();
    assert!(latest_ms(&sent) <= over_ms + 30_000);
    ports.set_table_unreachable(false);
    let before = ports.requests();
    process.invoke(&events(&ports, 1));
    assert_eq!(ports.requests(), before + 1, "the share is forgotten");
}

#[test]
fn a_line_of_hours_outlasts_its_item_by_far() {
    let (ports, process) = one_a_second(10 * DAY_MS);
    let sent = process.invoke(&events(&ports, 10_000));
    assert!(latest_ms(&sent) > NOW_MS + 2 * HOUR_MS);
    ports.advance_ms(HOUR_MS + MINUTE_MS);
    let later = process.invoke(&events(&ports, 1));
    assert!(latest_ms(&later) > latest_ms(&sent), "behind all of them");
}

#[test]
fn an_attempt_has_its_whole_timeout_after_a_slow_token() {
    let client =
        "{tokenUrl: 'https://login.example.com/token', clientId: acme, clientSecret: 'env:CLIENT'}";
    let catalogue = subscriptions_with_destination(&format!(
        "auth: {{oauth2: {client}}}, maxConcurrency: 1, timeout: PT30S"
    ));
    let token = r#"{"access_token":"t","token_type":"Bearer","expires_in":3600}"#;
    let ports = FakePorts::new(catalogue)
        .with_reactions("login.example.com", &[answers(200).with_body(token).after_ms(9_000)])
        .with_reactions("s0.example.com", &[answers(200)]);
    let delivery = [Record { queue: QueueName::Slow, ..due() }];
    Process::new(ports.clone()).invoke(&delivery);
    let timeouts: Vec<u64> = ports.posts().iter().map(|request| request.timeout_ms).collect();
    assert_eq!(timeouts[1], 30_000, "{timeouts:?}");
}

#[test]
fn a_namespace_whose_items_are_throttled_does_not_take_the_table_from_another() {
    for is_throttled in [false, true] {
        let limited = |name: &str| {
            let mut limited = subscription(name);
            limited.destination.max_concurrency = Concurrency::of_all(1);
            limited
        };
        let catalogue = catalogue_of([limited("shop/orders/s0"), limited("noisy/orders/s1")]);
        let ports = FakePorts::new(catalogue);
        // Another process makes the only request that s0 takes.
        ports.give_permits_to_another(&key().limits_item("shop"), 1, 60_000);
        ports.throttle(is_throttled.then_some("noisy"));
        let process = Process::new(ports.clone());
        let noisy = Record { topic: Some("noisy/orders".to_owned()), ..record("n", EVENT) };
        process.invoke(&[noisy]);
        let before = ports.requests();
        process.invoke(&events(&ports, 1));
        assert_eq!(ports.requests(), before);
    }
}

#[test]
fn a_permit_that_may_have_been_given_out_is_returned_soon() {
    let mut limited = subscription("shop/orders/s0");
    limited.destination.max_concurrency = Concurrency::of_all(1);
    limited.destination.response_timeout_ms = 10 * MINUTE_MS;
    limited.retry.time_to_live_ms = Some(5 * MINUTE_MS);
    let ports = FakePorts::new(catalogue_of([limited]));
    let process = Process::new(ports.clone());
    ports.answer_late_about_permits(1);
    process.invoke(&events(&ports, 1));
    assert_eq!(ports.requests(), 1, "the share of this process");
    ports.advance_ms(31_000);
    let (began_ms, mut waiting) = (ports.now_ms(), events(&ports, 1));
    while ports.requests() == 1 {
        let sent = process.invoke(&waiting);
        let Some((queue, message)) = sent.first() else { break };
        assert_ne!(*queue, QueueName::DeadLetter);
        ports.advance_ms(message.wait_ms);
        waiting = vec![retry_record(&carried(message))];
    }
    assert!(ports.now_ms() - began_ms < MINUTE_MS, "{} ms", ports.now_ms() - began_ms);
}
