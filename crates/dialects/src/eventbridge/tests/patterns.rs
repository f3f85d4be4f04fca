//! Patterns, by the events that they match.

use delivery::event::envelope::decode;
use delivery::event::{Element, Input};
use serde_json::{Value as Json, json};

use super::*;

fn matches(subscription: &Subscription, event: &Json) -> bool {
    let mut elements = decode(&event.to_string().into(), Input::Custom);
    let Some(Element::Event(event)) = elements.pop() else { panic!("{event} is no event") };
    subscription.filter.takes(&event.members())
}

/// The subscription of a pattern with a source, and an event of it with this detail.
fn subscription(detail: &Json) -> Arc<Subscription> {
    let pattern = json!({ "source": ["s"], "detail": detail });
    let files =
        [rule(&pattern), targets(&json!({})), destination(&json!({})), connection(&json!({}))];
    loaded(&files, &[])
}

fn event(detail: &Json) -> Json {
    json!({ "version": "0", "id": "1", "source": "s", "detail-type": "T", "account": "1", "region": "r",
        "time": "2026-01-15T10:20:30Z", "resources": ["arn:a", "arn:b"], "detail": detail })
}

#[test]
fn a_field_of_the_detail_matches_as_in_eventbridge() {
    let all = [
        json!("new"),
        json!("New"),
        json!("newer"),
        json!("renew"),
        json!(5),
        json!(5.0),
        json!(12),
        json!(true),
        json!("true"),
        json!(["old", "new"]),
        json!([]),
        json!({ "a": 1 }),
        json!(null),
        json!([{ "a": 1 }, null]),
        json!([["old"]]),
    ];
    // The values that match, by their positions; "-" is a detail without the field.
    let rows = [
        (json!(["new"]), "0 9"),
        (json!(["new", "renew"]), "0 3 9"),
        (json!([5]), "4 5"),
        (json!([5, "New", true]), "1 4 5 7"),
        (json!([{ "prefix": "new" }]), "0 2 9"),
        (json!([{ "prefix": { "equals-ignore-case": "NEW" } }]), "0 1 2 9"),
        (json!([{ "suffix": "new" }]), "0 3 9"),
        (json!([{ "suffix": { "equals-ignore-case": "NEW" } }]), "0 1 3 9"),
        (json!([{ "equals-ignore-case": "NEW" }]), "0 1 9"),
        (json!([{ "wildcard": "n*w" }]), "0 9"),
        (json!([{ "wildcard": "*new*" }]), "0 2 3 9"),
        (json!([{ "wildcard": "ne*" }]), "0 2 9"),
        (json!([{ "numeric": [">", 4, "<=", 5] }]), "4 5"),
        (json!([{ "numeric": [">=", 12] }, { "numeric": ["=", 5] }]), "4 5 6"),
        (json!([{ "numeric": ["<", 6] }]), "4 5"),
        (json!([{ "anything-but": 5 }]), "0 1 2 3 6 7 8 9 12 13 14"),
        (json!([{ "anything-but": ["new", "renew"] }]), "1 2 4 5 6 7 8 9 12 13 14"),
        (json!([{ "anything-but": { "prefix": "new" } }]), "1 3 4 5 6 7 8 9 12 13 14"),
        (json!([{ "anything-but": { "wildcard": "n*w" } }]), "1 2 3 4 5 6 7 8 9 12 13 14"),
        (
            json!([{ "anything-but": { "equals-ignore-case": ["NEW"] } }]),
            "2 3 4 5 6 7 8 9 12 13 14",
        ),
        (json!([{ "exists": true }]), "0 1 2 3 4 5 6 7 8 9 12 13 14"),
        (json!([{ "exists": false }]), "10 11 -"),
        (json!([{ "exists": false }, "new"]), "0 9 10 11 -"),
    ];
    for (values, expected) in rows {
        let subscription = subscription(&json!({ "state": values }));
        let taken = |value: &Json| matches(&subscription, &event(&json!({ "state": value })));
        let found = all.iter().enumerate().filter(|(_, value)| taken(value));
        let mut found: Vec<String> = found.map(|(index, _)| index.to_string()).collect();
        found.extend(matches(&subscription, &event(&json!({}))).then(|| "-".to_owned()));
        assert_eq!(found.join(" "), expected, "{values}");
    }
}

