//! Any filter of each dialect on any event: no panic, the same answer twice and for the same event in
//! another place, and conditions that mean what they say.
//!
//! Input, by lines: an event, and a filter as JSON.

#![no_main]

use delivery::event::{Element, Event, Input, Members, decode_one};
use delivery::subscription::filter::Filter;
use delivery::subscription::name::ALL_NAMES;
use lastmile_fuzz::{NOW_MS, catalogue, lines};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let ([text, filter], _) = lines(text);
    let Ok(filter) = serde_json::from_str::<Value>(filter) else { return };
    for file in [native(&filter), knative(&filter), event_grid(&filter)] {
        let Some(catalogue) = catalogue(&file.to_string()) else { continue };
        let Some(subscription) = catalogue.subscriptions().next() else { continue };
        let _shown = subscription.filter.to_string();
        for input in [Input::Auto, Input::Custom, Input::Opaque] {
            let Element::Event(event) = decode_one(&text.into(), input) else { continue };
            let is_taken = subscription.filter.takes(&event.members());
            check(&subscription.filter, &event, is_taken);
            let topic = &subscription.name.topic;
            let matching = catalogue.matching(topic, &ALL_NAMES, &event, NOW_MS).count();
            assert_eq!(matching == 1, is_taken, "{file}");
        }
    }
});

fn check(filter: &Filter, event: &Event, is_taken: bool) {
    assert_eq!(filter.takes(&event.members()), is_taken, "another answer");
    let recalled = Event::recall(event.text(), Input::Auto);
    if recalled.shape() == event.shape() {
        assert_eq!(filter.takes(&recalled.members()), is_taken, "another answer after a queue");
    }
    let padded = format!(" {}\n", event.text());
    if let Ok(members) = Members::parse(&padded).map_err(drop) {
        let is_same =
            Members::parse(event.text()).is_ok() && event.members().iter().next().is_some();
        assert!(!is_same || filter.takes(&members) == is_taken, "spaces around it count");
    }
    let (copy, members) = (filter.clone(), event.members());
    assert_eq!(Filter::Not(Box::new(copy.clone())).takes(&members), !is_taken);
    let not = Filter::Not(Box::new(copy.clone()));
    for pair in [vec![copy.clone(), not.clone()], vec![not, copy.clone()]] {
        assert!(!Filter::All(pair.clone()).takes(&members) && Filter::Any(pair).takes(&members));
    }
    assert_eq!(Filter::All(vec![copy.clone(), Filter::EVERYTHING]).takes(&members), is_taken);
    assert_eq!(Filter::Any(vec![Filter::Any(Vec::new()), copy]).takes(&members), is_taken);
}

fn native(filter: &Value) -> Value {
    json!({
        "apiVersion": "lastmile.dev/v1",
        "kind": "Subscription",
        "metadata": { "namespace": "n", "topic": "t", "name": "s" },
        "spec": { "destination": { "url": "https://example.com/" }, "filter": filter },
    })
}

fn knative(filter: &Value) -> Value {
    let (name, filters) = if filter.is_array() { ("filters", filter) } else { ("filter", filter) };
    json!({
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": { "namespace": "n", "name": "s" },
        "spec": { "broker": "t", "subscriber": { "uri": "https://example.com/" }, name: filters },
    })
}

fn event_grid(filter: &Value) -> Value {
    json!({
        "type": "Microsoft.EventGrid/eventSubscriptions",
        "name": "s",
        "properties": {
            "topic": "/subscriptions/x/resourceGroups/n/providers/Microsoft.EventGrid/topics/t",
            "destination": {
                "endpointType": "WebHook",
                "properties": { "endpointUrl": "https://example.com/" },
            },
            "filter": filter,
        },
    })
}
