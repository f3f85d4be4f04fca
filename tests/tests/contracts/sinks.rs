//! `PutMessage`: what was accepted is in the queue; a missing queue is a permanent error.

use adapters::sinks::{ID_ATTRIBUTE, SqsSinks};
use delivery::delivery::DELIVERY_NAMESPACE;
use delivery::ports::{MESSAGE_MAX_BYTES, PutError, PutMessage as _};
use delivery::subscription::sink::SinkQueue;

use crate::cloud::Cloud;

/// A queue of the local AWS, as a subscription names it.
fn queue(cloud: &Cloud, name: &str) -> SinkQueue {
    let url = cloud.aws.queue_url(name);
    url.trim_start_matches("http://").parse().expect("a queue of this machine")
}

#[tokio::test]
async fn an_accepted_message_is_in_the_queue_with_its_id() {
    let cloud = Cloud::start().await;
    let sinks = SqsSinks(cloud.sqs.clone());
    let json = r#"{"id":"größe","data":"\u0001"}"#;
    assert_eq!(
        sinks.put_message(&queue(&cloud, "last-resort"), DELIVERY_NAMESPACE, json).await,
        Ok(())
    );
    let receive = cloud.sqs.receive_message().queue_url(cloud.aws.queue_url("last-resort"));
    let received = receive
        .message_attribute_names("All")
        .wait_time_seconds(5)
        .send()
        .await
        .expect("a receive");
    let message = &received.messages()[0];
    assert_eq!(message.body(), Some(json));
    let id = message
        .message_attributes()
        .and_then(|all| all.get(ID_ATTRIBUTE))
        .and_then(|of| of.string_value());
    assert_eq!(id, Some(DELIVERY_NAMESPACE.to_string().as_str()));
}

#[tokio::test]
async fn a_missing_queue_is_a_permanent_error_and_so_is_a_message_that_is_too_large() {
    let cloud = Cloud::start().await;
    let sinks = SqsSinks(cloud.sqs.clone());
    let large = "x".repeat(MESSAGE_MAX_BYTES);
    for (name, json) in [("nowhere", "{}"), ("last-resort", large.as_str())] {
        let refused = sinks.put_message(&queue(&cloud, name), DELIVERY_NAMESPACE, json).await;
        assert!(matches!(refused, Err(PutError::Permanent(_))), "{name}: {refused:?}");
    }
}

#[tokio::test]
async fn an_unreachable_queue_is_a_temporary_error() {
    let unreachable = crate::cloud::sqs_client("http://127.0.0.1:9");
    let queue = "127.0.0.1:9/000000000000/lost".parse().expect("a queue");
    let refused = SqsSinks(unreachable).put_message(&queue, DELIVERY_NAMESPACE, "{}").await;
    assert!(matches!(refused, Err(PutError::Unavailable(_))), "{refused:?}");
}
