//! The table of `docs/reference/conformance.md` that has the result of every operator of Event Grid for values of every type, and the source
//! of each result. The page is the only copy. Here each filter of a row is applied to each of its values, in every
//! schema and at every place that the key of the row stands for.

use std::collections::BTreeSet;

use lastmile_tests::document;

use super::advanced_filter::{AdvancedFilter, ArrayMode, matches};
use super::simulator;

const OPERATORS: [&str; 19] = [
    "NumberIn",
    "NumberNotIn",
    "NumberLessThan",
    "NumberLessThanOrEquals",
    "NumberGreaterThan",
    "NumberGreaterThanOrEquals",
    "NumberInRange",
    "NumberNotInRange",
    "BoolEquals",
    "StringContains",
    "StringNotContains",
    "StringBeginsWith",
    "StringNotBeginsWith",
    "StringEndsWith",
    "StringNotEndsWith",
    "StringIn",
    "StringNotIn",
    "IsNullOrUndefined",
    "IsNotNull",
];

/// The values that the table has to have for every operator; `None` is a missing key.
const VALUES: [Option<&str>; 12] = [
    None,
    Some("null"),
    Some("\"\""),
    Some("\"x\""),
    Some("\"5\""),
    Some("5"),
    Some("true"),
    Some("{}"),
    Some("[]"),
    Some("[null]"),
    Some("[{}]"),
    Some("[5,\"x\",true]"),
];

/// A row of the table.
struct Row {
    filters: Vec<AdvancedFilter>,
    keys: &'static [&'static str],
    values: Vec<Option<String>>,
    arrays: Vec<ArrayMode>,
    matches: bool,
    source: String,
}

fn rows() -> Vec<Row> {
    document::rows("reference/conformance.md", "filter-values")
        .iter()
        .map(|cells| row(cells))
        .collect()
}

fn row(cells: &[String]) -> Row {
    let [filters, key, value, arrays, matches, source] = cells else { panic!("{cells:?}") };
    let absent = value.contains("absent").then_some(None);
    Row {
        filters: codes(filters).into_iter().map(AdvancedFilter::parse).collect(),
        keys: match key.as_str() {
            "any" => &["data.k", "data.o.k", "k"],
            "`data.k`" => &["data.k", "data.o.k"],
            "`k`" => &["k"],
            other => panic!("the key {other}"),
        },
        values: absent
            .into_iter()
            .chain(codes(value).into_iter().map(|code| Some(code.to_owned())))
            .collect(),
        arrays: match arrays.as_str() {
            "any" => ArrayMode::ALL.to_vec(),
            "off" => vec![ArrayMode::Off],
            "on" => vec![ArrayMode::On],
            "Kubernetes" => vec![ArrayMode::Kubernetes],
            other => panic!("the arrays {other}"),
        },
        matches: match matches.as_str() {
            "yes" => true,
            "no" => false,
            other => panic!("the result {other}"),
        },
        source: source.clone(),
    }
}

/// The texts between backquotes.
fn codes(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Events of every schema that have this value at a key, or do not have the key.
fn events(key: &str, value: Option<&str>) -> Vec<String> {
    let member = value.map_or(String::new(), |value| format!("\"k\":{value}"));
    let cloud_event = r#""specversion":"1.0","id":"1","source":"/s","type":"t""#;
    let event_grid =
        r#""id":"1","topic":"/t","subject":"s","eventType":"t","eventTime":"2026-11-20T07:00:00Z""#;
    let of_event = |members: &str| {
        let comma = if members.is_empty() { "" } else { "," };
        [cloud_event, event_grid, "\"z\":1"].map(|event| format!("{{{event}{comma}{members}}}"))
    };
    let (data, nested) = (format!("{{{member}}}"), format!("{{\"o\":{{{member}}}}}"));
    let custom = |payload: &str| [payload.to_owned()];
    let mut events: Vec<String> = match key {
        "k" => of_event(&member).into(),
        "data.k" => {
            of_event(&format!("\"data\":{data}")).into_iter().chain(custom(&data)).collect()
        }
        "data.o.k" => {
            of_event(&format!("\"data\":{nested}")).into_iter().chain(custom(&nested)).collect()
        }
        other => panic!("the key {other}"),
    };
    if value.is_none() && key != "k" {
        for parent in ["null", "7", "\"k\"", "[]", "[{\"k\":5,\"o\":{\"k\":5}}]"] {
            events.extend(of_event(&format!("\"data\":{parent}")));
            events.extend(of_event(&format!("\"data\":{{\"o\":{parent}}}")));
        }
        events.extend(of_event(""));
    }
    events
}

#[test]
fn every_filter_makes_of_every_value_what_the_docs_say() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        let is_from_simulator = row.source == "Simulator";
        for filter in &row.filters {
            for (key, arrays) in
                row.keys.iter().flat_map(|key| row.arrays.iter().map(move |arrays| (key, *arrays)))
            {
                let subscription = filter.subscription(key, arrays);
                for value in &row.values {
                    let case = format!("{filter:?} {key} {arrays:?} {value:?}");
                    for event in events(key, value.as_deref()) {
                        assert_eq!(matches(&subscription, &event), row.matches, "{case}: {event}");
                    }
                    if is_from_simulator && value.is_none() {
                        assert_eq!(simulator::accepts(filter, None, false), row.matches, "{case}");
                    }
                    assert!(seen.insert(case), "{filter:?} of {value:?} is in two rows");
                }
            }
        }
    }
}

#[test]
fn the_table_has_every_operator_for_every_type_of_value() {
    let rows = rows();
    for (operator, value) in
        OPERATORS.iter().flat_map(|operator| VALUES.map(|value| (operator, value)))
    {
        for arrays in ArrayMode::ALL {
            for key in ["data.k", "k"] {
                let has = |row: &Row| {
                    row.filters.iter().any(|filter| filter.operator == *operator)
                        && row.values.iter().any(|listed| listed.as_deref() == value)
                        && row.arrays.contains(&arrays)
                        && row.keys.contains(&key)
                };
                assert!(rows.iter().any(has), "{operator} {key} {value:?} {arrays:?}");
            }
        }
    }
    let unknown = |filter: &&AdvancedFilter| !OPERATORS.contains(&filter.operator.as_str());
    let unknown = rows.iter().flat_map(|row| &row.filters).find(unknown);
    assert!(unknown.is_none(), "{unknown:?}");
    assert!(rows.iter().all(|row| !row.source.is_empty()));
}
