//! CloudEvents SQL: properties of reading, writing and evaluating.

use delivery::event::Members;
use delivery::subscription::filter::cesql::{Cesql, ParseError, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::matching;

/// Any expression of the grammar, with few parentheses.
fn expression() -> impl Strategy<Value = String> {
    const VALUES: [&str; 18] = [
        "type",
        "Subject",
        "n",
        "missing",
        "1a",
        "0",
        "007",
        "-1",
        "+2",
        "2147483647",
        "true",
        "'a'",
        r"'it\'s'",
        r#""a'b\"c""#,
        r#""\'""#,
        r"'\\\'\%'",
        "EXISTS type",
        "concat()",
    ];
    const OPERATORS: [&str; 14] =
        ["and", "OR", "XOR", "=", "!=", "<>", "<", ">=", "+", "-", "*", "/", "%", "AND NOT"];
    let values = select(&VALUES[..]).prop_map(ToOwned::to_owned);
    values.prop_recursive(6, 24, 3, |inner| {
        let prefix = select(&["NOT ", "-", "- ", "("][..]);
        let test =
            select(&["LIKE 'a%'", "not like \"_\\_\"", "IN (1, 'a', type)", "NOT IN (n)"][..]);
        prop_oneof![
            4 => (inner.clone(), select(&OPERATORS[..]), inner.clone())
                .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
            2 => (prefix, inner.clone()).prop_map(|(prefix, operand)| {
                let close = if prefix == "(" { ")" } else { "" };
                format!("{prefix}{operand}{close}")
            }),
            1 => (inner.clone(), test).prop_map(|(operand, test)| format!("{operand} {test}")),
            1 => vec(inner.clone(), 1..3).prop_map(|list| format!("CONCAT_WS({})", list.join(","))),
            1 => inner.prop_map(|operand| format!("n IN ({operand}, {operand})")),
        ]
    })
}

/// Lists of texts, some of which equal numbers and booleans with another spelling.
fn lists() -> impl Strategy<Value = String> {
    let text = select(&["'a'", "'1'", "'01'", "'+1'", "'-0'", "'true'", "'TRUE'"][..]);
    vec(text, 1..3).prop_map(|texts| format!("n IN ({})", texts.join(", ")))
}

/// An event with every attribute of such expressions. Each value equals several texts.
fn event() -> impl Strategy<Value = String> {
    let value = || select(&["1", "-0", "true", "null", "\"a\"", "\"1\"", "\"01\"", "\"TRUE\""][..]);
    [value(), value(), value()].prop_map(|[first, second, third]| {
        format!(
            r#"{{"type":{first},"source":{second},"topic":{third},"subject":{first},"n":{second},"data":{third}}}"#
        )
    })
}

/// Tokens in any order.
fn tokens() -> impl Strategy<Value = String> {
    const TOKENS: [&str; 16] = [
        "a", "1", "'b'", "(", ")", ",", "NOT", "AND", "IN", "LIKE", "EXISTS", "=", "-", "+", "\\",
        "ö",
    ];
    vec(select(&TOKENS[..]), 0..12).prop_map(|tokens| tokens.join(" "))
}

/// Reads an expression, and checks that its written form is read as the same expression.
fn assert_is_read_back(text: &str) -> Result<(), ParseError> {
    let read: Cesql = text.parse()?;
    let written = read.to_string();
    assert_eq!(written.parse::<Cesql>().as_ref(), Ok(&read), "{text} -> {written}");
    Ok(())
}

/// Matches a pattern by trying every length of `%`.
fn like(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], text) => text.is_empty(),
        (['%', rest @ ..], text) => (0..=text.len()).any(|from| like(rest, &text[from..])),
        (['\\', escaped @ ('%' | '_'), rest @ ..], [first, text @ ..]) => {
            escaped == first && like(rest, text)
        }
        // No text is left for the escaped character.
        (['\\', '%' | '_', ..], []) => false,
        (['_', rest @ ..], [_, text @ ..]) => like(rest, text),
        ([expected, rest @ ..], [first, text @ ..]) => expected == first && like(rest, text),
        ([_, ..], []) => false,
    }
}

proptest! {
    #[test]
    fn an_expression_is_read_and_written_and_means_the_same(
        text in expression(), event in matching::event(),
    ) {
        let is_read = assert_is_read_back(&text);
        prop_assert!(matches!(is_read, Ok(()) | Err(ParseError::TooDeep { .. })), "{}: {:?}", text, is_read);
        if let Ok(cesql) = text.parse::<Cesql>() {
            let members = Members::parse(&event).expect("an object");
            let (value, error) = cesql.evaluate(&members);
            prop_assert_eq!(cesql.takes(&members), error.is_none() && value == Value::Boolean(true));
        }
    }

    #[test]
    fn no_text_panics_and_what_is_read_is_read_back(any in any::<String>(), tokens in tokens()) {
        for text in [any, tokens] {
            // Most of these texts are refused.
            let _is_read = assert_is_read_back(&text).is_ok();
        }
    }

    #[test]
    fn an_event_that_matches_an_expression_matches_what_it_implies(
        text in prop_oneof![matching::cesql(), lists()], event in event(),
    ) {
        let cesql: Cesql = text.parse().expect("an expression");
        let members = Members::parse(&event).expect("an object");
        prop_assert!(!cesql.takes(&members) || cesql.implied().takes(&members), "{} of {}", cesql.implied(), text);
    }

    #[test]
    fn like_matches_what_trying_every_length_matches(
        pattern in r"[ab%_\\]{0,7}", text in r"[ab%_\\]{0,7}",
    ) {
        let Ok(cesql) = format!("type LIKE '{pattern}'").parse::<Cesql>() else { return Ok(()) };
        let event = serde_json::json!({ "type": text }).to_string();
        let [pattern, text] = [pattern, text].map(|part| part.chars().collect::<Vec<char>>());
        let members = Members::parse(&event).expect("an object");
        prop_assert_eq!(cesql.takes(&members), like(&pattern, &text));
    }
}
