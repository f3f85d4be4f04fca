//! `lastmile trace` on the record of `lastmile dev`: a delivered, a retried, a divided and a
//! dead-lettered event, and a replay.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::console_live_server::subscription;
use crate::programs::{self, Running, deciding_receiver, lastmile, run, word};

const NO_WAIT: &str = ", retry: {jitterPercent: 0, schedule: {kind: waits, waits: [PT1S, PT1S]}}";

/// `lastmile dev` with these subscriptions, and its events queue.
struct Dev {
    running: Running,
    queue: String,
}

impl Dev {
    fn start(folder: &Path, subscriptions: &str) -> Self {
        programs::save(&folder.join("s.yaml"), subscriptions);
        let arguments = ["dev", "--no-console", "--port", "0", "--aws-port", "0", "-f", "s.yaml"];
        let mut running = Running::start(lastmile(folder, &arguments));
        let ready = running.line_with("ready:").replace("queue ", "queue=");
        let queue = word(&ready, "queue=").replace("queue=", "");
        Self { running, queue }
    }

    fn publish(&self, folder: &Path, id: &str, kind: &str) {
        let event = format!(
            r#"{{"specversion":"1.0","id":"{id}","source":"/shop","type":"{kind}","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}"#
        );
        std::fs::write(folder.join("event.json"), event).expect("a file can be written");
        let arguments =
            ["publish", "--queue-url", &self.queue, "--topic", "shop/orders", "event.json"];
        assert_eq!(run(folder, &arguments), ("1 accepted, 0 refused\n".to_owned(), Some(0)));
    }
}

/// The address of a receiver that responds with these statuses in turn, the last one again and
/// again.
fn answering(statuses: &'static [&'static str]) -> String {
    let received = AtomicUsize::new(0);
    let answer = move |_: &str| {
        let number = received.fetch_add(1, Ordering::Relaxed).min(statuses.len() - 1);
        format!("HTTP/1.1 {}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", statuses[number])
    };
    // Nobody looks at the requests.
    deciding_receiver(answer).0
}

/// Runs `trace`, and reads its JSON.
fn traced(folder: &Path, arguments: &[&str]) -> Value {
    let arguments = [&["trace"], arguments, &["--output", "json"]].concat();
    let output = lastmile(folder, &arguments).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{errors}"))
}

/// The delivery for a subscription of `shop/orders`.
fn delivery<'a>(trace: &'a Value, name: &str) -> &'a Value {
    let all = trace["deliveries"].as_array().expect("deliveries");
    let name = format!("shop/orders/{name}");
    let found = all.iter().find(|delivery| delivery["subscription"] == name.as_str());
    found.unwrap_or_else(|| panic!("no {name} in {trace:#}"))
}

fn statuses(delivery: &Value) -> Vec<u64> {
    let steps = delivery["steps"].as_array().expect("steps");
    steps.iter().filter_map(|step| step["status"].as_u64()).collect()
}

#[test]
fn every_delivery_of_an_event_is_found_by_each_of_its_ids_after_dev_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let good = answering(&["200 OK"]);
    let busy_once = answering(&["503 Service Unavailable", "200 OK"]);
    let refuses = answering(&["400 Bad Request"]);
    let all = [
        subscription("good", &good, "", ""),
        subscription("busy", &busy_once, "", NO_WAIT),
        subscription("refuses", &refuses, "", ", filter: {exact: {type: order.refused}}"),
    ];
    let mut dev = Dev::start(folder, &all.concat());
    dev.publish(folder, "order-1", "order.created");
    dev.running.wait_for_lines("delivered", 2);
    dev.publish(folder, "order-2", "order.refused");
    dev.running.wait_for_lines("dead letter stored", 1);
    dev.running.wait_for_lines("delivered", 4);
    dev.running.signal("INT");
    assert_eq!(dev.running.code(), Some(0));

    let trace = traced(folder, &["order-1"]);
    assert_eq!(trace["deliveries"].as_array().map(Vec::len), Some(2), "{trace:#}");
    assert_eq!(
        (&delivery(&trace, "good")["end"], statuses(delivery(&trace, "good"))),
        (&"delivered".into(), vec![200])
    );
    let busy = delivery(&trace, "busy");
    assert_eq!((&busy["end"], statuses(busy)), (&"delivered".into(), vec![503, 200]));
    assert!(busy["published_at"].is_string() && busy["attempts"] == 2, "{busy:#}");

    let trace = traced(folder, &["order-2"]);
    let refused = delivery(&trace, "refuses");
    assert_eq!((&refused["end"], statuses(refused)), (&"dead_lettered".into(), vec![400]));
    assert_eq!(refused["reason"], "UndeliverableDueToHttpBadRequest");
    let id = refused["delivery_id"].as_str().expect("an id");
    assert!(refused["dead_letter"]["key"].as_str().is_some_and(|key| key.contains(id)));

    let by_webhook_id = traced(folder, &[id]);
    assert_eq!(by_webhook_id["deliveries"], serde_json::json!([refused]));
    let by_trace = traced(folder, &["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]);
    assert_eq!(by_trace["deliveries"].as_array().map(Vec::len), Some(5));
    let by_text = traced(folder, &["--search", "refused"]);
    assert_eq!(by_text["deliveries"].as_array().map(Vec::len), Some(3), "{by_text:#}");

    let (printed, code) = run(folder, &["trace", "order-1"]);
    assert_eq!(code, Some(0));
    for part in [
        "shop/orders/busy  event order-1  delivered by attempt 2",
        "503 Service Unavailable",
        "2 deliveries: 2 delivered\n",
    ] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
}

#[test]
fn a_replay_is_shown_with_its_dead_letter() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let repaired = answering(&["400 Bad Request", "200 OK"]);
    let mut dev = Dev::start(folder, &subscription("repaired", &repaired, "", ""));
    dev.publish(folder, "order-1", "order.created");
    dev.running.line_with("dead letter stored");
    let queue = dev.queue.replace("/events", "/retry");
    let replay = ["deadletters", "replay", "--queue-url", &queue, "--yes"];
    let (printed, code) = run(folder, &replay);
    assert_eq!(code, Some(0), "{printed}");
    dev.running.line_with("delivered");

    let trace = traced(folder, &["order-1"]);
    let all = trace["deliveries"].as_array().expect("deliveries");
    let ends: Vec<_> =
        all.iter().map(|delivery| delivery["end"].as_str().unwrap_or_default()).collect();
    assert_eq!(ends, ["dead_lettered", "delivered"], "{trace:#}");
    let replayed = &all[0]["replays"][0];
    assert_eq!(replayed["delivery_id"], all[1]["delivery_id"], "{trace:#}");
    assert_eq!(all[1]["replay_of"]["letter"], all[0]["delivery_id"], "{trace:#}");
    // The dead letter's id alone leads to the replay, too.
    let by_id = traced(folder, &[all[0]["delivery_id"].as_str().expect("an id")]);
    assert_eq!(by_id["deliveries"].as_array().map(Vec::len), Some(2), "{by_id:#}");

    let (printed, code) = run(folder, &[&replay[..], &["--state", "all"]].concat());
    assert_eq!(code, Some(0), "{printed}");
    dev.running.line_with("delivered");
    let trace = traced(folder, &["order-1"]);
    let replays = trace["deliveries"][0]["replays"].as_array().map(Vec::len);
    assert_eq!(replays, Some(2), "{trace:#}");
}
