use delivery::native::mismatches;
use delivery::subscription::catalogue::{Catalogue, Topic};

use super::support::{native_subscription, native_topic, read_one};

/// The findings about documents of several owners, each read without the others.
fn found(owners: &[&str]) -> Vec<String> {
    let mut catalogue = Catalogue::default();
    let all = owners.iter().map(|text| read_one(text).catalogue);
    let all: Vec<Catalogue> = all.collect();
    all.iter().flat_map(Catalogue::topics).for_each(|topic| {
        // One that is only named must not replace one that is described.
        if catalogue.topic(&topic.name).is_none() || *topic != Topic::new(topic.name.clone()) {
            catalogue.add_topic(topic.clone());
        }
    });
    let subscriptions = all.iter().flat_map(Catalogue::subscriptions);
    subscriptions.for_each(|subscription| catalogue.add_subscription((**subscription).clone()));
    let findings = mismatches(&catalogue, |subscription| subscription.name.to_string());
    findings.iter().map(ToString::to_string).collect()
}

fn subscription(topic: &str, spec: &str) -> String {
    let destination = "destination: {url: 'https://example.com/', schema: cloudevents-structured}";
    native_subscription(&format!("n/{topic}/s"), &format!("{destination}{spec}"))
}

#[test]
fn a_subscription_has_to_suit_the_topic_that_another_owner_describes() {
    let (batched, opaque) =
        (subscription("t", ", batch: {maxEvents: 10}"), native_topic("n/t", "input: opaque"));
    assert_eq!(found(&[&batched]), [""; 0]);
    let findings = found(&[&batched, &opaque]);
    assert_eq!(findings.len(), 2, "{findings:?}");
    for (finding, part) in findings.iter().zip([
        "n/t/s:1:1: error: schema: the topic n/t has input opaque",
        "n/t/s:1:1: warning: batch: no effect: the topic n/t has input opaque",
    ]) {
        assert!(finding.starts_with(part), "{finding}");
    }
}

#[test]
fn dead_letters_need_a_way_to_their_topic() {
    let sink =
        subscription("t", ", deadLetter: {sink: {topic: n/lost}}") + &native_topic("n/lost", "");
    let warned = "n/t/s:1:1: warning: deadLetter.sink: n/lost has no subscription: dead letters go to the default container";
    assert_eq!(found(&[&sink]), [warned]);
    assert_eq!(found(&[&sink, &subscription("lost", "")]), [""; 0]);
    let mut catalogue = Catalogue::default();
    let reading = read_one(&sink).catalogue;
    reading
        .subscriptions()
        .for_each(|subscription| catalogue.add_subscription((**subscription).clone()));
    let findings = mismatches(&catalogue, |subscription| subscription.name.to_string());
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings, ["n/t/s:1:1: error: deadLetter.sink: there is no topic n/lost"]);
}
