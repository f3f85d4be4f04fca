//! Checks the event source mappings: Lambda must read each queue, and accept partial batch
//! responses.

use aws_config::SdkConfig;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::types::{EventSourceMappingConfiguration, FunctionResponseType};
use futures::future::join_all;

use super::failed;
use super::item::Item;
use super::queues::Queue;
use crate::operations::queues;
use crate::operations::shell;
use crate::operations::stack::Stack;

/// The prefix of the last processing result of a mapping if Lambda reports a problem, such as
/// `PROBLEM: Lambda internal error`.
const PROBLEM: &str = "PROBLEM";

pub(super) async fn examine(aws: &SdkConfig, stack: &Stack, queues: &[Queue]) -> Vec<Item> {
    let client = Client::new(aws);
    let read = queues
        .iter()
        .filter_map(|queue| Some((queue, stack.output(queue.expected.mapping?.function).ok()?)));
    let reads = read.clone().map(|(queue, _)| mappings(&client, &queue.arn));
    let mut items = Vec::new();
    let mut fine = 0;
    for ((queue, function), mappings) in read.zip(join_all(reads).await) {
        let name = queue.expected.name;
        match mappings.map(|mappings| judge(name, function, &mappings)) {
            Ok(None) => fine += 1,
            Ok(Some(item)) => items.push(item),
            Err(why) => items.push(Item::not_checked(item_of(name), &why)),
        }
    }
    // Missing queues are not counted here, because other items report them.
    if fine > 0 && items.is_empty() {
        let all = queues::mappings().count();
        items.push(Item::ok("mappings", format!("the functions read {fine} of {all} queues")));
    }
    items
}

async fn mappings(
    client: &Client,
    queue: &str,
) -> anyhow::Result<Vec<EventSourceMappingConfiguration>> {
    let answer = client.list_event_source_mappings().event_source_arn(queue).send().await;
    let answer =
        failed(answer, || "the event source mappings of the function cannot be listed".to_owned())?;
    Ok(answer.event_source_mappings.unwrap_or_default())
}

fn item_of(queue: &str) -> String {
    format!("mapping of {queue}")
}

/// Returns the problem with the mapping between this queue and this function; `None` if the
/// mapping works.
fn judge(
    queue: &str,
    function: &str,
    mappings: &[EventSourceMappingConfiguration],
) -> Option<Item> {
    let item = item_of(queue);
    // The ARN is arn:aws:lambda:REGION:ACCOUNT:function:NAME, with an optional alias.
    let is_of = |mapping: &&EventSourceMappingConfiguration| {
        mapping.function_arn().and_then(|arn| arn.split(':').nth(6)) == Some(function)
    };
    let Some(mapping) = mappings.iter().find(is_of) else {
        let message = format!("{function} does not read this queue");
        return Some(Item::error(item, message, "deploy the stack again"));
    };
    let id = mapping.uuid().unwrap_or_default();
    let update = ["aws", "lambda", "update-event-source-mapping", "--uuid", id, "--enabled"];
    let enable = || shell::command(&update);
    match mapping.state().unwrap_or_default() {
        "Enabled" => {}
        "Disabled" | "Disabling" => {
            return Some(Item::error(item, "the mapping is disabled, so messages wait", enable()));
        }
        state => {
            let message = format!("the state is {state}");
            return Some(Item::warning(item, message, "wait a minute, and run doctor again"));
        }
    }
    if !mapping.function_response_types().contains(&FunctionResponseType::ReportBatchItemFailures) {
        let message = "after one failure, SQS redelivers the whole batch";
        let help = format!("{} --function-response-types ReportBatchItemFailures", enable());
        return Some(Item::error(item, message, help));
    }
    let result = mapping.last_processing_result().filter(|text| text.starts_with(PROBLEM))?;
    let help = "check the lines about the role and the function, and the log of the function";
    Some(Item::error(item, format!("Lambda last reported: {result}"), help))
}

#[cfg(test)]
mod tests {
    use super::super::item::State;
    use super::*;

    fn judged(function: &str, state: &str, reports: bool, result: &str) -> Option<(State, String)> {
        let reports = reports.then_some(FunctionResponseType::ReportBatchItemFailures);
        let mapping = EventSourceMappingConfiguration::builder()
            .uuid("u-1")
            .function_arn(format!("arn:aws:lambda:eu-west-1:1:function:{function}"))
            .state(state)
            .set_function_response_types(Some(reports.into_iter().collect()))
            .last_processing_result(result)
            .build();
        let item = judge("RetryQueue", "dispatch", &[mapping])?;
        Some((item.state, item.line()))
    }

    #[test]
    fn a_mapping_that_works_is_no_finding_also_of_an_alias() {
        for function in ["dispatch", "dispatch:live"] {
            assert_eq!(judged(function, "Enabled", true, "OK"), None, "{function}");
        }
    }

    #[test]
    fn a_paused_mapping_is_named_with_the_command_that_enables_it() {
        let expected = "error    mapping of RetryQueue: the mapping is disabled, so messages wait; \
                        aws lambda update-event-source-mapping --uuid u-1 --enabled\n";
        for state in ["Disabled", "Disabling"] {
            let found = judged("dispatch", state, true, "OK");
            assert_eq!(found, Some((State::Error, expected.to_owned())), "{state}");
        }
    }

    #[test]
    fn a_mapping_that_is_missing_fails_or_reports_nothing_is_an_error_and_one_that_begins_a_warning()
     {
        for (function, state, reports, result, expected) in [
            ("another", "Enabled", true, "OK", State::Error),
            ("dispatch", "Enabled", false, "OK", State::Error),
            ("dispatch", "Enabled", true, "PROBLEM: Lambda internal error", State::Error),
            ("dispatch", "Creating", true, "", State::Warning),
        ] {
            let found = judged(function, state, reports, result);
            assert_eq!(found.map(|item| item.0), Some(expected), "{function} {state} {result}");
        }
    }
}
