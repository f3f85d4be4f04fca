//! The Azure Event Grid Simulator's advanced filters, written down a second time: it converts values as .NET does, and
//! what cannot be converted matches nothing.

use serde_json::Value;

use super::advanced_filter::AdvancedFilter;

/// Asks the simulator's filter about this value at its key, or about an event without the key. `by_elements` is
/// `enableAdvancedFilteringOnArrays`.
pub(super) fn accepts(filter: &AdvancedFilter, value: Option<&Value>, by_elements: bool) -> bool {
    let is_negated = filter.operator.contains("Not") && filter.operator != "IsNotNull";
    match (filter.operator.as_str(), value) {
        ("IsNullOrUndefined", value) => value.is_none_or(Value::is_null),
        ("IsNotNull", value) => value.is_some_and(|value| !value.is_null()),
        (operator, None) => ["NumberNotIn", "NumberNotInRange", "StringNotIn"].contains(&operator),
        (_, Some(Value::Array(elements))) if by_elements => {
            let mut results = elements.iter().map(|element| compares(filter, element));
            if is_negated { results.all(|accepts| accepts) } else { results.any(|accepts| accepts) }
        }
        (_, Some(value)) => compares(filter, value),
    }
}

fn compares(AdvancedFilter { operator, operand }: &AdvancedFilter, value: &Value) -> bool {
    let limit = || operand.as_f64().expect("a number");
    let operands = || operand.as_array().expect("values");
    let number = number(value);
    let is_in =
        || number.map(|number| operands().iter().any(|listed| listed.as_f64() == Some(number)));
    let in_range = || number.map(|number| operands().iter().any(|range| is_within(number, range)));
    let text_is_in = || {
        operands().iter().any(|listed| text(listed).to_uppercase() == text(value).to_uppercase())
    };
    let passes = |how: fn(&str, &str) -> bool| any_text(value, operands(), how);
    match operator.as_str() {
        "NumberIn" => is_in().unwrap_or(false),
        "NumberNotIn" => is_in().is_some_and(|is_in| !is_in),
        "NumberInRange" => in_range().unwrap_or(false),
        "NumberNotInRange" => in_range().is_some_and(|is_in| !is_in),
        "NumberLessThan" => number.is_some_and(|number| number < limit()),
        "NumberLessThanOrEquals" => number.is_some_and(|number| number <= limit()),
        "NumberGreaterThan" => number.is_some_and(|number| number > limit()),
        "NumberGreaterThanOrEquals" => number.is_some_and(|number| number >= limit()),
        "BoolEquals" => boolean(value) == operand.as_bool(),
        "StringIn" => text_is_in(),
        "StringNotIn" => !text_is_in(),
        "StringContains" => passes(|text, part| text.contains(part)),
        "StringNotContains" => !passes(|text, part| text.contains(part)),
        "StringBeginsWith" => passes(|text, prefix| text.starts_with(prefix)),
        "StringNotBeginsWith" => !passes(|text, prefix| text.starts_with(prefix)),
        "StringEndsWith" => passes(|text, suffix| text.ends_with(suffix)),
        "StringNotEndsWith" => !passes(|text, suffix| text.ends_with(suffix)),
        other => panic!("the operator {other}"),
    }
}

fn is_within(number: f64, range: &Value) -> bool {
    let end = |index: usize| range[index].as_f64().expect("a number");
    end(0) <= number && number <= end(1)
}

/// `AnyStringMatch`: neither an empty text nor an empty operand matches. An object is the text of its JSON.
fn any_text(value: &Value, operands: &[Value], how: fn(&str, &str) -> bool) -> bool {
    let value = match value {
        Value::String(text) => text.to_uppercase(),
        Value::Object(_) => value.to_string().to_uppercase(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => String::new(),
    };
    let mut operands = operands.iter().map(|operand| text(operand).to_uppercase());
    !value.is_empty() && operands.any(|operand| !operand.is_empty() && how(&value, &operand))
}

/// `Convert.ToDouble`, which is no number where it throws.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(is_true) => Some(f64::from(u8::from(*is_true))),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `Convert.ToBoolean`, which is no boolean where it throws.
fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Null => Some(false),
        Value::Bool(is_true) => Some(*is_true),
        Value::Number(number) => number.as_f64().map(|number| number != 0.0),
        Value::String(text) => text.to_lowercase().parse().ok(),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// `Convert.ToString`; an array is the name of its type.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(_) => "System.Collections.Generic.List`1[System.Object]".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}
