//! Batches, late responses, probation and consent: what a Topic and a Subscription say together.

use super::{HEAD, TOPIC, URL, subscription, with_spec};
use delivery::subscription::CloudEventsHandshake;
use delivery::subscription::NoFields;
use delivery::subscription::{BATCH_BYTES, BATCH_EVENTS_MAX, Batch, Consent, OnRefused};
use delivery::time::duration::MINUTE_MS;

/// The batch of a Subscription that says this under a Topic that says that.
fn batch(of_topic: &str, own: &str) -> Option<Batch> {
    let topic = format!("{TOPIC}spec: {{delivery: {{batch: {of_topic}}}}}\n---\n");
    subscription(&format!("{topic}{HEAD}{URL}  batch: {own}\n")).batch
}

#[test]
fn one_of_its_numbers_turns_a_batch_on_and_the_other_has_its_default() {
    let split = |max_events, preferred_bytes| {
        Some(Batch { max_events, preferred_bytes, on_refused: OnRefused::Split })
    };
    for (own, expected) in [
        ("", None),
        ("{}", None),
        ("{maxEvents: 100}", split(100, BATCH_BYTES)),
        ("{maxEvents: 1}", split(1, BATCH_BYTES)),
        ("{maxEvents: 5000, preferredKilobytes: 1}", split(5_000, 1_024)),
        ("{preferredKilobytes: 1024}", split(BATCH_EVENTS_MAX, 1_024 * 1_024)),
        ("{preferredKilobytes: 64, onRefused: split}", split(5_000, 65_536)),
    ] {
        assert_eq!(with_spec(&format!("  batch: {own}\n")).batch, expected, "{own}");
    }
}

#[test]
fn a_batch_overrides_that_of_its_topic_field_by_field() {
    let all = |max_events, preferred_bytes| {
        Some(Batch { max_events, preferred_bytes, on_refused: OnRefused::All })
    };
    for (of_topic, own, expected) in [
        ("{maxEvents: 7, onRefused: all}", "{}", all(7, BATCH_BYTES)),
        (
            "{maxEvents: 7, preferredKilobytes: 2, onRefused: split}",
            "{onRefused: all}",
            all(7, 2_048),
        ),
        ("{maxEvents: 7, onRefused: all}", "{preferredKilobytes: 3}", all(7, 3_072)),
        ("{onRefused: all}", "{preferredKilobytes: 3}", all(BATCH_EVENTS_MAX, 3_072)),
        ("{onRefused: all}", "{}", None),
    ] {
        assert_eq!(batch(of_topic, own), expected, "{of_topic} {own}");
    }
}

#[test]
fn late_responses_and_consent_are_off_probation_is_on_and_a_subscription_has_the_last_word() {
    let bare = with_spec("").destination.clone();
    assert_eq!((bare.late_window_ms, bare.probation, bare.consent), (0, true, None));
    let of_topic = "{lateResponseWindow: PT3M, probation: false, consent: {handshake: eventgrid}}";
    let topic = format!("{TOPIC}spec: {{delivery: {{destination: {of_topic}}}}}\n---\n");
    let under = |rest: &str| {
        let own = format!("{HEAD}  destination: {{url: http://h/{rest}}}\n");
        subscription(&format!("{topic}{own}")).destination.clone()
    };
    let taken = under("");
    assert_eq!((taken.late_window_ms, taken.probation), (3 * MINUTE_MS, false));
    assert_eq!(taken.consent, Some(Consent::EventGrid(NoFields)));
    let own = under(
        ", lateResponseWindow: PT0S, probation: true, consent: {handshake: cloudevents, origin: a}",
    );
    assert_eq!((own.late_window_ms, own.probation), (0, true));
    assert_eq!(
        own.consent,
        Some(Consent::CloudEvents(CloudEventsHandshake { origin: "a".to_owned(), rate: None }))
    );
}
