//! Checks the permissions of the functions' roles: simulates in IAM each action that a function of
//! this version needs, on its resource.
//!
//! A test checks that the roles in the template have these permissions.

use aws_config::SdkConfig;
use aws_sdk_iam::Client;
use futures::stream::{self, StreamExt as _};

use super::functions::Function;
use super::item::Item;
use super::queues::Queue;
use crate::operations::queues::{DEADLETTER, DISPATCH, LAST_RESORT};
use crate::operations::simulated_policy::{AT_ONCE, refused};
use crate::operations::stack::Stack;

const TAKE: [&str; 4] = [
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ChangeMessageVisibility",
];
const SEND: &str = "sqs:SendMessage";
const LOG: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];
const USE_KEY: [&str; 2] = ["kms:Decrypt", "kms:GenerateDataKey"];
/// The queues to which each function sends.
const SENT_TO: [(&str, &[&str]); 2] = [
    (DISPATCH, &["RetryQueue", "SlowQueue", "IsolationQueue", "DeadLetterQueue"]),
    (DEADLETTER, &["DeadLetterQueue", LAST_RESORT]),
];

/// The IAM actions that a function performs on a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Need {
    actions: Vec<&'static str>,
    arn: String,
}

pub(super) async fn examine(
    aws: &SdkConfig,
    stack: &Stack,
    functions: &[Function],
    queues: &[Queue],
) -> Vec<Item> {
    let client = Client::new(aws);
    let mut items = Vec::new();
    for function in functions {
        let role = &function.role_arn;
        let item = format!("role {}", role.rsplit('/').next().unwrap_or(role));
        let needs = needs(function.output, stack, queues);
        if needs.is_empty() {
            continue;
        }
        let asked =
            stream::iter(&needs).map(|need| refused(&client, role, &need.actions, &need.arn));
        let answers: Vec<_> = asked.buffered(AT_ONCE).collect().await;
        let mut missing = Vec::new();
        for (need, answer) in needs.iter().zip(answers) {
            match answer {
                Ok(refused) if refused.is_empty() => {}
                Ok(refused) => {
                    let actions: Vec<_> =
                        refused.into_iter().map(|refusal| refusal.action).collect();
                    missing.push(format!("{} on {}", actions.join(", "), need.arn));
                }
                Err(why) => {
                    // The other simulations would fail in the same way, so stop here.
                    items.push(Item::not_checked(&item, &why));
                    return items;
                }
            }
        }
        items.push(match missing.is_empty() {
            true => Item::ok(
                item,
                format!("the role has the required permissions on {} resources", needs.len()),
            ),
            false => Item::error(
                item,
                format!("missing permissions: {}", missing.join("; ")),
                "deploy the stack again, or remove the denial in a policy of the role, its \
                 boundary or the organization",
            ),
        });
    }
    items
}

/// Returns the actions that a function performs on the stack's resources. Omits resources that no
/// output names.
fn needs(function: &str, stack: &Stack, queues: &[Queue]) -> Vec<Need> {
    let sent_to = SENT_TO.iter().find(|(name, _)| *name == function);
    let Some((_, sent_to)) = sent_to else { return Vec::new() };
    let of_queues = queues.iter().filter_map(|queue| {
        let mut actions = Vec::new();
        if queue.expected.mapping.is_some_and(|mapping| mapping.function == function) {
            actions.extend(TAKE);
        }
        if sent_to.contains(&queue.expected.name) {
            actions.push(SEND);
        }
        (!actions.is_empty()).then(|| Need { actions, arn: queue.arn.clone() })
    });
    let mut needs: Vec<Need> = of_queues.collect();
    needs.extend(of_storage(function, stack));
    let log = if function == DISPATCH { "DispatchLogGroupName" } else { "DeadLetterLogGroupName" };
    if let (Ok(log), Some(prefix)) = (stack.output(log), stack.arn_of("logs")) {
        needs.push(Need {
            actions: LOG.to_vec(),
            arn: format!("{prefix}:log-group:{log}:log-stream:x"),
        });
    }
    if let Some(key) = stack.key_arn() {
        needs.push(Need { actions: USE_KEY.to_vec(), arn: key.to_owned() });
    }
    needs
}

