//! `PutMessage`: what was accepted is in the queue; a missing queue is a permanent error.

use adapters::sinks::{ID_ATTRIBUTE, SqsSinks};
use delivery::delivery::DELIVERY_NAMESPACE;
use delivery::ports::{MESSAGE_MAX_BYTES, PutError, PutMessage as _, QueueName};
use delivery::subscription::sink::SinkQueue;
use lastmile_tests::scripted::Scripted;

use crate::cloud::{Cloud, sqs_client};
use crate::scripted_sqs::call_error;

/// A queue of the local AWS, as a subscription names it.
fn queue(cloud: &Cloud, name: &str) -> SinkQueue {
    let url = cloud.aws.queue_url(name);
    url.trim_start_matches("http://").parse().expect("a queue of this machine")
}

#[tokio::test]
async fn an_accepted_message_is_in_the_queue_with_its_id() {
    let cloud = Cloud::start().await;
    let sinks = SqsSinks::new(cloud.sqs.clone(), &[]);
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
        .and_then(|attribute| attribute.string_value());
    assert_eq!(id, Some(DELIVERY_NAMESPACE.to_string().as_str()));
}

#[tokio::test]
async fn a_missing_queue_is_a_permanent_error_and_so_is_a_message_that_is_too_large() {
    let cloud = Cloud::start().await;
    let sinks = SqsSinks::new(cloud.sqs.clone(), &[]);
    let large = "x".repeat(MESSAGE_MAX_BYTES);
    for (name, json) in [("nowhere", "{}"), ("last-resort", large.as_str())] {
        let refused = sinks.put_message(&queue(&cloud, name), DELIVERY_NAMESPACE, json).await;
        assert!(matches!(refused, Err(PutError::Permanent(_))), "{name}: {refused:?}");
    }
}

#[tokio::test]
async fn a_queue_of_the_deployment_takes_no_dead_letter() {
    let cloud = Cloud::start().await;
    let own = [(QueueName::LastResort, cloud.aws.queue_url("last-resort"))];
    let sinks = SqsSinks::new(cloud.sqs.clone(), &own);
    let refused = sinks.put_message(&queue(&cloud, "last-resort"), DELIVERY_NAMESPACE, "{}").await;
    let Err(PutError::Permanent(why)) = refused else { panic!("{refused:?}") };
    assert!(why.ends_with("is a queue of this deployment: use another queue"), "{why}");
}

#[tokio::test]
async fn the_largest_message_that_a_queue_takes_is_accepted_and_no_larger_one() {
    let cloud = Cloud::start().await;
    let (sinks, queue) = (SqsSinks::new(cloud.sqs.clone(), &[]), queue(&cloud, "last-resort"));
    // Name, type and value of its attribute count as well.
    let room = MESSAGE_MAX_BYTES - ID_ATTRIBUTE.len() - "String".len() - 36;
    let largest = "x".repeat(room);
    assert_eq!(sinks.put_message(&queue, DELIVERY_NAMESPACE, &largest).await, Ok(()));
    let larger = sinks.put_message(&queue, DELIVERY_NAMESPACE, &format!("{largest}x")).await;
    let refused = format!("the message has {} bytes, which is more than a queue accepts", room + 1);
    assert_eq!(larger, Err(PutError::Permanent(refused)));
}

#[tokio::test]
async fn what_a_queue_answers_is_quoted_and_says_whether_it_is_for_good() {
    const REFUSED: &str = "400 Bad Request";
    // The older name of a code is in a header, which some emulators leave out.
    for (status, code, older, for_good) in [
        (REFUSED, "QueueDoesNotExist", Some("AWS.SimpleQueueService.NonExistentQueue"), true),
        (REFUSED, "QueueDoesNotExist", None, true),
        (REFUSED, "InvalidMessageContents", None, true),
        (REFUSED, "InvalidAddress", None, true),
        (
            REFUSED,
            "UnsupportedOperation",
            Some("AWS.SimpleQueueService.UnsupportedOperation"),
            true,
        ),
        (REFUSED, "UnsupportedOperation", None, true),
        (REFUSED, "KmsAccessDenied", Some("KMS.AccessDeniedException"), true),
        (REFUSED, "KmsAccessDenied", None, true),
        (REFUSED, "KmsDisabled", Some("KMS.DisabledException"), true),
        (REFUSED, "KmsDisabled", None, true),
        (REFUSED, "KmsNotFound", Some("KMS.NotFoundException"), true),
        (REFUSED, "KmsNotFound", None, true),
        (REFUSED, "AccessDeniedException", Some("AccessDenied"), true),
        (REFUSED, "AccessDeniedException", None, true),
        (REFUSED, "InvalidParameterValueException", Some("InvalidParameterValue"), true),
        (REFUSED, "InvalidParameterValueException", None, true),
        // A key store that cannot be reached, or a key that is being made.
        (REFUSED, "KmsInvalidState", Some("KMS.InvalidStateException"), false),
        (REFUSED, "KmsInvalidState", None, false),
        (REFUSED, "KmsThrottled", Some("KMS.ThrottlingException"), false),
        (REFUSED, "RequestThrottled", None, false),
        (REFUSED, "SomethingElse", None, false),
        ("500 Internal Server Error", "InternalError", None, false),
        ("503 Service Unavailable", "ServiceUnavailable", None, false),
    ] {
        let step = call_error(status, code, older);
        let server = Scripted::start(move |_| vec![step.clone()]).await.expect("a free port");
        let queue = format!("127.0.0.1:{}/000000000000/sink", server.port());
        let sinks = SqsSinks::new(sqs_client(&server.endpoint()), &[]);
        let queue = queue.parse().expect("a queue");
        let refused = sinks.put_message(&queue, DELIVERY_NAMESPACE, "{}").await;
        let said = format!("{}: as scripted", older.unwrap_or(code));
        let error = if for_good { PutError::Permanent(said) } else { PutError::Unavailable(said) };
        assert_eq!(refused, Err(error), "{code}");
    }
}

#[tokio::test]
async fn an_unreachable_queue_is_a_temporary_error() {
    let unreachable = sqs_client("http://127.0.0.1:9");
    let queue = "127.0.0.1:9/000000000000/lost".parse().expect("a queue");
    let refused =
        SqsSinks::new(unreachable, &[]).put_message(&queue, DELIVERY_NAMESPACE, "{}").await;
    assert!(matches!(refused, Err(PutError::Unavailable(_))), "{refused:?}");
}
