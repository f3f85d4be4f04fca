//! Advanced filters of Event Grid, compared with the Azure Event Grid Simulator: every operator, for values of every
//! type.

use lastmile_tests::conformance::{Results, SIMULATOR};
use serde_json::Value;

use super::advanced_filter::{AdvancedFilter, ArrayMode, matches};
use super::simulator;

const FILTERS: [&str; 33] = [
    "NumberIn [5]",
    "NumberIn [123456789.125]",
    "NumberIn [1e22]",
    "NumberNotIn [5]",
    "NumberLessThan 6",
    "NumberLessThanOrEquals 5",
    "NumberGreaterThan 4",
    "NumberGreaterThanOrEquals 5.5",
    "NumberInRange [[4,6],[1e21,1e23]]",
    "NumberNotInRange [[4,6]]",
    "BoolEquals true",
    "BoolEquals false",
    "StringIn [\"a\"]",
    "StringIn [\"\"]",
    "StringIn [\"οδος\"]",
    "StringIn [\"k\"]",
    "StringNotIn [\"a\"]",
    "StringNotIn [\"\"]",
    "StringContains [\"A\"]",
    "StringContains [\"\"]",
    "StringContains [\"x\",\"b\"]",
    "StringNotContains [\"A\"]",
    "StringNotContains [\"\"]",
    "StringBeginsWith [\"ΟΔΟ\"]",
    "StringBeginsWith [\"\"]",
    "StringNotBeginsWith [\"ΟΔΟ\"]",
    "StringNotBeginsWith [\"\"]",
    "StringEndsWith [\"b\"]",
    "StringEndsWith [\"\"]",
    "StringNotEndsWith [\"b\"]",
    "StringNotEndsWith [\"\"]",
    "IsNullOrUndefined",
    "IsNotNull",
];

/// The values of the key; the empty text is a missing key.
const VALUES: [&str; 26] = [
    "",
    "null",
    "5",
    "5.0",
    "123456789.125",
    "1e22",
    "0",
    "-7",
    "\"5\"",
    "true",
    "false",
    "\"true\"",
    "\"\"",
    "\"a\"",
    "\"AB\"",
    "\"ΟΔΟΣ\"",
    "\"οδοσ\"",
    "\"\\u212a\"",
    "[]",
    "[5]",
    "[\"a\"]",
    "[null]",
    "[7,9]",
    "[\"x\",\"AB\"]",
    "[true,5,\"a\"]",
    "{\"x\":1}",
];

/// Compares the type of a value with that of the operator; for an array by its elements, that of each element.
fn is_for(operator: &str, value: &Value, by_elements: bool) -> bool {
    if let Some(elements) = value.as_array().filter(|_| by_elements) {
        return elements.iter().all(|element| is_for(operator, element, false));
    }
    let kinds = [
        ("Bool", value.is_boolean()),
        ("String", value.is_string()),
        ("Number", value.is_number()),
    ];
    kinds.into_iter().all(|(kind, is_of_it)| is_of_it || !operator.starts_with(kind))
}

/// The departure that explains a case.
fn departure(filter: &AdvancedFilter, value: &Value, by_elements: bool) -> &'static str {
    if value.is_null() {
        return "null-is-missing";
    }
    if !is_for(&filter.operator, value, by_elements) {
        return "other-types";
    }
    if filter.operand[0] == "" { "empty-value" } else { "folding" }
}

pub(super) fn results() -> Results {
    let mut results = Results::new(SIMULATOR);
    for filter in FILTERS.map(AdvancedFilter::parse) {
        for by_elements in [false, true] {
            let arrays = if by_elements { ArrayMode::On } else { ArrayMode::Off };
            let subscription = filter.subscription("data.k", arrays);
            for value in VALUES {
                if by_elements && !value.starts_with('[') {
                    continue;
                }
                let data =
                    if value.is_empty() { "{}".to_owned() } else { format!("{{\"k\":{value}}}") };
                let accepts =
                    matches(&subscription, &format!(r#"{{"specversion":"1.0","data":{data}}}"#));
                let value: Option<Value> =
                    (!value.is_empty()).then(|| serde_json::from_str(value).expect("JSON"));
                let differs = accepts != simulator::accepts(&filter, value.as_ref(), by_elements);
                let departs = value
                    .as_ref()
                    .filter(|_| differs)
                    .map(|value| departure(&filter, value, by_elements));
                let case = format!("{filter:?} of {value:?}, by elements: {by_elements}");
                results.check(&case, !differs, departs);
            }
        }
    }
    results
}
