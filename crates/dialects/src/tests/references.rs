use delivery::native::documents;
use delivery::subscription::Subscription;
use serde_json::Value;

use super::support::{read_one, shown};
use crate::Reading;

const TOPIC: &str = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: n, name: t}\n";
const SUBSCRIPTION: &str = "---\napiVersion: lastmile.dev/v1\nkind: Subscription\n\
                            metadata: {namespace: n, topic: t, name: s}\n";
const ENTRIES: &str = "---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  \
                       crm: {url: 'https://crm.example.com/in', maxPerSecond: 20, maxConcurrency: 5}\n  \
                       letters: s3://letters/shop\n  'https://f.example.com/': 'https://f.example.com/?code=hush'\n";

fn read_text(text: &str) -> Reading {
    let reading = read_one(text);
    assert!(reading.clone().into_result().is_ok(), "{:?}", reading.findings);
    reading
}

fn only(reading: &Reading) -> &Subscription {
    reading.catalogue.subscriptions().next().expect("one")
}

/// The subscription of a Topic and a Subscription with these fields, and the same after it was
/// converted and read beside entries that have changed.
fn subscriptions(topic: &str, spec: &str) -> [Subscription; 2] {
    let text = format!("{TOPIC}spec: {{{topic}}}\n{SUBSCRIPTION}spec: {{{spec}}}\n{ENTRIES}");
    let reading = read_text(&text);
    let converted: Vec<String> =
        documents(&reading.catalogue).iter().map(Value::to_string).collect();
    let entries =
        ENTRIES.replace("crm.example.com", "new.example.com").replace("//letters", "//moved");
    let again = read_text(&format!("{}\n{entries}", converted.join("\n---\n")));
    [only(&reading).clone(), only(&again).clone()]
}

#[test]
fn an_address_that_was_resolved_is_resolved_again_where_its_key_is_mapped() {
    let [first, again] =
        subscriptions("", "destination: {url: crm}, reply: crm, deadLetter: {sink: letters}");
    let sink = |subscription: &Subscription| format!("{:?}", subscription.dead_letter.sink);
    assert_eq!(first.destination.url.as_str(), "https://crm.example.com/in");
    assert_eq!(again.destination.url.as_str(), "https://new.example.com/in");
    assert!(sink(&first).contains("letters") && sink(&again).contains("moved"));
    for subscription in [&first, &again] {
        let keys = [
            &subscription.destination.reference,
            &subscription.dead_letter.reference,
            &subscription.reply_reference,
        ];
        let keys = keys.map(|key| key.clone().unwrap_or_default());
        assert_eq!(keys, ["crm", "letters", "crm"]);
    }
}

#[test]
fn a_key_belongs_to_the_address_of_the_same_document() {
    let topic = "delivery: {deadLetter: {sink: letters}}";
    for (own, key) in [
        ("", Some("letters")),
        (", deadLetter: {sink: s3://other}", None),
        (", deadLetter: {sink: {topic: n/t}}", None),
        (", deadLetter: {hidePath: true}", Some("letters")),
    ] {
        let [first, again] =
            subscriptions(topic, &format!("destination: {{url: 'https://h/'}}{own}"));
        assert_eq!(first.dead_letter.reference.as_deref(), key, "{own}");
        assert_eq!(again.dead_letter.reference.as_deref(), key, "{own}");
        let is_kept = first.dead_letter.sink == again.dead_letter.sink;
        assert_eq!(is_kept, key.is_none(), "{own}");
    }
}

#[test]
fn a_key_that_is_an_address_is_not_stored_since_it_may_hold_credentials() {
    let [first, again] = subscriptions("", "destination: {url: 'https://f.example.com/'}");
    for subscription in [first, again] {
        assert_eq!(subscription.destination.url.as_str(), "https://f.example.com/?code=hush");
        assert_eq!(subscription.destination.reference, None);
    }
}

#[test]
fn a_key_without_its_address_is_a_warning() {
    let text = format!(
        "{TOPIC}{SUBSCRIPTION}spec: {{destination: {{url: 'https://h/'}}, deadLetter: {{reference: letters}}}}\n"
    );
    let reading = read_text(&text);
    let found = shown(&reading);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("deadLetter.reference: no effect without sink"), "{found:?}");
}

#[test]
fn limits_of_an_entry_hold_for_whoever_names_it_unless_the_subscription_states_its_own() {
    let topic = "delivery: {destination: {maxPerSecond: 7}}";
    for (own, per_second, most) in
        [("", 20, 5), (", maxPerSecond: 3", 3, 5), (", maxConcurrency: 9", 20, 9)]
    {
        let [first, _] = subscriptions(topic, &format!("destination: {{url: crm{own}}}"));
        let found = (first.destination.max_per_second, first.destination.max_concurrency.most);
        assert_eq!(found, (Some(per_second), most), "{own}");
    }
    let [other, _] = subscriptions(topic, "destination: {url: 'https://h/'}");
    assert_eq!(other.destination.max_per_second, Some(7));
}

#[test]
fn what_refers_to_an_entry_without_a_usable_address_is_left_out() {
    let entries = "---\napiVersion: lastmile.dev/v1\nkind: Destinations\nspec: {bad: 'ftp://h/'}\n";
    for (topic, spec) in [
        ("", "destination: {url: bad}"),
        ("delivery: {deadLetter: {sink: bad}}", "destination: {url: 'https://h/'}"),
    ] {
        let text = format!("{TOPIC}spec: {{{topic}}}\n{SUBSCRIPTION}spec: {{{spec}}}\n{entries}");
        let reading = read_one(&text);
        assert_eq!(reading.catalogue.subscriptions().count(), 0, "{text}");
        assert_eq!(reading.left_out.len(), 1, "{text}");
    }
}
