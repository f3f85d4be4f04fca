//! Topics are read when needed, and changes applied while dispatch runs are found.

use crate::app_fixture::AppFixture;
use crate::reactions::answers;
use crate::{CLOUD_EVENT, subscription};

#[tokio::test]
async fn a_dead_letter_goes_to_the_topic_of_another_namespace() {
    let refused = subscription("refused", "/in", "  deadLetter: {sink: {topic: other/lost}}");
    let notified = subscription("told", "/lost", "").replace("namespace: shop", "namespace: other");
    let notified = notified.replace("topic: orders", "topic: lost");
    let app = AppFixture::with_reactions(&[refused, notified], |_, request| {
        answers(if request.path == "/in" { 400 } else { 200 })
    })
    .await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    let received = app.received(2).await;
    assert_eq!(received[1].path, "/lost");
    assert_eq!(app.dead_letters_when_idle().await.len(), 0);
}

#[tokio::test]
async fn a_topic_that_is_applied_while_dispatch_runs_is_found_before_its_events_become_dead_letters()
 {
    let first = subscription("billing", "/in", "");
    let new = first.replace("topic: orders", "topic: new");
    let app = AppFixture::with_reactions(&[first], |_, _| answers(200)).await;
    app.publish("shop/orders", CLOUD_EVENT).await;
    app.received(1).await;
    app.apply(&[new]).await;
    app.publish("shop/new", CLOUD_EVENT).await;
    app.received(2).await;
    app.publish("shop/nowhere", CLOUD_EVENT).await;
    let letters = app.dead_letters(1).await;
    assert_eq!(letters[0].1["deadletterProperties"]["deadletterreasoncode"], "TopicNotFound");
}

#[tokio::test]
async fn a_secret_reaches_no_host_that_the_policy_does_not_list_and_one_that_it_lists_later() {
    let policy = |host: &str| {
        format!(
            "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {{secrets: [{{name: 'env:HOME', hosts: [{host}]}}]}}\n"
        )
    };
    let sending = |name: &str| {
        subscription(name, "/in", "  retry: {maxAttempts: 1}")
            .replace("/in\"", "/in\", headers: [{name: x-token, secret: 'env:HOME'}]")
            .replace("topic: orders", &format!("topic: {name}"))
    };
    // The policy is applied separately, because files with both would be refused.
    let app = AppFixture::with_reactions(&[sending("first")], |_, _| answers(200)).await;
    app.apply(&[policy("elsewhere.example.com")]).await;
    app.publish("shop/first", CLOUD_EVENT).await;
    let letters = app.dead_letters(1).await;
    let letter = letters[0].1.to_string();
    assert!(letter.contains(r#"may not be sent to \"127.0.0.1\""#), "{letter}");
    assert!(!letter.contains(&std::env::var("HOME").expect("a variable")), "{letter}");

    app.apply(&[policy("127.0.0.1")]).await;
    // A missing topic causes a read of the newest settings.
    app.publish("shop/nowhere", CLOUD_EVENT).await;
    app.dead_letters(2).await;
    app.publish("shop/first", CLOUD_EVENT).await;
    let received = app.received(1).await;
    assert_eq!(received[0].headers["x-token"], std::env::var("HOME").expect("a variable"));
}
