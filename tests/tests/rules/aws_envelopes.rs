//! Messages of SNS, EventBridge and S3 as CloudEvents: their documented samples, compared byte for
//! byte with the files in `golden/aws_envelopes`, and read by an independent library.
//!
//! A golden file changes only on purpose: run with `UPDATE_GOLDEN=1`, then check the diff against
//! the mappings (`docs/reference/publishing.md`). Apart from white space and placeholders, the
//! samples are:
//! - `sns-*`: <https://docs.aws.amazon.com/sns/latest/dg/SendMessageToSQS.html>,
//!   <https://docs.aws.amazon.com/sns/latest/dg/http-subscription-confirmation-json.html>
//! - `eventbridge-*`:
//!   <https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html>,
//!   <https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html>
//! - `s3-*`:
//!   <https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>

use std::fs;
use std::path::PathBuf;

use cloudevents::AttributesReader as _;
use delivery::event::envelope::{Publisher, decode, input_of, publisher};
use delivery::event::{Element, Event, Input, Shape};
use proptest::prelude::*;

use crate::events::decode_one;

const SNS_TOPIC: &str = "arn:aws:sns:us-west-2:123456789012:MyTopic";

fn samples() -> Vec<(&'static str, Publisher, usize)> {
    let sns = || Publisher::SnsTopic(SNS_TOPIC.to_owned());
    let source = |name: &str| Publisher::EventSource(name.to_owned());
    let bucket = || Publisher::Bucket("amzn-s3-demo-bucket".to_owned());
    vec![
        ("sns-notification", sns(), 1),
        ("sns-subscription-confirmation", sns(), 0),
        ("eventbridge-state-change", source("aws.ec2"), 1),
        ("eventbridge-replayed", source("com.company.myapp"), 1),
        ("s3-object-created", bucket(), 1),
        ("s3-two-records", bucket(), 2),
        ("s3-test-event", bucket(), 1),
    ]
}

