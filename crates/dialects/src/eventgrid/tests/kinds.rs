//! Differences between kinds of resources, and different spellings of one value.

use super::{loaded, push, read_files, shown, webhook};
use crate::tests::support::names;
use delivery::subscription::sink::{Container, Sink};
use delivery::time::duration::DAY_MS;

const ACCOUNT: &str = "/subscriptions/s/resourceGroups/a-group-with-a-long-name/providers/Microsoft.Storage/storageAccounts/acc";

/// A resource with dead letters in the container with these properties.
fn letters(properties: &str) -> String {
    let dead_letter = format!(
        ", deadLetterDestination: {{endpointType: StorageBlob, properties: {{{properties}}}}}"
    );
    webhook(&dead_letter, "")
}

fn mapped(address: &str) -> String {
    format!(
        "{{apiVersion: lastmile.dev/v1, kind: Destinations, spec: \
         {{{ACCOUNT}/blobServices/default/containers/letters: '{address}'}}}}"
    )
}

#[test]
fn a_namespace_has_its_ranges_also_in_the_retry_policy_of_other_resources() {
    let id = "/subscriptions/0/resourceGroups/g/providers/Microsoft.EventGrid/namespaces/n/topics/t/eventSubscriptions/s";
    let of_id = webhook("", "").replace(super::ID, id);
    let stated = webhook("", ", lastmile: {dialect: eventgrid-namespace}");
    for resource in [of_id, stated] {
        let with = |attempts: u32, minutes: u32| {
            let policy = format!(
                "retryPolicy: {{maxDeliveryAttempts: {attempts}, eventTimeToLiveInMinutes: {minutes}}}"
            );
            resource.replace("properties: {dest", &format!("properties: {{{policy}, dest"))
        };
        let (subscription, findings) = loaded(&[&with(10, 10_080)]);
        assert_eq!(findings, Vec::<String>::new());
        assert_eq!(
            (subscription.retry.max_attempts, subscription.retry.time_to_live_ms),
            (10, Some(7 * DAY_MS))
        );
        let found = shown(&read_files(&[&with(11, 10_081)]));
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(found[0].contains("must be 1 to 10, but is 11"), "{found:#?}");
        assert!(found[1].contains("must be 1 to 10080, but is 10081"), "{found:#?}");
    }
}

#[test]
fn a_container_is_one_sink_in_every_spelling_and_case() {
    let full = format!("resourceId: {ACCOUNT}/blobServices/default/containers/letters");
    let queue = "sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost";
    for (address, sink) in [
        ("https://h/in?x=y", Sink::Address("https://h/in?x=y".parse().unwrap())),
        (queue, Sink::Queue(queue.trim_start_matches("sqs://").parse().unwrap())),
    ] {
        let (subscription, findings) = loaded(&[&letters(&full), &mapped(address)]);
        assert_eq!((&subscription.dead_letter.sink, findings), (&sink, Vec::new()));
    }
    for properties in [
        full.clone(),
        format!("resourceId: {ACCOUNT}, blobContainerName: letters"),
        format!("{full}, blobContainerName: letters"),
        format!("{full}/, blobContainerName: Letters"),
        format!("resourceId: {}, blobContainerName: letters", ACCOUNT.to_ascii_uppercase()),
        full.replace("resourceGroups", "resourcegroups"),
    ] {
        let (subscription, findings) = loaded(&[&letters(&properties), &mapped("s3://here")]);
        assert_eq!(findings, Vec::<String>::new(), "{properties}");
        let container = Container { bucket: "here".to_owned(), prefix: String::new() };
        assert_eq!(subscription.dead_letter.sink, Sink::Container(container), "{properties}");
    }
    let (_, findings) =
        loaded(&[&letters(&format!("{full}, blobContainerName: other")), &mapped("s3://here")]);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0].contains("blobContainerName: no effect: resourceId names another container"),
        "{findings:?}"
    );
}

#[test]
fn case_counts_in_keys_that_are_no_ids_and_an_id_is_defined_once() {
    let hub = "{name: n, lastmile: {topic: a/b}, properties: {destination: {endpointType: EventHub, properties: {resourceId: /Hub}}}}";
    let keys = |keys: &str| {
        format!("{{apiVersion: lastmile.dev/v1, kind: Destinations, spec: {{{keys}}}}}")
    };
    let found = shown(&read_files(&[hub, &keys("/hub: 'http://h/'")]));
    assert!(
        found.len() == 1 && found[0].contains("needs an address in a Destinations document"),
        "{found:?}"
    );
    let found = shown(&read_files(&[&keys(
        "/subscriptions/a: 'http://h/', /Subscriptions/A: 'http://h/'",
    )]));
    assert!(
        found.len() == 1 && found[0].contains("/Subscriptions/A is defined twice"),
        "{found:?}"
    );
}

