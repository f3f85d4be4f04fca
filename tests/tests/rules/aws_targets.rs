//! Requests to AWS targets as they leave the system, compared with the files in `golden/requests`, and what cannot be sent.

use delivery::delivery::outcome::Unsendable;
use delivery::event::Input;
use delivery::request::{AttemptContext, Request, compose};
use delivery::subscription::Subscription;
use delivery::subscription::secret::{AwsCredentials, Keyring, Secret};
use dialects::{Source, read};
use serde_json::Value;

use crate::requests::assert_printed;
use crate::samples::{PUBLISHED_MS, delivery_of};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/shop","type":"order.created","subject":"grüße an 7","time":"2026-11-20T07:03:00Z","data":{"amount":7}}"#;

/// A subscription to this resource, with these parameters.
fn subscription(resource: &str, action: &str, parameters: &str) -> Subscription {
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: billing}}\n\
         spec: {{destination: {{aws: {{arn: 'arn:aws:{resource}', action: {action}, parameters: {parameters}}}}}}}\n"
    );
    let catalogue = read(&[Source { name: "f", text: &text }]).into_result().expect("it is valid");
    let subscription = catalogue.subscriptions().next().expect("it has one");
    (**subscription).clone()
}

fn composed(subscription: &Subscription, event: &str, input: Input) -> Result<Request, Unsendable> {
    let keyring = Keyring::default().with_aws(AwsCredentials {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: Secret::new("secret".to_owned()),
        session_token: None,
    });
    let context = AttemptContext { keyring: &keyring, now_ms: PUBLISHED_MS, timeout_ms: 30_000 };
    compose(subscription, &[&delivery_of(event, input)], context)
}

#[test]
fn each_service_gets_the_event_in_its_own_protocol() {
    for (name, resource, action) in [
        ("sqs", "sqs:eu-west-1:123456789012:orders.fifo", "SendMessage"),
        ("events", "events:eu-west-1:123456789012:event-bus/shop", "PutEvents"),
        ("lambda", "lambda:eu-west-1:123456789012:function:orders:live", "Invoke"),
        ("sns", "sns:eu-west-1:123456789012:orders", "Publish"),
        ("states", "states:eu-west-1:123456789012:stateMachine:orders", "StartExecution"),
        ("kinesis", "kinesis:eu-west-1:123456789012:stream/orders", "PutRecord"),
        ("firehose", "firehose:eu-west-1:123456789012:deliverystream/orders", "PutRecord"),
    ] {
        let subscription = subscription(resource, action, "{}");
        let request = composed(&subscription, EVENT, Input::Auto).expect("it can be sent");
        assert_printed(&format!("aws-{name}"), &request);
    }
}

#[test]
fn a_group_or_a_key_that_would_be_too_long_is_replaced_by_a_digest() {
    let long = EVENT.replace("grüße an 7", &"ü".repeat(300));
    for (resource, action, member) in [
        ("sqs:eu-west-1:123456789012:orders.fifo", "SendMessage", "MessageGroupId"),
        ("kinesis:eu-west-1:123456789012:stream/orders", "PutRecord", "PartitionKey"),
    ] {
        let subscription = subscription(resource, action, "{}");
        let request = composed(&subscription, &long, Input::Auto).expect("it can be sent");
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        let value = body[member].as_str().expect("a text");
        assert!(uuid::Uuid::parse_str(value).is_ok(), "{value}");
    }
}

#[test]
fn an_event_without_what_a_parameter_is_made_of_is_undeliverable_and_the_parameter_is_named() {
    let bus = ("events:eu-west-1:123456789012:event-bus/shop", "PutEvents");
    let queue = ("sqs:eu-west-1:123456789012:orders", "SendMessage");
    for ((resource, action), parameters, why) in [
        (bus, "{Source: shop}", "the event has no type, which is the default of DetailType"),
        (bus, "{DetailType: a}", "the event has no source, which is the default of Source"),
        (
            queue,
            "{DelaySeconds: '{{ event.data }}'}",
            "destination.aws.parameters.DelaySeconds: expected a whole number from 0 to 900",
        ),
        (queue, "{MessageGroupId: '{{ event.missing }}'}", "parameters.MessageGroupId"),
    ] {
        let subscription = subscription(resource, action, parameters);
        let unsendable = composed(&subscription, "hello", Input::Opaque).expect_err(why);
        let Unsendable::Impossible(problem) = &unsendable else { panic!("{unsendable:?}") };
        assert!(problem.contains(why), "{problem}");
    }
}
