//! Publishers that send no CloudEvents and cannot name a topic: SNS, EventBridge, S3.
//!
//! Tested twice: with their documented samples as messages on the events queue, and with the
//! services themselves, as far as they are emulated, configured by the examples of
//! `docs/guides/publish.md`. Either way the subscriber gets CloudEvents.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use cloudevents::AttributesReader as _;
use lastmile_tests::snippets::{self, Snippet};

use super::{ARRIVAL_LIMIT, Deployment, on_deployment};
use crate::subscriber::Arrival;

const PAGE: &str = "guides/publish.md";

/// The topic that the samples are published to.
pub(super) const SAMPLES_TOPIC: &str = "
apiVersion: lastmile.dev/v1
kind: Topic
metadata: {namespace: shop, name: samples}
spec:
  from:
    - snsTopic: arn:aws:sns:us-west-2:123456789012:MyTopic
    - eventSource: aws.ec2
    - bucket: amzn-s3-demo-bucket
";

/// The emulated AWS has one account.
const ACCOUNT: &str = "000000000000";

/// The Topic and Subscription of the page, for this account and subscriber.
pub(super) fn page_subscription(subscriber: SocketAddr) -> String {
    let yaml = snippets::under(PAGE, "Amazon SNS, EventBridge, S3").text;
    let (account, destination) = ("123456789012", "https://billing.example.com/");
    assert!(yaml.contains(account) && yaml.contains(destination));
    yaml.replace(account, ACCOUNT).replace(destination, &format!("http://{subscriber}/"))
}

/// Type, source and subject of what arrived; an independent library reads each event.
fn read(arrivals: &[Arrival]) -> BTreeMap<String, (String, Option<String>)> {
    let read = arrivals.iter().map(|arrival| {
        assert_eq!(arrival.content_type, "application/cloudevents+json; charset=utf-8");
        let event: cloudevents::Event =
            serde_json::from_slice(&arrival.body).expect("a CloudEvent");
        assert!(
            !event.id().is_empty() && event.time().is_some() && event.data().is_some(),
            "{event}"
        );
        (event.ty().to_owned(), (event.source().clone(), event.subject().map(ToOwned::to_owned)))
    });
    read.collect()
}

fn answered(arrivals: &[Arrival]) -> usize {
    arrivals.iter().filter(|arrival| arrival.answered == Some(200)).count()
}

#[test]
fn messages_of_sns_eventbridge_and_s3_arrive_as_cloud_events_also_after_a_retry() {
    on_deployment(|deployment| async move {
        for sample in [
            include_str!("../../fixtures/aws_envelopes/sns-notification.json"),
            include_str!("../../fixtures/aws_envelopes/eventbridge-state-change.json"),
            include_str!("../../fixtures/aws_envelopes/s3-object-created.json"),
        ] {
            deployment.stack.publish_without_a_topic(sample).await;
        }
        // The first request is refused, whichever it is.
        let arrivals = deployment
            .subscriber
            .arrived("/samples", ARRIVAL_LIMIT, |arrivals| answered(arrivals) == 3)
            .await;
        assert_eq!(arrivals.len(), 4);
        let some = |text: &str| Some(text.to_owned());
        let expected = [
            (
                "com.amazonaws.sns.Notification",
                "arn:aws:sns:us-west-2:123456789012:MyTopic:c7fe3a54-ab0e-4ec2-88e0-db410a0f2bee",
                some("Testing publish to subscribed queues"),
            ),
            (
                "EC2 Instance State-change Notification",
                "aws.ec2",
                some("arn:aws:ec2:us-west-1:123456789012:instance/i-1234567890abcdef0"),
            ),
            (
                "com.amazonaws.s3.ObjectCreated:Put",
                "aws:s3.us-west-2.amzn-s3-demo-bucket",
                some("HappyFace.jpg"),
            ),
        ];
        let expected =
            expected.map(|(kind, source, subject)| (kind.to_owned(), (source.to_owned(), subject)));
        assert_eq!(read(&arrivals), BTreeMap::from(expected));
        assert!(deployment.stack.dead_letters("shop/samples/").await.is_empty());
    });
}

#[test]
fn the_documented_examples_let_sns_eventbridge_and_s3_publish() {
    on_deployment(|deployment| async move {
        let Some(run) = publish_by_the_page(deployment).await else { return };
        let condition = |arrivals: &[Arrival]| {
            let kinds = read(arrivals);
            [
                "com.amazonaws.sns.Notification",
                "Order Created",
                "com.amazonaws.s3.ObjectCreated:Put",
            ]
            .iter()
            .all(|kind| kinds.contains_key(*kind))
        };
        let arrivals = deployment.subscriber.arrived("/aws", ARRIVAL_LIMIT, condition).await;
        let kinds = read(&arrivals);
        let source = &kinds["com.amazonaws.sns.Notification"].0;
        assert!(source.starts_with(&run.topic_arn), "{source}");
        assert_eq!(kinds["com.amazonaws.sns.Notification"].1.as_deref(), Some("An order"));
        assert_eq!(
            kinds["Order Created"],
            ("com.example.shop".to_owned(), Some("arn:aws:shop:::order/7".to_owned()))
        );
        let (source, key) = &kinds["com.amazonaws.s3.ObjectCreated:Put"];
        assert_eq!(source, "aws:s3.us-east-1.shop-uploads");
        assert!(key.as_deref().is_some_and(|key| key.starts_with("order")), "{key:?}");
        assert!(deployment.stack.dead_letters("shop/aws/").await.is_empty());
    });
}

struct Published {
    topic_arn: String,
}

/// Runs the page's examples one by one; `None` if this machine lacks their tool.
async fn publish_by_the_page(deployment: &Deployment) -> Option<Published> {
    let (queue_url, queue_arn) = deployment.stack.events_queue().await;
    let topic_arn = format!("arn:aws:sns:us-east-1:{ACCOUNT}:shop-orders");
    let prepare =
        "aws sns create-topic --name shop-orders\naws s3api create-bucket --bucket shop-uploads\n";
    let prepare = Snippet {
        heading: "SNS and S3".to_owned(),
        language: "sh".to_owned(),
        text: prepare.to_owned(),
    };
    let examples = ["SNS", "EventBridge", "S3"].map(|heading| snippets::under(PAGE, heading));
    let endpoint = deployment.stack.endpoint.clone();
    let (topic, all) =
        (topic_arn.clone(), [prepare].into_iter().chain(examples).collect::<Vec<_>>());
    let run = tokio::task::spawn_blocking(move || {
        let environment = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("EVENTS_QUEUE_URL", &queue_url),
            ("EVENTS_QUEUE_ARN", &queue_arn),
            ("SNS_TOPIC_ARN", &topic),
        ];
        all.iter().all(|snippet| snippet.run(&environment))
    });
    run.await.expect("the examples run").then_some(Published { topic_arn })
}
