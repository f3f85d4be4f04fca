//! Changes that race: each was planned before the other one was made.

use std::path::Path;

use dialects::{Reading, Source};

use super::*;
use crate::operations::change_record::ChangeRecord;

const OLD: &str = "https://old.test/";

fn mapped(address: &str) -> Reading {
    let text =
        format!("apiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {{crm: '{address}'}}\n");
    dialects::read(&[Source { name: "f", text: &text }])
}

async fn topics(folder: &Path) -> Topics {
    Topics::at(&Location::Folder(folder.to_owned())).await
}

async fn plan<'t>(topics: &'t Topics, owner: &'t str, reading: &Reading) -> Plan<'t> {
    let beside = topics.beside().await.expect("objects");
    Plan::prepare(topics, beside, owner, reading, false).await.expect("a plan")
}

async fn make(plan: &Plan<'_>) -> anyhow::Result<()> {
    plan.make(&ChangeRecord::default(), |_, _| Ok(())).await
}

/// The address that an owner maps the reference to.
async fn mapping(topics: &Topics, owner: &str) -> Option<String> {
    let beside = topics.beside().await.expect("objects");
    beside.addresses(Some(owner)).destinations.remove("crm")
}

#[tokio::test]
async fn of_two_owners_that_map_a_reference_at_once_the_second_one_sees_the_conflict() {
    let folder = tempfile::tempdir().expect("a folder");
    let topics = topics(folder.path()).await;
    let (first, second) = (mapped(OLD), mapped("https://new.test/"));
    let plans = [plan(&topics, "one", &first).await, plan(&topics, "two", &second).await];
    make(&plans[0]).await.expect("the first is made");
    let problem = make(&plans[1]).await.expect_err("a conflict").to_string();
    assert!(
        problem.contains("crm is mapped by \"one\" to a different address than in these files"),
        "{problem}"
    );
    assert_eq!(mapping(&topics, "one").await.as_deref(), Some(OLD));
    assert_eq!(mapping(&topics, "two").await, None);
}

#[tokio::test]
async fn of_two_owners_that_write_a_reference_at_once_not_both_succeed() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().expect("a folder");
        let topics = topics(folder.path()).await;
        let (first, second) = (mapped(OLD), mapped("https://new.test/"));
        let plans = [plan(&topics, "one", &first).await, plan(&topics, "two", &second).await];
        let made = futures::join!(make(&plans[0]), make(&plans[1]));
        let made = [made.0.is_ok(), made.1.is_ok()];
        assert_ne!(made, [true, true]);
        for (owner, is_made) in ["one", "two"].into_iter().zip(made) {
            assert_eq!(mapping(&topics, owner).await.is_some(), is_made, "{owner}");
        }
    }
}

#[tokio::test]
async fn of_two_runs_of_one_owner_the_second_one_sees_the_conflict() {
    let folder = tempfile::tempdir().expect("a folder");
    let topics = topics(folder.path()).await;
    make(&plan(&topics, "one", &mapped(OLD)).await).await.expect("it is made");
    let (first, second) = (mapped("https://first.test/"), mapped("https://second.test/"));
    let plans = [plan(&topics, "one", &first).await, plan(&topics, "one", &second).await];
    make(&plans[0]).await.expect("the first is made");
    let problem = make(&plans[1]).await.expect_err("a conflict").to_string();
    assert!(problem.contains("the mapping of crm has changed meanwhile"), "{problem}");
    assert_eq!(mapping(&topics, "one").await.as_deref(), Some("https://first.test/"));
    // An address that is there already is no conflict.
    make(&plans[0]).await.expect("it is there");
}

#[tokio::test]
async fn an_address_that_a_killed_run_did_not_write_into_a_subscription_is_written_by_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let topics = topics(folder.path()).await;
    make(&plan(&topics, "one", &mapped("https://new.test/")).await).await.expect("it is made");
    let name: TopicName = "shop/orders".parse().expect("a name");
    let entry =
        r#"{"owner":"two","spec":{"destination":{"reference":"crm","url":"https://old.test/"}}}"#;
    let text = format!(r#"{{"v":1,"subscriptions":{{"a":{entry}}}}}"#);
    let key = topics.objects.key_of(&name);
    topics.objects.storage().put(&key, text.into_bytes()).await.expect("a put");

    make(&plan(&topics, "one", &mapped("https://new.test/")).await).await.expect("it is made");
    let after = topics.current(&name).await.expect("an object").object.expect("a topic");
    assert_eq!(after.subscriptions["a"], entry.replace("old.test", "new.test"));
}

