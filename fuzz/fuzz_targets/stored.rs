//! Any key and bytes as a stored dead letter: no panic. And any delivery that ended, written by us: it is
//! read back with its id, reason, attempts, names and event.
//!
//! Input: a line with a key, or with options for what we write, and the rest, which is a blob or, by
//! lines, a detail, an answer and the event.

#![no_main]

use delivery::deadletter::blob::{bytes, key};
use delivery::deadletter::stored::{StoredDeadLetter, read};
use delivery::delivery::outcome::{Exchange, TransportResult};
use delivery::delivery::reason::Reason;
use delivery::delivery::{DeadLetter, Delivery, Origin};
use delivery::event::{Element, Event, Input, Malformed, Members, decode_one};
use delivery::subscription::Subscription;
use delivery::subscription::dead_letter_format::{DeadLetterFormat, ErrorData, Format, Layout};
use delivery::subscription::profile::Dialect;
use lastmile_fuzz::{NOW_MS, lines};
use libfuzzer_sys::fuzz_target;

const KEY: &str = "n/t/s/2026/11/20/7/3981ba0c-1072-5698-92be-c1c5991fb55c.json";

fuzz_target!(|input: &[u8]| {
    let split = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (first, rest) = input.split_at(split);
    let rest = rest.get(1..).unwrap_or_default();
    if let Ok(key) = std::str::from_utf8(first) {
        let _any = (read(key, "", rest), read(key, "dead", rest));
    }
    let _any = read(KEY, "", input);
    if let Ok(text) = std::str::from_utf8(rest) {
        written(first, text);
    }
});

/// Writes a dead letter with these options and reads it back.
fn written(options: &[u8], text: &str) {
    let option = |index: usize| usize::from(options.get(index).copied().unwrap_or_default());
    let ([name, detail, answer], event) = lines(text);
    let text: std::sync::Arc<str> = event.into();
    let input = [Input::Auto, Input::Custom, Input::Opaque][option(0) % 3];
    let (event, reason) = match decode_one(&text, input) {
        Element::Event(event) => (event, Reason::NAMED[option(1) % Reason::NAMED.len()]),
        Element::Malformed { why: Malformed::NotJson(_), .. } => {
            (Event::recall(&text, Input::Opaque), Reason::MalformedEvent)
        }
        Element::Malformed { .. } => (Event::recall(&text, input), Reason::MalformedEvent),
    };
    let Ok(name) = format!("n/t/{name}").parse() else { return };
    let url = "https://user:hidden@example.com/?code=hidden".parse().expect("a URL");
    let mut subscription = Subscription::new(name, Dialect::Native, url);
    let policy = &mut subscription.dead_letter;
    policy.format = DeadLetterFormat::Fixed(Format::ALL[option(2) % Format::ALL.len()]);
    policy.layout = if option(3) % 2 == 0 { Layout::Nested } else { Layout::Flat };
    policy.error_data = if option(4) % 2 == 0 { ErrorData::Text } else { ErrorData::Base64 };
    let origin = Origin { message: "m".to_owned(), index: 0 };
    let mut delivery = Delivery::new(event, subscription.name.clone(), origin, NOW_MS);
    for status in options.iter().skip(5).take(40) {
        let status = 100 + u16::from(*status);
        let body = answer.as_bytes().to_vec();
        let result = TransportResult::Answered { status, retry_after: None, body };
        delivery.record(&Exchange::new(result, NOW_MS, 7), &subscription);
    }
    let letter = DeadLetter::new(delivery, &subscription, reason, NOW_MS);
    let letter = if detail.is_empty() { letter } else { letter.with_detail(detail) };
    let sink_error = (option(4) % 3 == 0).then_some("it is not there");
    let blob = bytes(&letter, sink_error);
    assert_eq!(blob, bytes(&letter, sink_error));
    let stored = read(&key(&letter, "dead"), "dead", &blob).expect("our own");
    same(&stored, &letter, &blob);
}

fn same(stored: &StoredDeadLetter, letter: &DeadLetter, blob: &[u8]) {
    let shown = String::from_utf8_lossy(blob);
    let delivery = &letter.delivery;
    assert_eq!(stored.id, delivery.id, "{shown}");
    assert_eq!(stored.subscription, delivery.subscription, "{shown}");
    assert_eq!(stored.reason, letter.reason.to_string(), "{shown}");
    assert_eq!(stored.attempts, delivery.attempts, "{shown}");
    assert_eq!(stored.detail, letter.detail, "{shown}");
    let history = delivery.history.first().iter().chain(delivery.history.last());
    assert!(
        history
            .map(|entry| (entry.at_ms, entry.outcome.to_string(), entry.status, entry.duration_ms))
            .eq(stored.history.iter().map(|entry| (
                entry.at_ms,
                entry.outcome.clone(),
                entry.status,
                entry.duration_ms
            ))),
        "{shown}"
    );
    assert_eq!(stored.omitted, delivery.history.omitted(), "{shown}");
    assert_eq!(stored.status, delivery.history.newest().and_then(|entry| entry.status), "{shown}");
    assert!(!shown.contains("user:hidden"), "{shown}");
    // Knative's format has the whole address, which subscribers there know.
    assert!(letter.format == Format::Knative || !shown.contains("code=hidden"), "{shown}");
    let (published, read) = (delivery.event.text().trim(), stored.event.trim());
    if published == read {
        return;
    }
    // Flat formats keep the members, each in its own spelling.
    let nested = letter.format == Format::Namespace && letter.layout == Layout::Nested;
    assert!(!nested, "{shown}");
    let sorted = |text: &str| {
        let members = Members::parse(text).expect("an object");
        let mut members: Vec<(String, String)> =
            members.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        members.sort_unstable();
        members
    };
    assert_eq!(sorted(read), sorted(published), "{shown}");
}
