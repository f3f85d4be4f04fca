//! Comparison with case, and of leaves: what files of Event Grid cannot state.
//! `docs/reference/conformance.md` has its operators.

use super::*;

fn numbers(values: &[&str]) -> Vec<Number> {
    values.iter().map(|value| Number::parse(value).unwrap()).collect()
}

/// Applies the test to `data.k` with this value.
fn holds(test: &Test, value: &str) -> bool {
    let event = format!(r#"{{"specversion":"1.0","data":{{"k":{value}}}}}"#);
    let key = Key::parse("data.k").unwrap();
    let condition = Condition { key, test: test.clone(), arrays: Arrays::OtherType };
    condition.holds(&Members::parse(&event).unwrap())
}

#[test]
fn texts_may_be_compared_with_case() {
    let test = |how| TextTest::with_case(how, vec!["Zoë".to_owned()]);
    for (test, holds_for, fails_for) in [
        (Test::Text(test(TextMatch::In)), r#""Zoë""#, r#""zoë""#),
        (Test::NotText(test(TextMatch::In)), r#""zoë""#, r#""Zoë""#),
        (Test::Text(test(TextMatch::BeginsWith)), r#""Zoë B""#, r#""ZoË B""#),
        (Test::Text(test(TextMatch::EndsWith)), r#""A Zoë""#, r#""A ZOË""#),
        (Test::Text(test(TextMatch::Contains)), r#"" Zoë ""#, r#"" zoë ""#),
    ] {
        assert!(holds(&test, holds_for) && !holds(&test, fails_for), "{test:?}");
    }
}

#[test]
fn a_condition_on_leaves_holds_if_one_of_them_passes() {
    let text = |values: &[&str]| {
        TextTest::with_case(TextMatch::In, values.iter().map(|value| (*value).to_owned()).collect())
    };
    let number = NumberTest::In(numbers(&["5"]));
    for (test, holding, others) in [
        (Test::Text(text(&["a"])), vec![r#"["b",["a"]]"#], vec![r#""A""#, "[]", "null"]),
        (Test::NotText(text(&["a"])), vec![r#"["a","b"]"#, "5", "null"], vec![r#"["a"]"#, "{}"]),
        (Test::Number(number.clone()), vec!["[1,5.0]"], vec!["[1]", r#""5""#]),
        (Test::NotNumber(number), vec!["[1,5]", r#""5""#], vec!["[5]", "[]"]),
        (Test::Bool(true), vec!["[true]"], vec!["false"]),
        (Test::IsNotNull, vec!["null", "0"], vec!["[]", r#"{"a":1}"#]),
        (Test::IsNullOrUndefined, vec!["[]", r#"{"a":1}"#], vec!["null", "0"]),
    ] {
        for (values, expected) in [(holding, true), (others, false)] {
            for value in values {
                let event = format!(r#"{{"n":[{{"k":{value}}}]}}"#);
                let (key, test) = (Key::parse("n.k").unwrap(), test.clone());
                let condition = Condition { key, test, arrays: Arrays::Leaves };
                let members = Members::parse(&event).unwrap();
                assert_eq!(condition.holds(&members), expected, "{condition} {value}");
            }
        }
    }
}
