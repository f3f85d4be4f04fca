//! Files that belong together, and those that are missing.

use super::*;
use crate::tests::support::names;
use delivery::event::Input;
use delivery::event::envelope::Publisher;

#[test]
fn files_are_joined_by_arn_and_name_and_an_event_bus_is_a_topic() {
    let [first, targets_of_first, destination, connection] =
        files(&json!({}), &json!({}), &json!({}));
    let bus = json!({ "Name": "refunds", "Arn": RULE_ARN, "EventBusName": "arn:aws:events:r:1:event-bus/shop",
        "EventPattern": r#"{"source":["com.example.refunds"]}"# });
    let two = json!({ "Targets": [
        { "Id": "a", "Arn": DESTINATION_ARN, "RoleArn": "arn:aws:iam::1:role/r" },
        { "Id": "b", "Arn": DESTINATION_ARN, "InputPath": "$.detail" },
    ] });
    let texts = [
        ("refunds-targets.json", two),
        ("orders.json", first),
        ("connection.json", connection),
        ("my-orders-targets.json", targets_of_first),
        ("refunds.json", bus),
        ("destination.json", destination),
    ];
    let texts = texts.map(|(name, document)| (name, document.to_string()));
    let sources: Vec<Source<'_>> = texts.iter().map(|(name, text)| Source { name, text }).collect();
    let reading = read(&sources);
    assert_eq!(findings(&reading), [""; 0]);
    let expected =
        ["eventbridge/default/orders", "eventbridge/shop/refunds-a", "eventbridge/shop/refunds-b"];
    assert_eq!(names(&reading), expected);
    let topics: Vec<_> = reading.catalogue.topics().collect();
    assert_eq!(topics.len(), 2);
    assert_eq!(topics[1].settings.input, Input::Custom);
    assert_eq!(topics[1].settings.from, [Publisher::EventSource("com.example.refunds".to_owned())]);
}

#[test]
fn a_missing_file_is_an_error_that_names_the_command() {
    let all = files(&json!({}), &json!({}), &json!({}));
    let without = |index: usize| {
        let mut files = all.to_vec();
        files.remove(index);
        refused(&files)
    };
    assert_eq!(
        without(0),
        "1.json: error: the rule of these targets is missing, or several rules match; add the \
         output of: aws events describe-rule --name RULE; with several rules, the name of this \
         file must contain the name of its rule, such as RULE-targets.json"
    );
    assert_eq!(
        without(1),
        "1.json: error: the targets of this rule are missing; add the output of: aws events \
         list-targets-by-rule --rule orders > orders-targets.json"
    );
    assert_eq!(
        without(2),
        "2.json: error: Targets[0].Arn: no file describes \"crm\"; add the output of: aws events \
         describe-api-destination --name crm"
    );
    assert_eq!(
        without(3),
        "3.json: error: ConnectionArn: no file describes \"crm\"; add the output of: aws events describe-connection \
         --name crm"
    );
}

#[test]
fn targets_that_may_be_of_another_rule_or_are_not_all_are_an_error() {
    let [rule, targets, destination, connection] = files(&json!({}), &json!({}), &json!({}));
    let more = with(&targets, &json!({ "NextToken": "x" }));
    let other_bus = with(&rule, &json!({ "EventBusName": "shop" }));
    for (documents, expected) in [
        (
            vec![rule.clone(), more],
            "2.json: error: NextToken: the rule has targets that are not in this file",
        ),
        (vec![rule.clone(), other_bus, targets.clone()], "or several rules match"),
        (
            vec![rule, targets.clone(), targets, destination, connection],
            "3.json: error: another file already contains the targets of the rule \"orders\"",
        ),
    ] {
        let found = findings(&reading(&documents));
        assert!(found.iter().any(|finding| finding.contains(expected)), "{found:#?}");
    }
}

#[test]
fn a_list_of_another_command_is_an_error_that_names_the_right_one() {
    for (list, command) in [
        ("Rules", "describe-rule"),
        ("ApiDestinations", "describe-api-destination"),
        ("Connections", "describe-connection"),
    ] {
        let expected = format!(
            "1.json: error: {list}: the output of an EventBridge list command is not supported; \
             add the output of: aws events {command} --name NAME, for each entry"
        );
        assert_eq!(refused(&[json!({ list: [] })]), expected);
    }
}

#[test]
fn a_rule_without_an_api_destination_makes_no_topic() {
    let lambda =
        json!({ "Targets": [{ "Id": "t", "Arn": "arn:aws:lambda:eu-west-1:1:function:f" }] });
    let reading =
        reading(&[rule(&json!({ "detail": { "ip": [{ "cidr": "10.0.0.0/8" }] } })), lambda]);
    assert_eq!((reading.catalogue.topics().count(), findings(&reading).len()), (0, 1));
}

#[test]
fn what_has_no_equivalent_is_a_warning_with_the_next_step() {
    let [_, targets, destination, connection] = files(&json!({}), &json!({}), &json!({}));
    let mut function = targets.clone();
    function["Targets"][0]["Arn"] = json!("arn:aws:lambda:eu-west-1:1:function:f");
    let disabled = with(&rule(&json!({ "source": ["s"] })), &json!({ "State": "DISABLED" }));
    let schedule =
        json!({ "Name": "orders", "Arn": RULE_ARN, "ScheduleExpression": "rate(1 hour)" });
    let any_source = rule(&json!({ "account": ["1"] }));
    for (files, expected) in [
        (
            vec![any_source.clone(), function],
            "2.json: warning: Targets[0].Arn: not converted: \
             \"arn:aws:lambda:eu-west-1:1:function:f\" is not an API destination; write a \
             Subscription with destination.aws, or leave the target in EventBridge",
        ),
        (
            vec![disabled, targets.clone(), destination.clone(), connection.clone()],
            "1.json: warning: State: the rule is disabled, so its Subscription is paused: its \
             events become dead letters; remove the rule to ignore its events",
        ),
        (
            vec![schedule],
            "1.json: warning: ScheduleExpression: schedules are not converted; configure \
             EventBridge Scheduler to send an event to the events queue, and write a Subscription \
             for it",
        ),
        (
            vec![any_source, targets, destination, connection],
            "1.json: warning: EventPattern: the pattern does not name every source exactly; add \
             the sources to `from` of the topic eventbridge/default, or set the topic as \
             DefaultTopic",
        ),
    ] {
        let found = findings(&reading(&files));
        assert!(found.contains(&expected.to_owned()), "{found:#?}");
    }
}
