//! The conformance kit of CloudEvents SQL: each case has its value and its error.

use std::collections::BTreeMap;
use std::fs;

use delivery::event::Members;
use delivery::subscription::filter::cesql::{Cesql, EvaluationError, ParseError, Value};
use lastmile_tests::conformance::{CESQL, Results};
use serde::Deserialize;
use serde_json::Value as Json;

use super::outside;

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
    /// The event as JSON. A case without an event gets any valid event.
    fn event(&self) -> String {
        let any = [("specversion", "1.0"), ("id", "1"), ("source", "/any"), ("type", "any")];
        let any = any.map(|(name, value)| (name.to_owned(), Json::from(value)));
        let mut event = self.event.clone().unwrap_or_else(|| BTreeMap::from(any));
        event.extend(self.event_overrides.clone().unwrap_or_default());
        serde_json::to_string(&event).expect("JSON")
    }

    /// The expected value and error, in the notation of this test.
    fn wanted(&self) -> String {
        // If the kit names no result, the default of a boolean is expected.
        let result = self.result.clone().unwrap_or(Json::Bool(false));
        shown(&result, self.error.as_deref())
    }

    /// Our value and error, in the notation of this test.
    fn found(&self) -> String {
        let event = self.event();
        let members = Members::parse(&event).expect("an object");
        let cesql: Cesql = match self.expression.parse() {
            Ok(cesql) => cesql,
            // Our reader already finds a missing function when it reads the expression.
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
    let folder = outside("corpus/cesql")?;
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let read = |path| {
        let text = fs::read_to_string(path).expect("a file of the kit");
        serde_saphyr::from_str(&text).expect("a file of the kit")
    };
    Some(paths.iter().map(read).collect())
}

/// Checks each case of the kit; `None` without a corpus.
pub(super) fn results() -> Option<Results> {
    let kit = kit()?;
    let (mut results, mut count) = (Results::new(CESQL), 0);
    for (file, case) in kit.iter().flat_map(|file| file.tests.iter().map(move |case| (file, case)))
    {
        count += 1;
        let Case { name, expression, .. } = case;
        assert_eq!(case.found(), case.wanted(), "{}: {name}: {expression}", file.name);
        // As a filter, an error and any value but `true` mean no match.
        let wants = case.error.is_none() && case.result == Some(Json::Bool(true));
        let event = case.event();
        let takes = |cesql: Cesql| cesql.takes(&Members::parse(&event).expect("an object"));
        assert_eq!(case.expression.parse().is_ok_and(takes), wants, "{}", case.expression);
        results.count(None);
    }
    assert_eq!(count, 275);
    Some(results)
}
