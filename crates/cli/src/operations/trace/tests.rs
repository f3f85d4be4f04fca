//! Traces of log lines that the functions wrote on the emulated AWS and in `lastmile dev`.

use super::*;
use crate::operations::trace::model::ReplaySource;
use local::watch::Line;

/// One event for two subscriptions: one destination was busy once, and the other one refused it.
const FANNED_OUT: &str = r#"
{"timestamp":"2026-11-28T04:07:59.6220000Z","level":"INFO","message":"delivery.attempted","event_id":"told-1","source":"/shop","type":"order.created","subscription":"shop/told/busy","delivery_id":"6c93bfa1-6020-5b2f-9966-f474a78b25a5","leg":"event","attempt":1,"outcome":"Busy","status":503,"verdict":"retry","wait_ms":2000,"duration_ms":10}
{"timestamp":"2026-11-28T04:07:59.6220000Z","level":"INFO","message":"delivery.attempted","event_id":"told-1","source":"/shop","type":"order.created","subscription":"shop/told/refuses","delivery_id":"e1e5c495-2814-5a6f-9fc6-2ed27c11c966","leg":"event","attempt":1,"outcome":"BadRequest","status":400,"verdict":"undeliverable","duration_ms":10}
{"timestamp":"2026-11-28T04:07:59.6470000Z","level":"INFO","message":"delivery.ended","event_id":"told-1","source":"/shop","type":"order.created","subscription":"shop/told/refuses","delivery_id":"e1e5c495-2814-5a6f-9fc6-2ed27c11c966","attempts":1,"end":"DeadLettered","reason":"UndeliverableDueToHttpBadRequest"}
{"timestamp":"2026-11-28T04:07:59.7120000Z","level":"INFO","message":"deadletter.stored","event_id":"told-1","source":"/shop","type":"order.created","subscription":"shop/told/refuses","delivery_id":"e1e5c495-2814-5a6f-9fc6-2ed27c11c966","reason":"UndeliverableDueToHttpBadRequest","container":"lastmile-deadletterbucket-fd7188eb597dd","key":"shop/told/refuses/2026/11/28/4/e1e5c495-2814-5a6f-9fc6-2ed27c11c966.json"}
{"timestamp":"2026-11-28T04:08:02.1980000Z","level":"INFO","message":"delivery.delivered","event_id":"told-1","source":"/shop","type":"order.created","subscription":"shop/told/busy","delivery_id":"6c93bfa1-6020-5b2f-9966-f474a78b25a5","attempt":2,"status":200,"duration_ms":5,"age_ms":2689}
"#;
const DEAD: &str = "e1e5c495-2814-5a6f-9fc6-2ed27c11c966";
const REPLAY: &str = "194cebeb-fecb-5cd1-8bd6-fa12b0d1ba15";

fn lines(text: &str) -> Vec<Line> {
    text.lines().filter_map(log_line).collect()
}

fn trace_of_text(text: &str) -> Trace {
    trace(&lines(text), Letters::default(), &[])
}

fn shown(step: &Step) -> (Option<u64>, Option<u16>, &str) {
    (step.attempt, step.status, step.words.next.as_str())
}

#[test]
fn each_delivery_of_an_event_has_its_attempts_its_end_and_its_dead_letter() {
    let trace = trace_of_text(FANNED_OUT);
    let [busy, refused] = trace.deliveries.as_slice() else { panic!("two: {trace:#?}") };
    assert_eq!((busy.subscription.as_str(), busy.end), ("shop/told/busy", DeliveryEnd::Delivered));
    let steps: Vec<_> = busy.steps.iter().map(shown).collect();
    assert_eq!(steps, [(Some(1), Some(503), "retry in 2 s"), (Some(2), Some(200), "delivered")]);
    let times = (busy.published_ms, busy.ended_ms, busy.attempts);
    assert_eq!(times, (Some(1_795_838_879_509), Some(1_795_838_882_198), 2));

    assert_eq!((refused.end, refused.attempts), (DeliveryEnd::DeadLettered, 1));
    assert_eq!(refused.reason.as_deref(), Some("UndeliverableDueToHttpBadRequest"));
    let letter = refused.dead_letter.as_ref().expect("it was stored");
    assert!(letter.key.as_ref().is_some_and(|key| key.ends_with(&format!("{DEAD}.json"))));
    assert_eq!(refused.steps.len(), 3);
}