/// Files with a subscription that uses the reference.
fn uses_reference(topic: &str) -> Reading {
    let text = format!(
        "apiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {{crm: '{OLD}'}}\n---\n\
         apiVersion: lastmile.dev/v1\nkind: Subscription\n\
         metadata: {{namespace: shop, topic: {topic}, name: a}}\nspec: {{destination: {{url: crm}}}}\n"
    );
    dialects::read(&[Source { name: "f", text: &text }])
}

#[tokio::test]
async fn a_topic_that_is_added_before_a_new_address_is_written_gets_that_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let topics = topics(folder.path()).await;
    make(&plan(&topics, "one", &uses_reference("known")).await).await.expect("it is made");
    let new_address = mapped("https://new.test/");
    let planned = plan(&topics, "one", &new_address).await;
    make(&plan(&topics, "one", &uses_reference("added")).await).await.expect("it is made");
    make(&planned).await.expect("it is made");
    for topic in ["shop/known", "shop/added"] {
        let name = topic.parse().expect("a name");
        let object = topics.current(&name).await.expect("an object").object.expect("a topic");
        assert!(object.subscriptions["a"].contains("https://new.test/"), "{object:?}");
    }
}

#[tokio::test]
async fn what_others_put_into_a_topic_after_it_was_planned_stays() {
    let subscription = |topic: &str, name: &str| {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
             metadata: {{namespace: shop, topic: {topic}, name: {name}}}\nspec: {{destination: {{url: '{OLD}'}}}}\n"
        );
        dialects::read(&[Source { name: "f", text: &text }])
    };
    for is_there in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let topics = topics(folder.path()).await;
        if is_there {
            make(&plan(&topics, "zero", &subscription("orders", "z")).await).await.expect("made");
        }
        let planned = subscription("orders", "a");
        let planned = plan(&topics, "one", &planned).await;
        make(&plan(&topics, "two", &subscription("orders", "b")).await).await.expect("it is made");
        make(&planned).await.expect("it is made");
        let name = "shop/orders".parse().expect("a name");
        let object = topics.current(&name).await.expect("an object").object.expect("a topic");
        let names: Vec<&str> = object.subscriptions.keys().map(String::as_str).collect();
        assert_eq!(names, if is_there { vec!["a", "b", "z"] } else { vec!["a", "b"] });
    }
}

#[tokio::test]
async fn a_topic_that_somebody_changed_since_it_was_shown_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let topics = topics(folder.path()).await;
    let name: TopicName = "shop/orders".parse().expect("a name");
    let key = topics.objects.key_of(&name);
    let put = async |text: &str| topics.objects.storage().put(&key, text.into()).await;
    let replace = async |shown: Option<String>| {
        let change = Change::Replace { earlier: None, shown };
        topics.change(&name, "", &change, &ChangeRecord::default(), None).await
    };
    for (before, after) in [
        (r#"{"v":1,"subscriptions":{}}"#, r#"{"v":1,"subscriptions":{"a":{}}}"#),
        ("damaged", "damaged again"),
    ] {
        put(before).await.expect("a put");
        let shown = topics.unusable(&name).await.expect("an object").etag;
        put(after).await.expect("a put");
        let problem = replace(shown).await.expect_err("somebody changed it").to_string();
        assert!(problem.contains("another user changed it meanwhile"), "{problem}");
        let stored = topics.objects.storage().get(&key).await.expect("an answer");
        assert_eq!(stored.as_deref(), Some(after.as_bytes()));
        let shown = topics.unusable(&name).await.expect("an object").etag;
        assert!(matches!(replace(shown).await, Ok(Changed::Written(_))));
    }
}