/// Returns the actions of a function on buckets and on the table. For buckets, uses an example of
/// each type of key.
fn of_storage(function: &str, stack: &Stack) -> Vec<Need> {
    let object = |bucket: &str, key: String, actions: &[&'static str]| {
        let bucket = stack.output(bucket).ok()?;
        let arn = format!("arn:{}:s3:::{bucket}/{key}", stack.partition());
        Some(Need { actions: actions.to_vec(), arn })
    };
    let letter = object(
        "DeadLetterBucketName",
        "ns/topic/name/2026/1/1/0/x.json".to_owned(),
        &["s3:PutObject", "s3:PutObjectTagging"],
    );
    if function == DEADLETTER {
        let end = "_replays/x/ends/x.ndjson".to_owned();
        let end = object("DeadLetterBucketName", end, &["s3:PutObject"]);
        return [letter, end].into_iter().flatten().collect();
    }
    let config = |key: String, actions: &[&'static str]| object("ConfigBucketName", key, actions);
    let all =
        [config("subscriptions/x/x.json".to_owned(), &["s3:GetObject"]), letter, of_table(stack)];
    all.into_iter().flatten().collect()
}

/// Returns the actions of a function on the table.
fn of_table(stack: &Stack) -> Option<Need> {
    let (table, prefix) = (stack.output("TableName").ok()?, stack.arn_of("dynamodb")?);
    let actions = vec!["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"];
    Some(Need { actions, arn: format!("{prefix}:table/{table}") })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::queues::samples;
    use super::*;

    fn stack() -> Stack {
        Stack::sample(
            &[("KmsKeyArn", "arn:aws:kms:eu-west-1:1:key/1")],
            &[
                ("ConfigBucketName", "config"),
                ("DeadLetterBucketName", "letters"),
                ("TableName", "table"),
                ("DispatchLogGroupName", "/aws/lambda/live-dispatch"),
                ("DeadLetterLogGroupName", "/aws/lambda/live-deadletter"),
            ],
        )
    }

    /// Returns the lines that define this role in the template.
    fn role(name: &str) -> String {
        let template = include_str!("../../../../../template.yaml");
        let (_, role) = template.split_once(&format!("\n  {name}:\n")).expect("the role is there");
        let of_role = role.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
        of_role.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_action_that_doctor_asks_about_is_one_of_the_template() {
        for (function, role_name) in [(DISPATCH, "DispatchRole"), (DEADLETTER, "DeadLetterRole")] {
            let asked = needs(function, &stack(), &samples());
            let asked: BTreeSet<&str> =
                asked.iter().flat_map(|need| need.actions.clone()).collect();
            let role = role(role_name);
            let missing: Vec<_> = asked.iter().filter(|action| !role.contains(**action)).collect();
            assert!(missing.is_empty(), "{role_name}: {missing:?}");
            assert!(asked.contains("sqs:ReceiveMessage") && asked.contains("s3:PutObject"));
        }
    }

    #[test]
    fn a_queue_is_asked_about_where_the_function_reads_it_or_sends_to_it() {
        let count = |function: &str, queue: &str| {
            let needs = needs(function, &stack(), &samples());
            let need = needs.into_iter().find(|need| need.arn.ends_with(&format!("-{queue}")));
            need.map(|need| need.actions.len())
        };
        assert_eq!(count(DISPATCH, "EventsQueue"), Some(4));
        assert_eq!(count(DISPATCH, "RetryQueue"), Some(5));
        assert_eq!(count(DISPATCH, "DeadLetterQueue"), Some(1));
        assert_eq!(count(DISPATCH, LAST_RESORT), None);
        assert_eq!(count(DEADLETTER, "DeadLetterQueue"), Some(5));
        assert_eq!(count(DEADLETTER, "EventsQueue"), None);
    }
}
