//! Conditions of Event Grid's advanced filters, compared with the Azure Event Grid Simulator: every operator that it has, for
//! values of every type.
//!
//! The simulator is written down here a second time, as it converts values: what cannot be converted matches nothing.

use delivery::event::Members;
use delivery::subscription::filter::advanced::{
    Arrays, Condition, NumberTest, Test, TextMatch, TextTest,
};
use delivery::subscription::filter::key::Key;
use delivery::subscription::filter::number::Number;
use lastmile_tests::conformance::{Results, SIMULATOR};
use serde_json::Value;

/// An operator with its value.
#[derive(Clone, Copy, Debug)]
enum Operator {
    NumberIn(&'static str),
    NumberNotIn(&'static str),
    LessThan(&'static str),
    LessThanOrEquals(&'static str),
    GreaterThan(&'static str),
    GreaterThanOrEquals(&'static str),
    Bool(bool),
    TextIn(&'static str),
    TextNotIn(&'static str),
    Text(TextMatch, &'static str),
}

use Operator as O;

const OPERATORS: [Operator; 22] = [
    O::NumberIn("5"),
    O::NumberIn("123456789.125"),
    O::NumberIn("1e22"),
    O::NumberNotIn("5"),
    O::LessThan("6"),
    O::LessThanOrEquals("5"),
    O::GreaterThan("4"),
    O::GreaterThanOrEquals("5.5"),
    O::Bool(true),
    O::Bool(false),
    O::TextIn("a"),
    O::TextIn(""),
    O::TextIn("οδος"),
    O::TextIn("k"),
    O::TextNotIn("a"),
    O::TextNotIn(""),
    O::Text(TextMatch::Contains, "A"),
    O::Text(TextMatch::Contains, ""),
    O::Text(TextMatch::BeginsWith, "ΟΔΟ"),
    O::Text(TextMatch::BeginsWith, ""),
    O::Text(TextMatch::EndsWith, "b"),
    O::Text(TextMatch::EndsWith, ""),
];

/// What the key has; nothing for the empty text.
const VALUES: [&str; 21] = [
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
    "[5]",
    "[\"a\"]",
    "{\"x\":1}",
];

impl Operator {
    fn test(self) -> Test {
        let number = |text: &str| Number::parse(text).expect("a number");
        let text = |how, value: &str| TextTest::new(how, &[value.to_owned()]);
        match self {
            Self::NumberIn(value) => Test::Number(NumberTest::In(vec![number(value)])),
            Self::NumberNotIn(value) => Test::NotNumber(NumberTest::In(vec![number(value)])),
            Self::LessThan(value) => Test::Number(NumberTest::LessThan(number(value))),
            Self::LessThanOrEquals(value) => {
                Test::Number(NumberTest::LessThanOrEquals(number(value)))
            }
            Self::GreaterThan(value) => Test::Number(NumberTest::GreaterThan(number(value))),
            Self::GreaterThanOrEquals(value) => {
                Test::Number(NumberTest::GreaterThanOrEquals(number(value)))
            }
            Self::Bool(value) => Test::Bool(value),
            Self::TextIn(value) => Test::Text(text(TextMatch::In, value)),
            Self::TextNotIn(value) => Test::NotText(text(TextMatch::In, value)),
            Self::Text(how, value) => Test::Text(text(how, value)),
        }
    }

    /// What the simulator says of a value, which is there.
    fn simulated(self, value: &Value) -> bool {
        let compares = |limit: &str, passes: fn(f64, f64) -> bool| {
            let limit = limit.parse().expect("a number");
            number(value).is_some_and(|value| passes(value, limit))
        };
        let is_in = |one: &str| text(value).to_uppercase() == one.to_uppercase();
        match self {
            Self::NumberIn(one) => compares(one, |value, one| value == one),
            Self::NumberNotIn(one) => compares(one, |value, one| value != one),
            Self::LessThan(limit) => compares(limit, |value, limit| value < limit),
            Self::LessThanOrEquals(limit) => compares(limit, |value, limit| value <= limit),
            Self::GreaterThan(limit) => compares(limit, |value, limit| value > limit),
            Self::GreaterThanOrEquals(limit) => compares(limit, |value, limit| value >= limit),
            Self::Bool(one) => boolean(value) == Some(one),
            Self::TextIn(one) => is_in(one),
            Self::TextNotIn(one) => !is_in(one),
            Self::Text(how, one) => {
                let (value, one) =
                    (value.as_str().unwrap_or_default().to_uppercase(), one.to_uppercase());
                let is_nothing = value.is_empty() || one.is_empty();
                let passes = match how {
                    TextMatch::In => value == one,
                    TextMatch::Contains => value.contains(&one),
                    TextMatch::BeginsWith => value.starts_with(&one),
                    TextMatch::EndsWith => value.ends_with(&one),
                };
                !is_nothing && passes
            }
        }
    }

    /// Whether a value is of the operator's type.
    fn is_for(self, value: &Value) -> bool {
        match self {
            Self::Bool(_) => value.is_boolean(),
            Self::TextIn(_) | Self::TextNotIn(_) | Self::Text(..) => value.is_string(),
            Self::NumberIn(_)
            | Self::NumberNotIn(_)
            | Self::LessThan(_)
            | Self::LessThanOrEquals(_)
            | Self::GreaterThan(_)
            | Self::GreaterThanOrEquals(_) => value.is_number(),
        }
    }
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

/// `Convert.ToBoolean`.
fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Null => Some(false),
        Value::Bool(is_true) => Some(*is_true),
        Value::Number(number) => number.as_f64().map(|number| number != 0.0),
        Value::String(text) => text.parse().ok(),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// `Convert.ToString`.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Why a case is not as the simulator has it.
fn departure(operator: Operator, value: Option<&Value>) -> &'static str {
    match (operator, value) {
        (_, None) => "missing-not-in",
        (Operator::Text(_, ""), Some(Value::String(_))) => "empty-value",
        (_, Some(value)) if !operator.is_for(value) => "other-types",
        (_, Some(_)) => "folding",
    }
}

pub(super) fn results() -> Results {
    let mut results = Results::of(SIMULATOR);
    for operator in OPERATORS {
        for value in VALUES {
            let data =
                if value.is_empty() { "{}".to_owned() } else { format!("{{\"k\":{value}}}") };
            let event = format!(r#"{{"specversion":"1.0","data":{data}}}"#);
            let key = Key::parse("data.k").expect("a key");
            let condition = Condition { key, test: operator.test(), arrays: Arrays::OtherType };
            let holds = condition.holds(&Members::parse(&event).expect("an object"));
            let value: Option<Value> =
                (!value.is_empty()).then(|| serde_json::from_str(value).expect("JSON"));
            let simulated = value.as_ref().is_some_and(|value| operator.simulated(value));
            let differs = holds != simulated;
            // What the page is silent about is as in the simulator.
            assert!(!differs || value != Some(Value::Null), "{operator:?} of null");
            let departs = differs.then(|| departure(operator, value.as_ref()));
            let case = format!("{operator:?} of {value:?}");
            results.check(&case, !differs, departs);
        }
    }
    results
}
