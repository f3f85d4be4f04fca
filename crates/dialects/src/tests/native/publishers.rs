//! `from`: publishers that cannot say which topic they publish to.

use super::TOPIC;
use crate::tests::support::{read_one, shown};
use delivery::event::envelope::Publisher;

/// Two topics, each with its publishers.
fn topics(first: &str, second: &str) -> String {
    let other = TOPIC.replace("name: t", "name: u");
    format!("{TOPIC}spec: {{from: {first}}}\n---\n{other}spec: {{from: {second}}}\n")
}

#[test]
fn a_topic_knows_its_publishers_in_order_whatever_its_input() {
    let arn = "arn:aws-cn:sns:cn-north-1:123456789012:Orders_1.fifo";
    let first = format!("[{{snsTopic: '{arn}'}}, {{bucket: uploads}}]");
    let reading = read_one(&topics(&first, "[{eventSource: com.example}]"));
    assert_eq!(shown(&reading), Vec::<String>::new());
    let publishers =
        |name: &str| reading.catalogue.topic(&name.parse().unwrap()).unwrap().settings.from.clone();
    assert_eq!(
        publishers("n/t"),
        [Publisher::SnsTopic(arn.to_owned()), Publisher::Bucket("uploads".to_owned())]
    );
    assert_eq!(publishers("n/u"), [Publisher::EventSource("com.example".to_owned())]);
    for nothing in ["", "[]", "null"] {
        assert_eq!(read_one(&topics(nothing, "[]")).findings, [], "{nothing}");
    }
}

#[test]
fn a_publisher_has_one_topic() {
    let reading =
        read_one(&topics("[{bucket: uploads}, {eventSource: uploads}]", "[{bucket: uploads}]"));
    assert_eq!(
        shown(&reading),
        ["f:9:24: error: spec.from[0].bucket: the publisher bucket uploads is defined twice: for \
          n/t and for n/u; assign the publisher to one topic; several subscriptions may receive \
          its events"]
    );
    assert!(reading.catalogue.topics().map(|topic| topic.name.to_string()).eq(["n/t"]));
    let within = read_one(&topics("[{bucket: uploads}, {bucket: uploads}]", "[]"));
    assert!(
        shown(&within)[0].starts_with("f:4:43: error: spec.from[1].bucket: the publisher bucket"),
        "{within:?}"
    );
}

#[test]
fn a_publisher_that_the_input_cannot_read_is_odd_and_loads() {
    for (input, odd) in [("auto", 0), ("custom", 0), ("s3", 0), ("sns", 1), ("eventbridge", 1)] {
        let reading =
            read_one(&format!("{TOPIC}spec: {{input: {input}, from: [{{bucket: uploads}}]}}\n"));
        assert_eq!(
            (reading.findings.len(), reading.catalogue.topics().count()),
            (odd, 1),
            "{:?}",
            shown(&reading)
        );
        let column = 33 + input.len();
        let expected = format!(
            "f:4:{column}: warning: spec.from[0].bucket: the input of this topic is {input}, but \
             records of this publisher require s3; use input: auto, which reads both"
        );
        assert!(
            shown(&reading).iter().all(|finding| *finding == expected),
            "{:?}",
            shown(&reading)
        );
    }
}

#[test]
fn a_topic_with_an_error_has_no_subscriptions_of_any_family() {
    let grid = "name: s\nlastmile: {topic: n/t}\nproperties:\n  destination: \
                {endpointType: WebHook, properties: {endpointUrl: 'https://h/'}}\n";
    for (spec, left) in [("{from: []}", 1), ("{from: 7}", 0)] {
        let reading = read_one(&format!("{TOPIC}spec: {spec}\n---\n{grid}"));
        assert_eq!(
            (reading.catalogue.subscriptions().count(), reading.findings.len()),
            (left, 1 - left),
            "{spec}"
        );
    }
}
