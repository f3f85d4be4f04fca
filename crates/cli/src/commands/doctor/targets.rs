//! Checks that the stack's role for AWS targets may call the targets of the subscriptions.

use aws_config::SdkConfig;
use aws_sdk_iam::Client;
use delivery::subscription::catalogue::Catalogue;
use dialects::Severity;

use super::item::Item;
use crate::operations::stack::Stack;
use crate::operations::target_permissions::{Simulated, simulated};
use crate::terminal::text;

const ITEM: &str = "AWS targets";

pub(super) async fn examine(
    aws: &SdkConfig,
    stack: &Stack,
    catalogue: Option<&Catalogue>,
) -> Vec<Item> {
    let Some(catalogue) = catalogue else { return Vec::new() };
    match simulated(&Client::new(aws), stack, catalogue).await {
        Ok(found) => judge(found),
        Err(why) => vec![Item::not_checked(ITEM, &why)],
    }
}

fn judge(Simulated { asked, left, refused }: Simulated) -> Vec<Item> {
    if asked == 0 {
        return Vec::new();
    }
    let count = |count: usize| text::counted(count as u64, "target");
    let mut items: Vec<Item> = refused
        .into_iter()
        .map(|(_, problem)| {
            let help = problem.help.unwrap_or_default();
            match problem.severity {
                Severity::Error => Item::error(ITEM, problem.message, help),
                Severity::Warning | Severity::Note => Item::warning(ITEM, problem.message, help),
            }
        })
        .collect();
    if items.is_empty() {
        items.push(Item::ok(
            ITEM,
            format!("the role InvokeRoleArn has permissions for {}", count(asked)),
        ));
    }
    if left > 0 {
        let help = "doctor simulates only the first targets in IAM";
        items.push(Item::warning(ITEM, format!("{} not checked", count(left)), help));
    }
    items
}