#[test]
fn the_order_of_lines_and_lines_of_others_change_nothing() {
    let mut reversed: Vec<&str> = FANNED_OUT.lines().rev().collect();
    reversed.insert(1, "START RequestId: 1");
    reversed.insert(2, r#"{"_aws":{"Timestamp":1795158180000},"MatchedEventCount":2}"#);
    let json = |trace: &Trace| serde_json::to_value(trace).unwrap();
    assert_eq!(json(&trace_of_text(&reversed.join("\n"))), json(&trace_of_text(FANNED_OUT)));
}

#[test]
fn a_delivery_without_an_end_continues_after_its_last_wait() {
    let first = FANNED_OUT.trim().lines().next().unwrap();
    let trace = trace_of_text(first);
    let delivery = &trace.deliveries[0];
    assert_eq!((delivery.end, delivery.attempts), (DeliveryEnd::UnderWay, 1));
    assert_eq!(delivery.continues_ms, Some(1_795_838_881_622));
}

#[test]
fn a_delivery_to_a_sink_ends_with_its_last_attempt() {
    let attempt = |number: u64, end: &str| {
        format!(
            r#"{{"timestamp":"2026-11-28T04:08:0{number}.0000000Z","level":"INFO","message":"delivery.attempted","event_id":"told-1","subscription":"shop/told/refuses","delivery_id":"516b803f-fcdd-5d8e-b4f5-6e88c6343238","leg":"sink","attempt":{number},{end},"duration_ms":2}}"#
        )
    };
    let busy = attempt(1, r#""outcome":"Busy","status":503,"verdict":"retry","wait_ms":1000"#);
    let accepted = attempt(2, r#""outcome":"Success","status":200,"verdict":"delivered""#);
    let refused = attempt(2, r#""outcome":"BadRequest","status":400,"verdict":"undeliverable""#);
    for (lines, end, attempts) in [
        (vec![&busy], DeliveryEnd::UnderWay, 1),
        (vec![&busy, &accepted], DeliveryEnd::Delivered, 2),
        (vec![&busy, &refused], DeliveryEnd::DeadLettered, 2),
    ] {
        let text: Vec<&str> = lines.into_iter().map(String::as_str).collect();
        let trace = trace_of_text(&text.join("\n"));
        let delivery = &trace.deliveries[0];
        assert_eq!((delivery.end, delivery.attempts), (end, attempts));
        assert_eq!(delivery.ended_ms.is_some(), end != DeliveryEnd::UnderWay);
    }
}

#[test]
fn a_replay_is_with_its_dead_letter_and_its_own_delivery_names_the_dead_letter() {
    let ended = format!(
        r#"{{"timestamp":"2026-11-28T04:10:00.0000000Z","level":"INFO","message":"replay.ended","job":"20261128T040950Z-1a2b","letter":"{DEAD}","delivery":"{REPLAY}","outcome":"delivered"}}"#
    );
    let delivered = r#"{"timestamp":"2026-11-28T04:09:59.4540000Z","level":"INFO","message":"delivery.delivered","event_id":"told-1","source":"/shop","type":"order.created","subscription":"shop/told/refuses","delivery_id":"194cebeb-fecb-5cd1-8bd6-fa12b0d1ba15","attempt":1,"status":200,"duration_ms":6,"age_ms":83}"#;
    let sent = TracedReplay {
        letter: DEAD.parse().unwrap(),
        job: "20261128T040950Z-1a2b".to_owned(),
        delivery_id: REPLAY.parse().unwrap(),
        sent_ms: Some(7),
        outcome: None,
    };
    let lines = lines(&format!("{FANNED_OUT}{delivered}\n{ended}"));
    let trace = trace(&lines, Letters::default(), std::slice::from_ref(&sent));
    let by_id = |id: &str| {
        trace
            .deliveries
            .iter()
            .find(|delivery| delivery.delivery_id.to_string() == id)
            .expect("it is there")
    };
    assert_eq!(
        by_id(DEAD).replays,
        [TracedReplay { outcome: Some("delivered".to_owned()), ..sent }]
    );
    let source =
        ReplaySource { letter: DEAD.parse().unwrap(), job: "20261128T040950Z-1a2b".to_owned() };
    assert_eq!(by_id(REPLAY).replay_of, Some(source));
    assert_eq!(by_id(REPLAY).end, DeliveryEnd::Delivered);
}

#[test]
fn an_event_that_nothing_matched_is_shown_with_its_topic() {
    let line = r#"{"timestamp":"2026-11-28T04:07:59.6220000Z","level":"INFO","message":"event.unmatched","event_id":"lost-1","source":"/shop","type":"order.created","topic":"shop/told","message_id":"m"}"#;
    let trace = trace_of_text(line);
    assert!(trace.deliveries.is_empty() && !trace.is_empty());
    assert_eq!(trace.unmatched[0].topic, "shop/told");
}