fn sample(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/aws_envelopes")
        .join(format!("{name}.json"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn events(text: &str, input: Input) -> Vec<Event> {
    let elements = decode(&text.into(), input).into_iter();
    let event = |element| match element {
        Element::Event(event) => event,
        Element::Malformed { text, why } => panic!("{why}: {text}"),
    };
    elements.map(event).collect()
}

#[track_caller]
fn assert_golden(name: &str, text: &str) {
    crate::samples::assert_golden(&format!("aws_envelopes/{name}.json"), text.as_bytes());
}

#[test]
fn each_documented_sample_becomes_the_cloud_events_of_its_mapping() {
    for (name, publisher, count) in samples() {
        if count == 0 {
            continue;
        }
        let made = events(&sample(name), input_of(&publisher));
        assert_eq!(made.len(), count, "{name}");
        let texts: Vec<&str> = made.iter().map(|event| event.text().trim()).collect();
        assert_golden(name, &format!("{}\n", texts.join("\n")));
    }
}

#[test]
fn an_independent_library_reads_each_of_them() {
    for (name, publisher, _) in samples().into_iter().filter(|(.., count)| *count > 0) {
        for made in events(&sample(name), input_of(&publisher)) {
            let read: cloudevents::Event =
                serde_json::from_str(made.text()).unwrap_or_else(|e| panic!("{name}: {e}"));
            let members = made.members();
            assert_eq!(Some(read.id()), members.id().as_deref(), "{name}");
            assert_eq!(Some(read.ty()), members.event_type().as_deref(), "{name}");
            assert_eq!(Some(read.source().as_str()), members.source().as_deref(), "{name}");
            assert!(read.time().is_some() && read.data().is_some(), "{name}");
            assert_eq!(read.datacontenttype(), Some("application/json"), "{name}");
        }
    }
}

#[test]
fn each_publisher_is_recognized_by_its_shape_and_no_other_is() {
    for (name, wrote, _) in samples() {
        assert_eq!(publisher(&sample(name)), Some(wrote), "{name}");
    }
    let s3 = sample("s3-object-created");
    for other in [
        "",
        "[]",
        "{",
        "Type",
        r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#,
        r#"{"Type":"Notification","MessageId":"1"}"#,
        &sample("sns-notification").replace(r#""Notification""#, r#""Note""#),
        &sample("sns-notification")
            .replace(r#""arn:aws:sns:us-west-2:123456789012:MyTopic","#, r#""MyTopic","#),
        &sample("eventbridge-state-change").replace(r#""region""#, r#""place""#),
        &s3.replace("aws:s3\"", "minio:s3\""),
        r#"{"Records":[]}"#,
        r#"{"Records":[{"eventSource":"aws:sqs","body":"{}"}]}"#,
        r#"{"Event":"s3:TestEvent"}"#,
    ] {
        assert_eq!(publisher(other), None, "{other}");
    }
}

/// A holder of the token or of one of the addresses could subscribe the queue, or end its
/// subscription.
#[test]
fn what_ends_a_subscription_of_sns_reaches_no_subscriber_unless_asked_for() {
    let notification = sample("sns-notification").replacen(
        '{',
        r#"{"Token":"t0ken","SubscribeURL":"https://sns/?Action=ConfirmSubscription","#,
        1,
    );
    let data = |input| {
        let [event] = &events(&notification, input)[..] else { panic!("{input:?}") };
        let data: serde_json::Value = serde_json::from_str(event.text()).expect("JSON");
        data["data"].as_object().expect("an object").keys().cloned().collect::<Vec<_>>()
    };
    let all = data(Input::SnsWhole);
    let rest: Vec<_> =
        all.iter().filter(|name| !name.contains("scribeURL") && *name != "Token").collect();
    assert_eq!((all.len(), data(Input::Sns).iter().collect::<Vec<_>>()), (rest.len() + 3, rest));
}

/// A record that names its topic is such a case: a stored message that is published again, or a
/// message that somebody forwards.
#[test]
fn nor_does_it_where_the_topic_does_not_read_messages_of_sns() {
    let notification = sample("sns-notification");
    let confirmation = sample("sns-subscription-confirmation");
    let both = format!("[{notification},{confirmation}]");
    let without = notification
        .lines()
        .filter(|line| !line.contains("UnsubscribeURL"))
        .collect::<Vec<_>>()
        .join("\n");
    let same = |left: &str, right: &str| {
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        read(left).is_some() && read(left) == read(&right.replace(",\n}", "\n}"))
    };
    for input in [Input::Auto, Input::Custom, Input::Opaque] {
        let [event] = &events(&notification, input)[..] else { panic!("{input:?}") };
        assert!(same(event.text(), &without), "{input:?}: {}", event.text());
        let [Element::Malformed { why, .. }] = &decode(&confirmation.as_str().into(), input)[..]
        else {
            panic!("{input:?}")
        };
        assert!(why.to_string().contains("is not delivered"), "{why}");
    }
    let [Element::Event(event), Element::Malformed { .. }] =
        &decode(&both.as_str().into(), Input::Auto)[..]
    else {
        panic!("{both}")
    };
    assert!(same(event.text(), &without), "{}", event.text());
    let escaped = notification.replace("UnsubscribeURL", r"Unsubscribe\u0055RL");
    assert!(same(events(&escaped, Input::Auto)[0].text(), &without));
    // A text that is not from SNS, or has no such address, is unchanged to the byte.
    let other = r#"{"Type":"Notification","UnsubscribeURL":"https://example.com"}"#;
    for text in [other, &format!(" {} ", notification.replace("UnsubscribeURL", "Other"))] {
        for input in [Input::Auto, Input::Custom, Input::Opaque] {
            assert_eq!(events(text, input)[0].text().as_ref(), text, "{input:?}");
        }
    }
}

#[test]
fn a_confirmation_of_sns_is_no_event() {
    let message =
        serde_json::to_string(r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#);
    let message = message.expect("a string is JSON");
    for kind in ["SubscriptionConfirmation", "UnsubscribeConfirmation"] {
        let text =
            sample("sns-subscription-confirmation").replace("SubscriptionConfirmation", kind);
        let with_event =
            text.replacen("\"Message\" : ", &format!("\"Message\" : {message}, \"Text\" : "), 1);
        for (text, input) in
            [(&text, Input::Sns), (&text, Input::SnsWhole), (&with_event, Input::Sns)]
        {
            let [Element::Malformed { text: kept, why }] =
                &decode(&text.as_str().into(), input)[..]
            else {
                panic!("{kind}")
            };
            assert!(why.to_string().contains("is not delivered"), "{why}");
            assert!(kept.contains("SubscribeURL"), "who repairs it needs that: {kept}");
        }
    }
}

#[test]
fn without_a_subscription_arn_the_topic_is_the_source() {
    let notification = sample("sns-notification");
    let of_other_topic = notification.replace(
        &format!("SubscriptionArn={SNS_TOPIC}:"),
        "SubscriptionArn=arn:aws:sns:us-west-2:1:other:",
    );
    for text in [
        &notification.replace("UnsubscribeURL", "Other"),
        &notification.replace("SubscriptionArn=", "Of="),
        &of_other_topic,
    ] {
        let [event] = &events(text, Input::Sns)[..] else { panic!("{text}") };
        assert_eq!(event.members().source().as_deref(), Some(SNS_TOPIC), "{text}");
    }
    let escaped = notification.replace(
        &format!("SubscriptionArn={SNS_TOPIC}:"),
        &format!("SubscriptionArn={}%3A", SNS_TOPIC.replace(':', "%3A")),
    );
    let [event] = &events(&escaped, Input::Sns)[..] else { panic!("{escaped}") };
    assert_eq!(
        event.members().source().as_deref(),
        Some(&*format!("{SNS_TOPIC}:c7fe3a54-ab0e-4ec2-88e0-db410a0f2bee"))
    );
}

/// The shape alone does not convert an envelope; its topic decides.
#[test]
fn unless_its_topic_is_configured_for_it_an_envelope_is_custom_json() {
    for (name, publisher, _) in samples() {
        if matches!(publisher, Publisher::SnsTopic(_)) {
            continue;
        }
        let text = sample(name);
        let [event] = &events(&text, Input::Auto)[..] else { panic!("{name}") };
        assert_eq!(
            (event.shape(), event.text().as_ref()),
            (Shape::Custom, text.as_str()),
            "{name}"
        );
    }
}

#[test]
fn a_cloud_event_is_unchanged_in_any_envelope_and_for_any_input() {
    let event = "{ \"specversion\":\"1.0\",\"id\":\"1\", \"source\":\"s\",\"type\":\"t\",\"data\":{\"n\":1.50} }";
    let message = serde_json::to_string(event).expect("a string is JSON");
    let carried = sample("sns-notification").replace("\"Hello world!\"", &message);
    for (text, input) in [
        (carried.as_str(), Input::Sns),
        (event, Input::Sns),
        (event, Input::EventBridge),
        (event, Input::S3),
    ] {
        let [read] = &events(text, input)[..] else { panic!("{text}") };
        assert_eq!((read.shape(), read.text().as_ref()), (Shape::CloudEvent, event), "{input:?}");
    }
    let broken =
        sample("sns-notification").replace("\"Hello world!\"", &message.replace("1.0", "0.3"));
    let [read] = &events(&broken, Input::Sns)[..] else { panic!("{broken}") };
    assert_eq!(read.members().event_type().as_deref(), Some("com.amazonaws.sns.Notification"));
}

#[test]
fn the_retry_queue_carries_the_converted_cloud_event() {
    for (name, publisher, _) in samples().into_iter().filter(|(.., count)| *count > 0) {
        for input in [input_of(&publisher), Input::Auto] {
            for made in events(&sample(name), input_of(&publisher)) {
                assert_eq!(Event::recall(made.text(), input), made, "{name}");
            }
        }
    }
}

#[test]
fn a_message_that_the_configured_publisher_never_writes_is_malformed_with_the_reason() {
    let s3 = sample("s3-two-records");
    for (text, input, says) in [
        ("no JSON", Input::Sns, "not JSON"),
        (r#"{"orderId":7}"#, Input::Sns, "Type must be Notification"),
        (r#"{"Type":"Notification","TopicArn":"t"}"#, Input::Sns, "MessageId"),
        (r#"{"Type":"Notification","MessageId":"1","TopicArn":7}"#, Input::Sns, "TopicArn"),
        (r#"{"orderId":7}"#, Input::EventBridge, "detail"),
        (r#"{"detail":{},"source":"s","detail-type":"t"}"#, Input::EventBridge, "id"),
        (
            r#"{"detail":{},"source":"\ud800","id":"1","detail-type":"t"}"#,
            Input::EventBridge,
            "source",
        ),
        (r#"{"orderId":7}"#, Input::S3, "Records"),
        (r#"{"Records":[]}"#, Input::S3, "Records"),
        (r#"{"Records":[7]}"#, Input::S3, "s3"),
        (r#"{"Event":"s3:TestEvent","Bucket":"b"}"#, Input::S3, "RequestId"),
        (r#"{"specversion":"1.0"}"#, Input::S3, "id"),
    ] {
        match &decode(&text.into(), input)[..] {
            [Element::Malformed { why, .. }] => {
                assert!(why.to_string().contains(says), "{text}: {why}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    let spoiled = s3.replacen("x-amz-request-id", "x-request", 1);
    let elements = decode(&spoiled.into(), Input::S3);
    assert!(
        matches!(elements[..], [Element::Malformed { .. }, Element::Event(_)]),
        "a record spoils only itself"
    );
    // A message with many records is decoded completely.
    let many = format!(r#"{{"Records":[{}{{}}]}}"#, "{},".repeat(30_000));
    assert_eq!(decode(&many.into(), Input::S3).len(), 30_001);
}

#[test]
fn an_array_of_envelopes_becomes_one_event_each() {
    let text = format!("[{},{}]", sample("s3-two-records"), sample("s3-test-event"));
    assert_eq!(events(&text, Input::S3).len(), 3);
}

#[test]
fn an_invalid_source_is_encoded_and_a_valid_one_is_unchanged() {
    let event = sample("eventbridge-state-change");
    for (source, becomes) in [
        ("aws.ec2", "aws.ec2"),
        ("aws.partner/example.com/a%20b", "aws.partner/example.com/a%20b"),
        ("my shop <é>", "my%20shop%20%3C%C3%A9%3E"),
    ] {
        let text = event.replace("aws.ec2\"", &format!("{source}\""));
        let made = decode_one(&text, Input::EventBridge).expect("an event");
        assert_eq!(made.members().source().as_deref(), Some(becomes));
    }
}

proptest! {
    #[test]
    fn any_message_becomes_a_valid_cloud_event_or_keeps_its_text(
        text in "[\\[\\]{}\",:a-c0-9 \\\\ü]{0,40}", value in "\\PC{0,20}", name in 0_usize..7, nth in 0_usize..40,
    ) {
        let (sample_name, publisher, _) = samples().swap_remove(name);
        let written = sample(sample_name);
        // Replaces one value of a sample with any text.
        let value = serde_json::to_string(&value).expect("a string is JSON");
        let cut: Vec<&str> = written.split(": \"").collect();
        let at = nth % cut.len();
        let spoiled = cut.iter().enumerate().map(|(index, part)| match part.split_once('"') {
            Some((_, rest)) if index == at && index > 0 => format!(": {value}{rest}"),
            _ if index > 0 => format!(": \"{part}"),
            _ => (*part).to_owned(),
        });
        for body in [text, spoiled.collect()] {
            for element in decode(&body.as_str().into(), input_of(&publisher)) {
                match element {
                    Element::Event(event) => {
                        prop_assert_eq!(event.shape(), Shape::CloudEvent);
                        prop_assert!(serde_json::from_str::<serde_json::Value>(event.text()).is_ok());
                    }
                    Element::Malformed { text, .. } => prop_assert!(body.contains(text.as_ref())),
                }
            }
        }
    }
}
