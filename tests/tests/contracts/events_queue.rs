//! `PublishEvents`: an accepted message is in the events queue with its topic. Only an error in the
//! message itself is permanent.

use adapters::events_queue::EventsQueue;
use delivery::ports::{PublishEvents as _, PublishingError};
use delivery::subscription::name::TopicName;
use lastmile_tests::scripted::{Scripted, ScriptedRequest, Step};

use crate::cloud::{Cloud, sqs_client};
use crate::scripted_sqs::call_error;

const EVENT: &str = r#"{"id":"größe", "data":"\u0001"}"#;

fn topic() -> TopicName {
    "shop/größen".parse().expect("a topic")
}

#[tokio::test]
async fn an_accepted_message_is_in_the_queue_with_its_topic_and_nothing_else() {
    let cloud = Cloud::start().await;
    let url = cloud.aws.queue_url("events");
    let queue = EventsQueue::new(cloud.sqs.clone(), url.clone());
    assert_eq!(queue.url(), url);
    let id = queue.publish(&topic(), EVENT).await;
    let receive = cloud.sqs.receive_message().queue_url(url).message_attribute_names("All");
    let received = receive.wait_time_seconds(5).send().await.expect("a receive");
    let message = &received.messages()[0];
    assert_eq!((id.as_deref().ok(), message.body()), (message.message_id(), Some(EVENT)));
    let attributes = message.message_attributes().expect("it has attributes");
    assert_eq!(attributes.len(), 1);
    assert_eq!(attributes["topic"].string_value(), Some("shop/größen"));
}

/// The result of publishing a message if SQS answers with this step.
async fn published(step: Step) -> Result<String, PublishingError> {
    let script = move |_: &ScriptedRequest| vec![step.clone()];
    let server = Scripted::start(script).await.expect("a free port");
    let url = format!("{}/000000000000/events", server.endpoint());
    EventsQueue::new(sqs_client(&server.endpoint()), url).publish(&topic(), EVENT).await
}

#[tokio::test]
async fn what_may_pass_is_not_refused_for_good() {
    for (status, code, for_good) in [
        ("400 Bad Request", "InvalidMessageContents", true),
        ("400 Bad Request", "InvalidParameterValue", true),
        ("400 Bad Request", "RequestThrottled", false),
        ("400 Bad Request", "KmsThrottled", false),
        ("400 Bad Request", "KmsAccessDenied", false),
        ("400 Bad Request", "QueueDoesNotExist", false),
        ("400 Bad Request", "AccessDeniedException", false),
        ("500 Internal Server Error", "InternalError", false),
        ("503 Service Unavailable", "ServiceUnavailable", false),
    ] {
        let error = published(call_error(status, code, None)).await.expect_err(code);
        assert_eq!(matches!(error, PublishingError::Refused(_)), for_good, "{code}: {error}");
        assert!(error.to_string().contains("as scripted"), "{code}: {error}");
    }
    let broken = published(Step::Reset).await;
    assert!(matches!(broken, Err(PublishingError::Unavailable(_))), "{broken:?}");
}
