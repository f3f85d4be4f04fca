//! Truth tables of a Trigger's filters.

use super::{broker, class, read_one, shown, subscription, takes, trigger};
use delivery::event::Members;

const EVENT: &str = r#"{"type":"order.created","source":"/shop","subject":"","n":5,"flag":true,"text":"5","flags":"true","data":{}}"#;

#[test]
fn each_filter_has_its_truth_table() {
    for (filter, taken) in [
        ("filter: {}", true),
        ("filter: {attributes: {}}", true),
        ("filter: {attributes: {type: order.created}}", true),
        ("filter: {attributes: {type: order.created, source: /shop}}", true),
        ("filter: {attributes: {type: order.created, source: /other}}", false),
        ("filter: {attributes: {n: ''}}", true),
        ("filter: {attributes: {n: '5'}}", false),
        ("filter: {attributes: {n: 5}}", false),
        ("filter: {attributes: {flag: 'true'}}", false),
        ("filter: {attributes: {flag: ''}}", true),
        ("filter: {attributes: {text: '5', flags: 'true'}}", true),
        ("filters: [{exact: {n: '5', flag: 'true', text: '5'}}]", true),
        ("filters: [{prefix: {n: '5'}}, {suffix: {flag: ue}}]", true),
        ("filter: {attributes: {type: ''}}", true),
        ("filter: {attributes: {subject: ''}}", false),
        ("filter: {attributes: {missing: ''}}", false),
        ("filters: []", true),
        ("filters: [{}]", true),
        ("filters: [{exact: {type: order.created}}]", true),
        ("filters: [{exact: {type: order.created, source: /shop}}]", true),
        ("filters: [{prefix: {type: order.}}]", true),
        ("filters: [{suffix: {type: .created}}]", true),
        ("filters: [{exact: {type: order.created}}, {exact: {source: /other}}]", false),
        ("filters: [{all: [{exact: {type: order.created}}, {exact: {source: /other}}]}]", false),
        ("filters: [{any: [{exact: {type: x}}, {exact: {source: /shop}}]}]", true),
        ("filters: [{not: {any: [{exact: {type: x}}, {suffix: {source: op}}]}}]", false),
        ("filters: [{cesql: \"type LIKE 'order.%' AND n = 5 AND flag\"}]", true),
        ("filters: [{sql: \"type LIKE 'order.%' AND n = 6\"}]", false),
        ("filters: [{not: {cesql: \"missing = 'x'\"}}]", true),
        ("filters: [{exact: {type: order.created}}, {cesql: flag}]", true),
    ] {
        assert_eq!(takes(&format!("  {filter}\n"), EVENT), taken, "{filter}");
    }
}

#[test]
fn only_an_extension_that_may_be_a_number_or_boolean_is_compared_by_type() {
    for (filter, text) in [
        ("{n: '5'}", r#"n is the string "5""#),
        ("{n: 'true'}", r#"n is the string "true""#),
        ("{n: five}", r#"n is "five""#),
        ("{id: '5'}", r#"id is "5""#),
    ] {
        let trigger = trigger(&format!("  filter: {{attributes: {filter}}}\n"));
        let (subscription, _) = subscription(&format!("{}{trigger}", broker("", "{}")));
        assert_eq!(subscription.filter.to_string(), text, "{filter}");
    }
}

#[test]
fn a_value_that_no_number_matches_is_warned_of() {
    let warnings =
        |filter: &str| shown(&read_one(&format!("{}{}", broker("", "{}"), trigger(filter))));
    let found = warnings("  filter: {attributes: {n: '5', type: '5'}}\n");
    let expected = "spec.filter.attributes.n: matches only a string, not a number or a boolean, \
                    even in a header; filters: [{exact: {n: '5'}}]";
    assert!(found.len() == 1 && found[0].ends_with(expected), "{found:?}");
    let exact = warnings("  filters: [{exact: {n: '5'}}]\n");
    assert!(exact.is_empty(), "{exact:?}");
}

#[test]
fn a_broker_of_kafka_compares_numbers_and_booleans_as_text() {
    for (name, taken) in [("Kafka", true), ("KafkaNamespaced", true), ("RabbitMQBroker", false)] {
        let filter = "  filter: {attributes: {n: '5', flag: 'true'}}\n";
        let text = format!("{}{}", broker(&class(name), "{}"), trigger(filter));
        let (subscription, _) = subscription(&text);
        let members = Members::parse(EVENT).unwrap();
        assert_eq!(subscription.filter.takes(&members), taken, "{name}");
    }
}

#[test]
fn a_name_may_be_one_of_event_grid_or_begin_with_a_digit() {
    assert!(takes(
        "  filter: {attributes: {eventType: t, 2nd: x}}\n",
        r#"{"eventType":"t","2nd":"x"}"#
    ));
}

#[test]
fn filters_count_instead_of_a_filter_and_that_is_said() {
    let both =
        "  filter: {attributes: {type: nothing}}\n  filters: [{exact: {type: order.created}}]\n";
    assert!(takes(both, EVENT));
    let found = shown(&read_one(&format!("{}{}", broker("", "{}"), trigger(both))));
    assert_eq!(found, ["f:12:3: warning: spec.filter: no effect: filters is also set"]);
    assert!(!takes("  filter: {attributes: {type: nothing}}\n  filters: []\n", EVENT));
}

#[test]
fn an_expression_that_may_surprise_is_a_warning_that_shows_how_it_is_read() {
    for (cesql, expected) in [
        (
            "flag AND n = 5 OR n = 6",
            "at character 16: check the precedence of the operators; the expression means flag AND \
             (n = 5 OR n = 6)",
        ),
        (
            "NOT type = 'x'",
            "at character 1: check the precedence of the operators; the expression means (NOT \
             type) = 'x'",
        ),
        ("n + 5", "matches no event: the result is never true or false"),
    ] {
        let filters = format!("  filters: [{{cesql: \"{cesql}\"}}]\n");
        let found = shown(&read_one(&format!("{}{}", broker("", "{}"), trigger(&filters))));
        let expected = format!("f:12:21: warning: spec.filters[0].cesql: {expected}");
        assert_eq!(found, [expected], "{cesql}");
    }
}
