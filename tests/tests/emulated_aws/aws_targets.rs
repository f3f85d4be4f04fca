//! Deliveries to AWS targets by the deployed function: all seven services receive an event, and what the role or the deployment
//! does not allow becomes a dead letter. The emulated AWS enforces the policy of the role.
//!
//! The topics are objects that somebody wrote by hand, since the command line refuses targets that are not allowed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::credentials::of_aws::make_role;
use crate::stack::{SUBSCRIPTIONS, Stack, script};
use crate::{ARRIVAL_LIMIT, Deployment, now, on_deployment};

/// The namespace for which the parameter `AwsTargets` lists targets.
pub(crate) const LISTED: &str = "AwsTargets=aimed=arn:aws:*:us-east-1:000000000000:*";
/// A queue that the role may not use.
const REFUSED: &str = "arn:aws:sqs:us-east-1:000000000000:refused";
/// The services, each with its action.
const SERVICES: [(&str, &str); 7] = [
    ("sqs", "SendMessage"),
    ("events", "PutEvents"),
    ("lambda", "Invoke"),
    ("sns", "Publish"),
    ("states", "StartExecution"),
    ("kinesis", "PutRecord"),
    ("firehose", "PutRecord"),
];

/// The output of `targets.sh`.
async fn targets(stack: &Stack, action: &'static str) -> Value {
    let port = stack.endpoint.rsplit(':').next().expect("a port").to_owned();
    let ran = tokio::task::spawn_blocking(move || script("targets.sh", &[&port, action]));
    serde_json::from_str(&ran.await.expect("targets.sh runs")).expect("targets.sh prints JSON")
}

/// Writes the object of a topic with one subscription to a target.
async fn aim(stack: &Stack, topic: &str, arn: &str, action: &str) {
    let spec = json!({
        "destination": {"aws": {"arn": arn, "action": action}},
        "retry": {"maxAttempts": 2, "schedule": {"kind": "constant", "delay": "PT1S"}},
    });
    let object = json!({"v": 1, "subscriptions": {"target": {"owner": "hand", "spec": spec}}});
    let key = format!("{SUBSCRIPTIONS}{topic}.json");
    stack.put_object(stack.output("ConfigBucketName"), &key, &object.to_string()).await;
}

fn event(kind: &str) -> String {
    json!({"specversion": "1.0", "type": kind, "source": "/shop", "id": "aimed-1", "data": {"amount": 7}}).to_string()
}

/// Returns true if each service has received this event, and nothing else.
fn have_all(received: &Value, event: &Value) -> bool {
    SERVICES.iter().all(|(service, _)| {
        let payloads = received[service].as_array().into_iter().flatten();
        let payloads =
            payloads.map(|payload| serde_json::from_str::<Value>(payload.as_str()?).ok());
        payloads.collect::<Vec<_>>() == [Some(event.clone())]
    })
}

#[test]
fn all_seven_services_receive_an_event() {
    on_deployment(|Deployment { stack, .. }: &Deployment| async move {
        make_role(stack).await;
        let arns = targets(stack, "make").await;
        let event = event("arrives");
        for (service, action) in SERVICES {
            let arn = arns[service].as_str().expect("an ARN");
            aim(stack, &format!("aimed/{service}"), arn, action).await;
            stack.publish(&format!("aimed/{service}"), &event).await;
        }
        let expected: Value = serde_json::from_str(&event).expect("JSON");
        let (deadline, mut received) = (now() + ARRIVAL_LIMIT, json!({}));
        while now() < deadline && !have_all(&received, &expected) {
            tokio::time::sleep(Duration::from_millis(200)).await;
            received = targets(stack, "received").await;
        }
        assert!(have_all(&received, &expected), "{received:#}");
        // A function that fails: its failure is an answer with status 200.
        let failing =
            json!({"specversion": "1.0", "type": "fails", "source": "/shop", "id": "aimed-2"});
        stack.publish("aimed/lambda", &failing.to_string()).await;
        let letter = dead_letter(stack, "aimed/lambda/").await;
        assert!(letter.contains("this event fails"), "{letter}");
    });
}

/// The dead letter with this prefix.
async fn dead_letter(stack: &Stack, prefix: &str) -> String {
    let deadline = now() + ARRIVAL_LIMIT;
    loop {
        let letters = stack.dead_letters(prefix).await;
        if let [(_, letter)] = &letters[..] {
            return letter.to_string();
        }
        assert!(now() < deadline, "no dead letter at {prefix}: {letters:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[test]
fn what_the_role_or_the_deployment_does_not_allow_becomes_a_dead_letter() {
    on_deployment(|Deployment { stack, .. }: &Deployment| async move {
        make_role(stack).await;
        let _ = stack.new_queue("refused").await;
        let (_, own) = stack.events_queue().await;
        for (topic, arn, reason) in [
            ("aimed/denied", REFUSED, "UndeliverableDueToHttpForbidden"),
            ("aimed/own", own.as_str(), "UndeliverableDueToBlockedAddress"),
            ("unlisted/queue", REFUSED, "UndeliverableDueToBlockedAddress"),
        ] {
            aim(stack, topic, arn, "SendMessage").await;
            stack.publish(topic, &event("arrives")).await;
            let letter = dead_letter(stack, &format!("{topic}/")).await;
            assert!(letter.contains(reason), "{topic}: {letter}");
        }
    });
}
