//! A notification for every dead letter, by the stack and the commands of `docs/dead-letters.md`.

use std::collections::BTreeSet;
use std::path::Path;

use lastmile_tests::snippets;
use serde_json::Value;

use super::{ARRIVAL_LIMIT, Deployment, now, on_deployment};

const PAGE: &str = "dead-letters.md";

/// Runs the page's commands for the bucket of this environment and a queue; `false` if this machine
/// lacks their tool.
async fn subscribe_by_the_page(deployment: &Deployment, queue_arn: String) -> bool {
    let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/notify.yaml");
    let mut snippet = snippets::under(PAGE, "A message for each");
    assert!(snippet.text.contains(" infra/notify.yaml "));
    snippet.text =
        snippet.text.replace("infra/notify.yaml", template.to_str().expect("a plain path"));
    let (endpoint, bucket) =
        (deployment.stack.endpoint.clone(), deployment.stack.dead_letter_bucket().to_owned());
    let run = tokio::task::spawn_blocking(move || {
        let environment = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("DEAD_LETTER_BUCKET", &bucket),
            ("NOTIFICATIONS_QUEUE_ARN", &queue_arn),
        ];
        snippet.run(&environment)
    });
    run.await.expect("the example runs")
}

/// The keys that a queue was notified of, up to and including this one.
async fn notified_until(deployment: &Deployment, queue: &str, last: &str) -> BTreeSet<String> {
    let deadline = now() + ARRIVAL_LIMIT;
    let mut keys = BTreeSet::new();
    while !keys.contains(last) && now() < deadline {
        for body in deployment.stack.received(queue).await {
            let notified: Value =
                serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
            keys.insert(
                notified["key"].as_str().unwrap_or_else(|| panic!("no key in {body}")).to_owned(),
            );
        }
    }
    keys
}

#[test]
fn the_documented_stack_notifies_of_every_dead_letter_and_of_no_ledger() {
    on_deployment(|deployment| async move {
        let (queue, queue_arn) = deployment.stack.new_queue("letters").await;
        if !subscribe_by_the_page(deployment, queue_arn).await {
            return;
        }
        deployment.stack.put_dead_letter("_replays/job/1.ndjson").await;
        deployment.stack.put_dead_letter("other/orders/billing/2026/11/20/7/1.json").await;
        // Its topic is in no subscription file, so no other test has this dead letter.
        deployment.stack.publish("shop/told", &super::event("told-1")).await;
        let letters = deployment.dead_letters("shop/told/", 1).await;
        let [(key, _)] = letters.as_slice() else {
            panic!("one dead letter is expected: {letters:#?}")
        };
        let notified = notified_until(deployment, &queue, key).await;
        assert!(notified.contains(key), "{key}: {notified:?}");
        assert!(
            notified.iter().all(|key| key.starts_with("shop/") && key.ends_with(".json")),
            "{notified:?}"
        );
    });
}
