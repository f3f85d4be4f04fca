//! A message for each cause of dead letters, by the stack and the commands of `docs/guides/dead-letters.md`.

use std::env;

use lastmile_tests::snippets;
use serde_json::Value;

use super::stack::{build_folder, script};
use super::{ARRIVAL_LIMIT, Deployment, now, on_deployment};

const PAGE: &str = "guides/dead-letters.md";
/// The stack of the page.
const STACK: &str = "lastmile-notify";

/// Runs the page's commands for the bucket of this environment and a queue. Returns `false` if this machine lacks their tool.
/// The function is built already, as in a release.
async fn subscribe_by_the_page(deployment: &Deployment, queue_arn: String) -> bool {
    let mut snippet = snippets::under(PAGE, "A message for each cause");
    let lines = snippet.text.lines().filter(|line| !line.starts_with("sam build "));
    let text = lines.collect::<Vec<_>>().join("\n");
    let template = build_folder().join("release/infra/notify.yaml");
    let template = template.to_str().expect("a plain path").to_owned();
    snippet.text = text.replace(".aws-sam/notify/template.yaml", &template);
    assert!(snippet.text.contains(&template));
    let (endpoint, bucket) =
        (deployment.stack.endpoint.clone(), deployment.stack.dead_letter_bucket().to_owned());
    let tools = build_folder().with_file_name("libraries").join("python/venv/bin");
    let path = format!("{}:{}", tools.display(), env::var("PATH").unwrap_or_default());
    let run = tokio::task::spawn_blocking(move || {
        let environment = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("SAM_CLI_TELEMETRY", "0"),
            ("SAM_CLI_POLL_DELAY", "0.2"),
            ("PATH", &path),
            ("DEAD_LETTER_BUCKET", &bucket),
            ("NOTIFICATIONS_QUEUE_ARN", &queue_arn),
        ];
        snippet.run(&environment)
    });
    run.await.expect("the example runs")
}

/// Invokes the function, as the schedule does each minute.
async fn invoke(deployment: &Deployment) {
    let port = deployment.stack.endpoint.rsplit(':').next().expect("a port").to_owned();
    let invoked = tokio::task::spawn_blocking(move || {
        let outputs = script("stack.sh", &[&port, STACK]);
        let outputs: Value = serde_json::from_str(&outputs).expect("outputs are JSON");
        let function = outputs["FunctionName"].as_str().expect("the stack names its function");
        script("invoke.sh", &[&port, function, "{}"]);
    });
    invoked.await.expect("the function runs");
}

/// The messages about this subscription that arrive until their counts add up to this number.
async fn messages_about(
    deployment: &Deployment,
    queue: &str,
    subscription: &str,
    count: u64,
) -> Vec<Value> {
    let deadline = now() + ARRIVAL_LIMIT;
    let mut messages: Vec<Value> = Vec::new();
    let counted = |messages: &[Value]| -> u64 {
        messages.iter().filter_map(|message| message["count"].as_u64()).sum()
    };
    while counted(&messages) < count && now() < deadline {
        invoke(deployment).await;
        for body in deployment.stack.received(queue).await {
            let message: Value =
                serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
            if message["subscriptions"][0]["name"] == subscription {
                messages.push(message);
            }
        }
    }
    messages
}

#[test]
fn the_documented_stack_sends_a_message_for_each_cause_and_none_about_ledgers() {
    on_deployment(|deployment| async move {
        let (queue, queue_arn) = deployment.stack.new_queue("letters").await;
        if !subscribe_by_the_page(deployment, queue_arn).await {
            return;
        }
        deployment.stack.put_dead_letter("_replays/job/1.ndjson").await;
        deployment.stack.put_dead_letter("other/orders/billing/2026/11/20/7/1.json").await;
        // No other test publishes to this topic, which has no subscription file.
        for id in ["told-1", "told-2"] {
            deployment.stack.publish("shop/unheard", &super::event(id)).await;
        }
        deployment.dead_letters("shop/unheard/", 2).await;
        let messages = messages_about(deployment, &queue, "shop/unheard/_unknown", 2).await;
        let total: u64 = messages.iter().filter_map(|message| message["count"].as_u64()).sum();
        assert_eq!(total, 2, "{messages:#?}");
        let container = format!("--container s3://{}", deployment.stack.dead_letter_bucket());
        for message in &messages {
            let title = message["title"].as_str().expect("a title");
            assert!(!title.is_empty() && !title.starts_with("cause unknown"), "{message:#}");
            let command = message["command"].as_str().expect("a command");
            assert!(command.contains(&container) && command.contains(" --since "), "{command}");
        }
    });
}
