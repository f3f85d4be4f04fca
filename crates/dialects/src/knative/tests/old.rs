//! Peculiarities of real files: lists, old spellings, and kinds that are not read.

use super::*;
use delivery::subscription::filter::Filter;

/// Returns the subscription of a trigger whose spec ends with this text, and the findings.
fn of_trigger(rest: &str) -> (Arc<Subscription>, Vec<String>) {
    subscription(&format!("{}{TRIGGER}{rest}", broker(&class("Kafka"), "{}")))
}

#[test]
fn durations_of_go_are_read_with_a_warning() {
    let (subscription, found) = of_trigger(&format!(
        "{SUBSCRIBER}  delivery: {{retry: 1, backoffDelay: 3s, timeout: 1m30s}}\n"
    ));
    assert_eq!(waits_ms(&subscription.retry.schedule, 1), [6 * SECOND_MS]);
    assert_eq!(subscription.destination.response_timeout_ms, 90 * SECOND_MS);
    assert_eq!(
        found,
        [
            "f:12:38: warning: spec.delivery.backoffDelay: \"3s\" is an old format and is read as \
             PT3S; PT3S",
            "f:12:51: warning: spec.delivery.timeout: \"1m30s\" is an old format and is read as \
             PT1M30S; PT1M30S",
        ]
    );
}

#[test]
fn a_delay_of_zero_means_no_wait() {
    let (subscription, found) =
        of_trigger(&format!("{SUBSCRIBER}  delivery: {{retry: 3, backoffDelay: PT0S}}\n"));
    assert_eq!((waits_ms(&subscription.retry.schedule, 3), found.len()), (vec![0, 0, 0], 0));
}

#[test]
fn a_destination_without_ref_is_read_as_one() {
    let sink = "{apiVersion: v1, kind: Service, name: s}";
    let (_, found) = of_trigger(&format!(
        "  subscriber: {sink}\n---\napiVersion: lastmile.dev/v1\nkind: Destinations\n\
         spec: {{v1/Service/default/s: 'https://s.example.com/'}}\n"
    ));
    assert_eq!(
        found,
        ["f:11:15: warning: spec.subscriber: this old format is read as ref; ref: {apiVersion, \
          kind, name}"]
    );
}

#[test]
fn source_and_type_have_to_be_equal_and_an_empty_one_is_anything() {
    let exact = |name: &str| Filter::Exact { name: name.to_owned(), value: "a".to_owned() };
    for (filter, expected) in [
        ("{source: a, type: a}", Filter::All(vec![exact("source"), exact("type")])),
        ("{source: '', type: a}", exact("type")),
        ("{type: a}", exact("type")),
        ("{source: ''}", Filter::EVERYTHING),
    ] {
        let (subscription, found) =
            of_trigger(&format!("  filter: {{sourceAndType: {filter}}}\n{SUBSCRIBER}"));
        assert_eq!(subscription.filter, expected, "{filter}");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("spec.filter.sourceAndType: this old field"), "{found:?}");
    }
}

#[test]
fn the_items_of_a_list_are_read_as_documents() {
    let items = "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n\
         - apiVersion: eventing.knative.dev/v1\n  kind: Broker\n  metadata: {name: b, annotations: {eventing.knative.dev/broker.class: Kafka}}\n\
         - apiVersion: eventing.knative.dev/v1\n  kind: Trigger\n  metadata: {name: t}\n  \
           spec: {broker: b, subscriber: {uri: 'http://h/'}, delivery: {retry: many}}\n";
    let reading = read_one(items);
    assert_eq!(
        shown(&reading),
        ["f:11:71: error: items[1].spec.delivery.retry: expected a whole number, found text"]
    );
    let nested =
        items.replace("many", "2").replace("kind: List", "kind: List, x: y").replace(", x: y", "");
    let inner = nested.lines().map(|line| format!("  {line}\n")).collect::<String>();
    let nested = format!(
        "apiVersion: v1\nkind: List\nmetadata: {{name: outer}}\nitems:\n- {}",
        inner.trim_start()
    );
    let (of_nested, _) = subscription(&nested);
    assert_eq!(of_nested.name.to_string(), "default/b/t");
    let (subscription, found) = subscription(&items.replace("many", "2"));
    assert_eq!((subscription.name.to_string().as_str(), found.len()), ("default/b/t", 0));
}

#[test]
fn beside_a_kind_that_is_not_read_the_rest_is_deployed() {
    let sequence = "apiVersion: flows.knative.dev/v1\nkind: Sequence\nmetadata: {name: q}\nspec: {steps: []}\n---\n";
    let (subscription, found) =
        subscription(&format!("{sequence}{}{}", broker("", "{}"), trigger("")));
    assert_eq!(subscription.name.to_string(), "default/b/t");
    assert_eq!(found, Vec::<String>::new());
    let misspelt = sequence.replace("flows", "eventing").replace("Sequence", "Triger");
    let found = shown(&read_one(&format!("{misspelt}{}{}", broker("", "{}"), trigger(""))));
    assert_eq!(
        found,
        [
            "f:2:7: error: kind: eventing.knative.dev/v1 has no kind \"Triger\"; did you mean Trigger?"
        ]
    );
}
