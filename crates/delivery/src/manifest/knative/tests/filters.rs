//! Truth tables of a Trigger's filters.

use super::{broker, read_one, shown, takes, trigger};

const EVENT: &str =
    r#"{"type":"order.created","source":"/shop","subject":"","n":5,"flag":true,"data":{}}"#;

#[test]
fn each_filter_has_its_truth_table() {
    for (filter, taken) in [
        ("filter: {}", true),
        ("filter: {attributes: {}}", true),
        ("filter: {attributes: {type: order.created}}", true),
        ("filter: {attributes: {type: order}}", false),
        ("filter: {attributes: {type: order.created, source: /shop}}", true),
        ("filter: {attributes: {type: order.created, source: /other}}", false),
        ("filter: {attributes: {n: '5'}}", true),
        ("filter: {attributes: {type: ''}}", true),
        ("filter: {attributes: {subject: ''}}", false),
        ("filter: {attributes: {missing: ''}}", false),
        ("filter: {attributes: {missing: x}}", false),
        ("filters: []", true),
        ("filters: [{}]", true),
        ("filters: [{exact: {type: order.created}}]", true),
        ("filters: [{exact: {type: Order.created}}]", false),
        ("filters: [{exact: {type: order.created, source: /shop}}]", true),
        ("filters: [{exact: {type: order.created, source: /other}}]", false),
        ("filters: [{prefix: {type: order.}}]", true),
        ("filters: [{prefix: {type: created}}]", false),
        ("filters: [{suffix: {type: .created}}]", true),
        ("filters: [{suffix: {type: order}}]", false),
        ("filters: [{prefix: {missing: x}}]", false),
        ("filters: [{not: {prefix: {missing: x}}}]", true),
        ("filters: [{exact: {type: order.created}}, {exact: {source: /other}}]", false),
        ("filters: [{all: [{exact: {type: order.created}}, {exact: {source: /shop}}]}]", true),
        ("filters: [{all: [{exact: {type: order.created}}, {exact: {source: /other}}]}]", false),
        ("filters: [{any: [{exact: {type: x}}, {exact: {source: /shop}}]}]", true),
        ("filters: [{any: [{exact: {type: x}}, {exact: {source: /other}}]}]", false),
        ("filters: [{not: {any: [{exact: {type: x}}, {suffix: {source: op}}]}}]", false),
        ("filters: [{cesql: \"type LIKE 'order.%' AND n = 5 AND flag\"}]", true),
        ("filters: [{sql: \"type LIKE 'order.%' AND n = 6\"}]", false),
        ("filters: [{cesql: \"missing = 'x'\"}]", false),
        ("filters: [{not: {cesql: \"missing = 'x'\"}}]", true),
        ("filters: [{exact: {type: order.created}}, {cesql: flag}]", true),
    ] {
        assert_eq!(takes(&format!("  {filter}\n"), EVENT), taken, "{filter}");
    }
}

#[test]
fn filters_count_instead_of_a_filter_and_that_is_said() {
    let both =
        "  filter: {attributes: {type: nothing}}\n  filters: [{exact: {type: order.created}}]\n";
    assert!(takes(both, EVENT));
    let found = shown(&read_one(&format!("{}{}", broker("", "{}"), trigger(both))));
    assert_eq!(found, ["f:12:3: warning: spec.filter: not used: filters is given too"]);
    assert!(!takes("  filter: {attributes: {type: nothing}}\n  filters: []\n", EVENT));
}

#[test]
fn an_expression_that_may_surprise_is_a_warning_that_shows_how_it_is_read() {
    for (cesql, expected) in [
        (
            "flag AND n = 5 OR n = 6",
            "at character 16: the order of operators may surprise; it is read as flag AND (n = 5 OR n = 6)",
        ),
        (
            "NOT type = 'x'",
            "at character 1: the order of operators may surprise; it is read as (NOT type) = 'x'",
        ),
        ("n + 5", "matches no event: the value is never true or false"),
    ] {
        let filters = format!("  filters: [{{cesql: \"{cesql}\"}}]\n");
        let found = shown(&read_one(&format!("{}{}", broker("", "{}"), trigger(&filters))));
        let expected = format!("f:12:21: warning: spec.filters[0].cesql: {expected}");
        assert_eq!(found, [expected], "{cesql}");
    }
}
