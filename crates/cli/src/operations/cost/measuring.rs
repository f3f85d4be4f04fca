//! Measures the constants in `measured.rs` again: writes log lines and counts their bytes, and
//! reads the processor times that `bench/run` wrote to BENCH.md.

use std::sync::{Arc, Mutex};

use adapters::metrics::{MetricsSettings, Splits};
use adapters::telemetry::{self, Telemetry};
use delivery::delivery::health::probation::LONGEST_MS;
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Origin, WaitReason};
use delivery::event::{Event, Input};
use delivery::machine::step::settle;
use delivery::subscription::Subscription;
use delivery::subscription::profile::Dialect;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::load::HALF_JITTER;
use super::measured;

const BENCH: &str = include_str!("../../../../../BENCH.md");
/// The response time of the sample destination.
const ANSWER_MS: u64 = 100;
/// The age of the sample event when the response arrives.
const AGE_MS: u64 = 1_234;

/// Creates a delivery of the sample event, with its subscription.
fn delivery() -> (Delivery, Subscription) {
    let event = include_str!("../../../../../examples/events/order-created.json").trim();
    let origin = Origin { message: "059f36b4-87a3-44ab-83d2-661975830a7d".to_owned(), index: 0 };
    let name = "shop/orders/billing".parse().unwrap();
    let url = "https://example.com/".parse().unwrap();
    let subscription = Subscription::new(name, Dialect::Native, url);
    let event = Event::recall(&event.into(), Input::CloudEvents);
    (Delivery::new(event, subscription.name.clone(), origin, 0), subscription)
}

/// Makes an attempt of the delivery for each of these response statuses, in order.
fn deliver(telemetry: &Telemetry, statuses: &[u16]) -> Delivery {
    let (mut delivery, subscription) = delivery();
    for status in statuses {
        let result =
            TransportResult::Answered { status: *status, retry_after: None, body: Vec::new() };
        let exchange = Exchange::new(result, 0, ANSWER_MS);
        let settled = settle(&mut delivery, &subscription, &exchange, ANSWER_MS, HALF_JITTER);
        telemetry.attempted(&delivery, &subscription, &exchange, &settled);
    }
    delivery
}

/// Returns the size in bytes of each line that `write` logs, without its line end.
fn lengths(write: impl FnOnce(&Telemetry)) -> Vec<usize> {
    let written: Arc<Mutex<String>> = Arc::default();
    let writer = Arc::clone(&written);
    let lines = adapters::json_log::JsonLayer(move |_, line: &str| {
        writer.lock().unwrap().push_str(line);
    });
    // With a single subscriber, another thread that reaches a log line first would disable that
    // line for all threads.
    let _ = tracing_subscriber::registry().try_init();
    let guard = tracing_subscriber::registry().with(lines).set_default();
    write(&Telemetry::default());
    drop(guard);
    let text = written.lock().unwrap().clone();
    text.lines().map(str::len).collect()
}

/// Returns the sizes in bytes of the log lines `delivery.delivered`, `delivery.attempted`,
/// `delivery.put_off`, `delivery.ended` and `deadletter.stored`.
fn log_lines() -> [usize; 5] {
    let delivered = lengths(|telemetry| {
        let delivery = deliver(telemetry, &[200]);
        telemetry.delivered(&delivery, AGE_MS);
    });
    let failed = lengths(|telemetry| drop(deliver(telemetry, &[503])));
    let put_off = lengths(|telemetry| {
        telemetry.held(&delivery().0, WaitReason::Probation, LONGEST_MS, AGE_MS);
    });
    let ended = lengths(|_| {
        let letter =
            DeadLetter::without_subscription(delivery().0, Reason::TimeToLiveExceeded, AGE_MS);
        telemetry::dead_letter_sent(&letter);
    });
    let stored = lengths(|_| {
        let delivery = delivery().0;
        let key = format!("shop/orders/billing/2026/11/20/7/{}.json", delivery.id);
        let reason = Reason::TimeToLiveExceeded.into();
        telemetry::stored(&delivery, &reason, "dead-letters-123456789012", &key);
    });
    [delivered, failed, put_off, ended, stored].map(|lines| {
        let [length] = lines[..] else { panic!("one line: {lines:?}") };
        length
    })
}