#[test]
fn a_container_that_nobody_maps_is_a_warning_and_the_default_container() {
    let text = letters(&format!("resourceId: {ACCOUNT}, blobContainerName: letters"));
    let whole = format!("spec: {{\"{ACCOUNT}/blobServices/default/containers/letters\": s3://…}}");
    let (subscription, findings) = loaded(&[text.as_str()]);
    assert_eq!(subscription.dead_letter.sink, Sink::DefaultContainer);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].contains(": warning: ") && findings[0].ends_with(&whole), "{findings:?}");
}

#[test]
fn what_only_takes_dead_letters_is_no_endpoint() {
    let hub = "{name: n, lastmile: {topic: a/b}, properties: {destination: {endpointType: EventHub, properties: {resourceId: /hub}}}}";
    let queue = "sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost";
    for (address, target) in [(queue, "a queue"), ("s3://bucket", "a container")] {
        let expected = format!("{target} can receive only dead letters, not events");
        let mapped = format!(
            "{{apiVersion: lastmile.dev/v1, kind: Destinations, spec: {{/hub: '{address}'}}}}"
        );
        for texts in
            [vec![webhook("", "").replace("http://h/", address)], vec![hub.to_owned(), mapped]]
        {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let found = shown(&read_files(&texts));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(": error: ") && found[0].contains(&expected), "{found:?}");
        }
    }
}

#[test]
fn a_wrong_word_is_the_one_finding_of_its_resource() {
    let queue = push("").replace("push: {", "queue: {receiveLockDurationInSeconds: 60}, push: {");
    let offered = "pull delivery is not supported; use deliveryMode: Push with a destination";
    for (text, expected) in [
        (
            webhook("", "").replace("WebHook", "WebHok"),
            "\"WebHok\" is not a valid value; did you mean WebHook?",
        ),
        (push("").replace("Push", "Pull"), offered),
        (queue.replace("Push", "pull"), offered),
        (queue.replace("Push", "Queue"), offered),
        (queue.replace("Push", "Pushed"), "\"Pushed\" is not a valid value"),
    ] {
        let found = shown(&read_files(&[&text]));
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        assert!(found[0].contains(": error: ") && found[0].contains(expected), "{found:?}");
    }
}

#[test]
fn topics_follow_from_the_names_of_templates() {
    let group = "resourceGroup: g, ";
    for (kind, name, around, expected) in [
        ("Microsoft.EventGrid/systemTopics/eventSubscriptions", "st/es", group, Some("g/st/es")),
        (
            "Microsoft.EventGrid/systemTopics/eventSubscriptions",
            "st/es",
            "lastmile: {topic: a/b}, ",
            Some("a/b/es"),
        ),
        ("Microsoft.EventGrid/systemTopics/eventSubscriptions", "st/es", "", None),
        ("Microsoft.EventGrid/systemTopics/eventSubscriptions", "es", group, None),
        ("Microsoft.EventGrid/domains/topics/eventSubscriptions", "d/t/es", "", Some("d/t/es")),
        (
            "Microsoft.Storage/storageAccounts/providers/eventSubscriptions",
            "acc/Microsoft.EventGrid/es",
            group,
            Some("g/acc/es"),
        ),
        (
            "Microsoft.Storage/storageAccounts/providers/eventSubscriptions",
            "acc/Microsoft.EventGrid/es",
            "lastmile: {topic: a/b}, ",
            Some("a/b/es"),
        ),
        (
            "Microsoft.Storage/storageAccounts/providers/eventSubscriptions",
            "acc/Microsoft.EventGrid/es",
            "",
            None,
        ),
    ] {
        let text = format!(
            "$schema: https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#\nresources:\n\
             - {{type: {kind}, name: {name}, {around}properties: {{destination: {{endpointType: WebHook, \
             properties: {{endpointUrl: 'http://h/'}}}}}}}}"
        );
        let reading = read_files(&[&text]);
        let found = shown(&reading);
        let names = names(&reading);
        match expected {
            Some(expected) => {
                assert_eq!((names, found), (vec![expected.to_owned()], Vec::new()), "{text}");
            }
            None => {
                assert!(names.is_empty() && found.len() == 1, "{text}: {found:#?}");
                assert!(
                    found[0].contains("add \"lastmile\": {\"topic\": \"namespace/"),
                    "{found:#?}"
                );
            }
        }
    }
}
