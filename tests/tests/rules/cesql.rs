//! CloudEvents SQL: the conformance kit, and properties of reading, writing and evaluating.

use std::collections::BTreeMap;
use std::fs;

use delivery::event::Members;
use delivery::subscription::filter::cesql::{Cesql, EvaluationError, ParseError, Value};
use lastmile_tests::conformance::{CESQL, Results};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::events::corpus_path;
use crate::matching;

/// A file of the kit.
#[derive(Deserialize)]
struct Kit {
    name: String,
    tests: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    expression: String,
    result: Option<Json>,
    error: Option<String>,
    event: Option<BTreeMap<String, Json>>,
    event_overrides: Option<BTreeMap<String, Json>>,
}

impl Case {
    /// The event as JSON; where the case says nothing, any valid one will do.
    fn event(&self) -> String {
        let any = [("specversion", "1.0"), ("id", "1"), ("source", "/any"), ("type", "any")];
        let any = any.map(|(name, value)| (name.to_owned(), Json::from(value)));
        let mut event = self.event.clone().unwrap_or_else(|| BTreeMap::from(any));
        event.extend(self.event_overrides.clone().unwrap_or_default());
        serde_json::to_string(&event).expect("JSON")
    }

    /// The wanted value and error, as this test shows them.
    fn wanted(&self) -> String {
        // Where the kit says nothing, the value is the default of a boolean.
        let result = self.result.clone().unwrap_or(Json::Bool(false));
        shown(&result, self.error.as_deref())
    }

    /// The value and error here.
    fn found(&self) -> String {
        let event = self.event();
        let members = Members::parse(&event).expect("an object");
        let cesql: Cesql = match self.expression.parse() {
            Ok(cesql) => cesql,
            // Here it is found when the expression is read.
            Err(ParseError::NoFunction { .. }) => {
                return shown(&false.into(), Some("missingFunction"));
            }
            Err(_) => return shown(&false.into(), Some("parse")),
        };
        let (value, error) = cesql.evaluate(&members);
        let value = match value {
            Value::Text(text) => Json::from(text.as_ref()),
            Value::Integer(number) => Json::from(number),
            Value::Boolean(is_true) => Json::from(is_true),
        };
        shown(&value, error.map(word))
    }
}

fn word(error: EvaluationError) -> &'static str {
    match error {
        EvaluationError::Math => "math",
        EvaluationError::Cast => "cast",
        EvaluationError::MissingAttribute => "missingAttribute",
        EvaluationError::Function => "functionEvaluation",
        EvaluationError::TooManySteps => "generic",
    }
}

fn shown(value: &Json, error: Option<&str>) -> String {
    let error = error.map(|error| format!(", error {error}")).unwrap_or_default();
    format!("{value}{error}")
}

/// The files of the kit, or `None` without a corpus.
fn kit() -> Option<Vec<Kit>> {
    let folder = corpus_path("cesql")?;
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let read = |path| {
        let text = fs::read_to_string(path).expect("a file of the kit");
        serde_saphyr::from_str(&text).expect("a file of the kit")
    };
    Some(paths.iter().map(read).collect())
}

#[test]
fn every_case_of_the_conformance_kit_has_its_value_and_error() {
    kit_results();
}

/// Checks each case of the kit; `None` without a corpus.
pub(crate) fn kit_results() -> Option<Results> {
    let kit = kit()?;
    let (mut results, mut count) = (Results::of(CESQL), 0);
    for (file, case) in kit.iter().flat_map(|of| of.tests.iter().map(move |case| (of, case))) {
        count += 1;
        let Case { name, expression, .. } = case;
        assert_eq!(case.found(), case.wanted(), "{}: {name}: {expression}", file.name);
        // As a filter, all of them mean the same.
        let wants = case.error.is_none() && case.result == Some(Json::Bool(true));
        let event = case.event();
        let takes = |cesql: Cesql| cesql.takes(&Members::parse(&event).expect("an object"));
        assert_eq!(case.expression.parse().is_ok_and(takes), wants, "{}", case.expression);
        results.count(None);
    }
    assert_eq!(count, 275);
    Some(results)
}

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
            2 => (prefix, inner.clone()).prop_map(|(prefix, of)| {
                let close = if prefix == "(" { ")" } else { "" };
                format!("{prefix}{of}{close}")
            }),
            1 => (inner.clone(), test).prop_map(|(of, test)| format!("{of} {test}")),
            1 => vec(inner.clone(), 1..3).prop_map(|list| format!("CONCAT_WS({})", list.join(","))),
            1 => inner.prop_map(|of| format!("n IN ({of}, {of})")),
        ]
    })
}

/// Lists of texts, some of which equal numbers and booleans of another spelling.
fn lists() -> impl Strategy<Value = String> {
    let text = select(&["'a'", "'1'", "'01'", "'+1'", "'-0'", "'true'", "'TRUE'"][..]);
    vec(text, 1..3).prop_map(|texts| format!("n IN ({})", texts.join(", ")))
}

/// An event with every attribute of such expressions, all of values that equal several texts.
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

/// What is read is written to a text that means the same.
fn assert_is_read_back(text: &str) -> Result<(), ParseError> {
    let read: Cesql = text.parse()?;
    let written = read.to_string();
    assert_eq!(written.parse::<Cesql>().as_ref(), Ok(&read), "{text} -> {written}");
    Ok(())
}

/// Whether a pattern matches, by trying every length of `%`.
fn like(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], text) => text.is_empty(),
        (['%', rest @ ..], text) => (0..=text.len()).any(|from| like(rest, &text[from..])),
        (['\\', escaped @ ('%' | '_'), rest @ ..], [first, text @ ..]) => {
            escaped == first && like(rest, text)
        }
        // An escaped character that nothing is left for.
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
            // Most are refused.
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
        let [pattern, text] = [pattern, text].map(|of| of.chars().collect::<Vec<char>>());
        let members = Members::parse(&event).expect("an object");
        prop_assert_eq!(cesql.takes(&members), like(&pattern, &text));
    }
}