/// Returns the size in bytes of a metrics line without values, and the number of bytes that the
/// values of one delivery add.
fn metric_lines() -> [usize; 2] {
    let bytes = |deliveries: usize| {
        let settings = MetricsSettings {
            namespace: "lastmile/lastmile".to_owned(),
            splits: Splits::default(),
        };
        let telemetry = Telemetry::new(settings);
        for _ in 0..deliveries {
            let delivery = deliver(&telemetry, &[200]);
            telemetry.matched(&delivery.subscription);
            telemetry.delivered(&delivery, AGE_MS);
        }
        let [line] = &telemetry.metrics(1_795_158_180_000)[..] else { panic!("one line") };
        line.len()
    };
    let [single, nine] = [1, 9].map(bytes);
    let values = (nine - single) / 8;
    [single - values, values]
}

/// Returns the microseconds per invocation and per record, from two rows of a table in BENCH.md.
fn microseconds(name: &str) -> [f64; 2] {
    let [single, hundred] = [1.0, 100.0].map(|records| {
        let start = format!("| {name} | {records} | ");
        let row = BENCH.lines().find_map(|line| line.strip_prefix(&start));
        let row = row.unwrap_or_else(|| panic!("BENCH.md has no row {start}"));
        let (text, _) = row.split_once(" µs |").expect("microseconds per event");
        text.parse::<f64>().expect("a number") * records
    });
    let record = (hundred - single) / 99.0;
    [single - record, record]
}

#[test]
fn what_is_counted_is_what_was_measured() {
    let [delivered, failed, put_off, ended, stored] = log_lines();
    let [line, values] = metric_lines();
    for (name, counted, measured) in [
        ("DELIVERED_LINE_BYTES", measured::DELIVERED_LINE_BYTES, delivered),
        ("FAILED_LINE_BYTES", measured::FAILED_LINE_BYTES, failed),
        ("PUT_OFF_LINE_BYTES", measured::PUT_OFF_LINE_BYTES, put_off),
        ("ENDED_LINE_BYTES", measured::ENDED_LINE_BYTES, ended),
        ("STORED_LINE_BYTES", measured::STORED_LINE_BYTES, stored),
        ("METRICS_LINE_BYTES", measured::METRICS_LINE_BYTES, line),
        ("MEASURED_VALUES_BYTES", measured::MEASURED_VALUES_BYTES, values),
    ] {
        let measured = f64::from(u32::try_from(measured).unwrap());
        let is_close = (measured / counted - 1.0).abs() < 0.05;
        assert!(is_close, "src/cost/measured.rs: {name} = {measured:.1}; then scripts/generate");
    }
    // BENCH.md may be written on different machines, so the range is wide. If a machine is twice as
    // fast, the estimate remains that of a slower machine.
    for (name, counted) in [
        ("dispatch", [measured::DISPATCH_INVOCATION_US, measured::DISPATCH_RECORD_US]),
        ("deadletter", [measured::DEAD_LETTER_INVOCATION_US, measured::DEAD_LETTER_RECORD_US]),
    ] {
        let of_ten = |[invocation, record]: [f64; 2]| invocation + 10.0 * record;
        let measured = microseconds(name);
        let ratio = of_ten(measured) / of_ten(counted);
        assert!((0.4..1.6).contains(&ratio), "src/cost/measured.rs: {name} takes {measured:?} µs");
    }
}

#[test]
fn a_delivery_that_succeeds_at_once_takes_at_most_420_bytes_of_log() {
    let [delivered, ..] = log_lines();
    // CloudWatch bills 26 bytes more for each line.
    assert!(delivered + 26 <= 420, "{delivered}");
}
