//! `lastmile trace --stack` of a delivered, a retried, a divided and a dead-lettered event, by the log that the functions
//! wrote and the Logs Insights of the emulated AWS.

use std::process::Command;

use lastmile_tests::built::binary;
use serde_json::Value;

use super::stack::{ACCOUNT, Stack};
use super::{Deployment, KILLED_LIMIT, event, now, on_deployment};

#[test]
fn a_trace_has_every_delivery_of_an_event_with_its_attempts_its_end_and_its_dead_letter() {
    on_deployment(|Deployment { stack, .. }| async move {
        stack.publish("shop/traced", &event("traced-1")).await;
        let ends = |trace: &Value, end: &str| {
            deliveries(trace).iter().filter(|delivery| delivery["end"] == end).count()
        };
        let is_complete = |trace: &Value| {
            let stored =
                deliveries(trace).iter().any(|delivery| delivery["dead_letter"]["key"].is_string());
            ends(trace, "delivered") == 2 && ends(trace, "dead_lettered") == 1 && stored
        };
        let trace = traced_until(stack, &["traced-1"], is_complete).await;
        let delivery_to = |name: &str| {
            let name = format!("shop/traced/{name}");
            let found = deliveries(&trace)
                .iter()
                .find(|delivery| delivery["subscription"] == name.as_str());
            found.unwrap_or_else(|| panic!("no {name} in {trace:#}"))
        };
        assert_eq!(statuses(delivery_to("takes")), [200]);
        assert_eq!(statuses(delivery_to("busy")), [503, 200]);
        assert!(
            delivery_to("busy")["published_at"].is_string() && delivery_to("busy")["attempts"] == 2
        );
        let refused = delivery_to("refuses");
        assert_eq!(statuses(refused), [400]);
        assert_eq!(refused["reason"], "UndeliverableDueToHttpBadRequest");
        let id = refused["delivery_id"].as_str().expect("an id");

        let by_webhook_id = traced_until(stack, &[id], |_| true).await;
        assert_eq!(deliveries(&by_webhook_id), std::slice::from_ref(refused));
        let by_text = traced_until(stack, &["--search", "shop/traced/"], |_| true).await;
        assert!(deliveries(&by_text).len() >= 3, "{by_text:#}");
    });
}

fn deliveries(trace: &Value) -> &[Value] {
    trace["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn statuses(delivery: &Value) -> Vec<u64> {
    let steps = delivery["steps"].as_array().expect("steps");
    steps.iter().filter_map(|step| step["status"].as_u64()).collect()
}

/// Runs `trace` with these arguments until its JSON is as expected.
async fn traced_until(
    stack: &'static Stack,
    arguments: &[&str],
    is_complete: impl Fn(&Value) -> bool,
) -> Value {
    let deadline = now() + KILLED_LIMIT;
    loop {
        let mut command = Command::new(binary("lastmile"));
        command.args(["trace", "--stack", "lastmile", "--output", "json"]).args(arguments);
        command.envs(stack.variables()).envs(ACCOUNT);
        let run = tokio::task::spawn_blocking(move || command.output());
        let output = run.await.expect("it ends").expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("CloudWatch Logs Insights"), "it names the price: {errors}");
        let trace = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{errors}"));
        if is_complete(&trace) {
            return trace;
        }
        assert!(now() < deadline, "not complete within {KILLED_LIMIT:?}: {trace:#}");
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
}
