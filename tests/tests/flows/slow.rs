//! Subscribers that respond too late, or never.

use std::time::Duration;

use adapters::machine::Machine;
use delivery::ports::Clock as _;

use crate::CLOUD_EVENT;
use crate::app_fixture::AppFixture;
use crate::reactions::answers;

/// The delay of a response that no test waits for.
const NEVER: Duration = Duration::from_secs(3_600);

fn subscription(name: &str, destination: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec:\n  destination: {{url: \"http://127.0.0.1:PORT/{name}\", {destination}}}\n  \
         retry: {{schedule: {{kind: constant, delay: PT10M}}}}\n"
    )
}

#[tokio::test]
async fn a_late_success_within_the_window_ends_the_delivery_without_a_second_request() {
    let late = subscription("billing", "timeout: PT1S, lateResponseWindow: PT2M");
    let app =
        AppFixture::with_reactions(&[late], |_, _| answers(200).after(Duration::from_secs(6)))
            .await;
    let began_ms = Machine.now_ms();
    app.publish("shop/orders", CLOUD_EVENT).await;
    app.received(1).await;
    // No message waits, and no dead letter was written, long before the window ends.
    assert_eq!(app.dead_letters_when_idle().await, []);
    assert!(Machine.now_ms() - began_ms > 5_000, "it waited for the response");
    assert_eq!(app.received(1).await.len(), 1);
}

#[tokio::test]
async fn without_a_window_the_same_success_is_too_late() {
    let app = AppFixture::with_reactions(&[subscription("billing", "timeout: PT1S")], |_, _| {
        answers(200).after(Duration::from_secs(20))
    })
    .await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    app.received(1).await;
    assert_eq!(app.stack.stop().await.expect("it stops"), [("retry".to_owned(), 1)]);
}

#[tokio::test]
async fn one_endpoint_that_hangs_does_not_delay_nine_others() {
    const EVENTS: usize = 100;
    let subscriptions: Vec<String> =
        (0..10).map(|n| subscription(&format!("s{n}"), "timeout: PT90S")).collect();
    let app = AppFixture::with_reactions(&subscriptions, |_, request| {
        if request.path == "/s3" { answers(200).after(NEVER) } else { answers(200) }
    })
    .await;
    let began_ms = Machine.now_ms();
    for _ in 0..EVENTS / 20 {
        app.publish_all("shop/orders", &vec![CLOUD_EVENT.to_owned(); 10]).await;
    }
    for _ in 0..EVENTS / 2 {
        app.publish("shop/orders", CLOUD_EVENT).await;
    }
    let others = async {
        loop {
            let received = app.received(0).await;
            if received.iter().filter(|request| request.path != "/s3").count() >= EVENTS * 9 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), others)
        .await
        .expect("the others receive everything before the one that hangs times out");
    println!("nine endpoints had {EVENTS} events each after {} ms", Machine.now_ms() - began_ms);
}
