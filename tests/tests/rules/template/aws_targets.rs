//! Deliveries to services of AWS: what the deployment allows, and which resources are never a target.

use std::collections::BTreeSet;

use delivery::subscription::aws::policy::AwsTargets;
use serde_json::{Value, json};

use super::{TEMPLATE, matching, properties, resources};

/// The resources that a target could be, or that the functions keep their state in.
const KINDS: [&str; 4] =
    ["AWS::SQS::Queue", "AWS::S3::Bucket", "AWS::DynamoDB::Table", "AWS::Serverless::Function"];

fn variables() -> &'static Value {
    &properties("DispatchFunction")["Environment"]["Variables"]
}

/// The patterns of own resources, each without its condition.
fn own_patterns() -> Vec<&'static Value> {
    let own = variables()["OWN_RESOURCE_ARNS"].as_array().expect("!Join");
    let [separator, patterns] = own.as_slice() else { panic!("{own:?}") };
    assert_eq!(separator, ",");
    let patterns = patterns.as_array().expect("a list").iter();
    let unconditional = |pattern: &'static Value| match pattern[0].as_str() {
        Some("HasIngress") => &pattern[1],
        Some(_) | None => pattern,
    };
    patterns.map(unconditional).collect()
}

#[test]
fn nothing_is_a_target_unless_the_deployment_names_it() {
    assert_eq!(TEMPLATE["Parameters"]["AwsTargets"]["Default"], "");
    assert_eq!(variables()["AWS_TARGETS"], "AwsTargets");
    for (name, function) in resources("AWS::Serverless::Function") {
        let has_targets = function["Environment"]["Variables"].get("AWS_TARGETS").is_some();
        assert_eq!(has_targets, name == "DispatchFunction", "{name}");
    }
}

#[test]
fn every_queue_bucket_table_and_function_of_the_stack_is_an_own_resource() {
    let patterns = own_patterns();
    let queues = json!([
        "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:lastmile-${Id}-*",
        {"Id": [2, ["/", "AWS::StackId"]]}
    ]);
    assert!(patterns.contains(&&queues), "{patterns:#?}");
    let mut expected = BTreeSet::new();
    for (name, properties) in KINDS.iter().flat_map(|kind| resources(kind)) {
        match properties.get("QueueName") {
            Some(queue) => assert_eq!(queue[0], format!("lastmile-${{Id}}-{name}").as_str()),
            None => assert!(expected.insert(format!("${{{name}.Arn}}*"))),
        }
    }
    // Its own ARN would be a circular reference. Lambda gives the function its name.
    assert!(expected.remove("${DispatchFunction.Arn}*"));
    let named: BTreeSet<String> =
        patterns.iter().filter_map(|pattern| pattern.as_str()).map(ToOwned::to_owned).collect();
    assert_eq!(named, expected);
}

#[test]
fn the_template_takes_the_lists_that_dispatch_starts_with_and_no_others() {
    let pattern = TEMPLATE["Parameters"]["AwsTargets"]["AllowedPattern"].as_str().expect("a text");
    for list in [
        "",
        "*=arn:aws:sqs:eu-west-1:123456789012:shop-*",
        "shop=arn:aws:events:eu-west-1:123456789012:event-bus/default, *=arn:aws-cn:sns:cn-north-1:1:t",
        "shop=arn:*:*:*:*:*",
        "arn:aws:sqs:eu-west-1:123456789012:shop",
        "shop=",
        "=arn:aws:sqs:eu-west-1:1:q",
        "shop=arn:aws:sqs:eu-west-1:1",
        "s*=arn:aws:sqs:eu-west-1:1:q",
        "shop=https://a.example.com/",
        "shop=*",
    ] {
        let line = format!("{list}\n");
        let is_taken = matching(pattern, &line) == line;
        assert_eq!(is_taken, AwsTargets::parse(list).is_ok(), "{list}");
    }
}