#[test]
fn a_field_is_found_in_lists_of_objects_and_by_its_exact_name() {
    for (pattern, detail, expected) in [
        (
            json!({ "items": { "sku": ["b"] } }),
            json!({ "items": [{ "sku": "a" }, { "sku": "b" }] }),
            true,
        ),
        (
            json!({ "items": { "sku": [{ "exists": false }] } }),
            json!({ "items": [{ "sku": "a" }] }),
            false,
        ),
        (
            json!({ "items": { "sku": [{ "anything-but": "a" }] } }),
            json!({ "items": [{ "sku": "a" }] }),
            false,
        ),
        (json!({ "State": ["a"] }), json!({ "state": "a" }), false),
        (json!({ "State": [{ "exists": false }] }), json!({ "state": "a" }), true),
    ] {
        assert_eq!(
            matches(&subscription(&pattern), &event(&detail)),
            expected,
            "{pattern} {detail}"
        );
    }
}

#[test]
fn a_value_that_only_the_stack_has_is_an_error_in_a_pattern() {
    for source in [
        json!({ "Fn::Split": [",", "a,b"] }),
        json!([{ "Ref": "Source" }]),
        json!({ "Ref": "Source" }),
        json!(["{{resolve:ssm:source}}"]),
    ] {
        let found = refused(&[rule(&json!({ "source": source })), targets(&json!({}))]);
        let expected = "1.json: error: EventPattern: this value is known only after deployment";
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn the_fields_around_the_detail_match_as_they_are_written() {
    let detail = json!({});
    for (pattern, expected) in [
        (json!({ "detail-type": ["T"] }), true),
        (json!({ "detail-type": ["t"] }), false),
        (json!({ "source": [{ "prefix": "s" }], "account": ["1", "2"], "region": ["r"] }), true),
        (json!({ "version": ["1"] }), false),
        (json!({ "version": ["0"], "time": [{ "prefix": "2026-01" }] }), true),
        (json!({ "resources": ["arn:b"] }), true),
        (json!({ "resources": [{ "suffix": ":c" }] }), false),
        (json!({ "source": ["s"], "account": [{ "anything-but": ["1"] }] }), false),
        (json!({ "$or": [{ "account": ["9"] }, { "region": ["r"] }] }), true),
        (json!({ "account": ["1"], "$or": [{ "account": ["9"] }, { "region": ["q"] }] }), false),
        (json!({ "detail": { "$or": [{ "a": [1] }, { "b": [{ "exists": false }] }] } }), true),
    ] {
        let pattern = with(&json!({ "source": ["s"] }), &pattern);
        let is_exact = pattern["source"] == json!(["s"]);
        let files =
            [rule(&pattern), targets(&json!({})), destination(&json!({})), connection(&json!({}))];
        let reading = reading(&files);
        assert_eq!(findings(&reading).len(), usize::from(!is_exact), "{pattern}");
        let subscription = reading.catalogue.subscriptions().next().expect("a subscription");
        assert_eq!(matches(subscription, &event(&detail)), expected, "{pattern}");
    }
}

#[test]
fn a_condition_that_no_filter_expresses_is_an_error() {
    for (values, condition) in [
        (json!([{ "cidr": "10.0.0.0/24" }]), r#""{"cidr":"10.0.0.0/24"}""#),
        (json!([null]), r#""null""#),
        (json!([{ "wildcard": "a*b*c" }]), r#""{"wildcard":"a*b*c"}""#),
        (json!([{ "wildcard": "ab*ba" }]), r#""{"wildcard":"ab*ba"}""#),
        (json!([{ "numeric": ["~", 1] }]), r#""{"numeric":["~",1]}""#),
        (json!([{ "new-operator": 1 }]), r#""{"new-operator":1}""#),
    ] {
        let files = [rule(&json!({ "detail": { "ip": values } })), targets(&json!({}))];
        let expected = format!(
            "1.json: error: EventPattern: a filter cannot express {condition} of \"detail.ip\"; \
             keep the condition in a rule of EventBridge that sends to the events queue, and omit \
             it here"
        );
        assert_eq!(refused(&files), expected);
    }
}

#[test]
fn a_pattern_that_is_none_is_an_error() {
    for (pattern, expected) in [
        (json!("x"), "1.json: error: EventPattern: an event pattern must be an object"),
        (json!({ "a": 1 }), "1.json: error: EventPattern: the values of \"a\" must be a list"),
        (json!({ "$or": [1] }), "1.json: error: EventPattern: $or must be a list of objects"),
    ] {
        assert_eq!(refused(&[rule(&pattern), targets(&json!({}))]), expected);
    }
    for (text, expected) in [
        ("{", "not valid JSON"),
        (
            r#"{"source":["a"],"source":["b"]}"#,
            "source is defined twice in one mapping; keep one of them",
        ),
        ("", "expected one value, found 0"),
    ] {
        let broken = json!({ "Name": "orders", "Arn": RULE_ARN, "EventPattern": text });
        let found = refused(&[broken, targets(&json!({}))]);
        assert!(found.starts_with(&format!("1.json: error: EventPattern: {expected}")), "{found}");
    }
}
