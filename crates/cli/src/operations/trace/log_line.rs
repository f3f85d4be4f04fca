//! Parses a log line of the functions from JSON.
//!
//! Separate because the log lines of a deployment are JSON, but functions in this process create a
//! [`local::watch::Line`] directly. The same code then describes lines from both sources. Fields
//! that no description uses are dropped.

use std::collections::BTreeMap;

use delivery::time::moment;
use local::watch::Line;
use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;

/// The fields that are parsed. Lines about a delivery, an unmatched event, or the outcome of a
/// replay contain them.
const FIELDS: [&str; 32] = [
    "age_ms",
    "attempt",
    "attempts",
    "container",
    "delivery",
    "delivery_id",
    "detail",
    "duration_ms",
    "end",
    "event_id",
    "job",
    "key",
    "leg",
    "letter",
    "message_id",
    "outcome",
    "problem",
    "queue",
    "reason",
    "sink",
    "slow_after_ms",
    "source",
    "status",
    "subscription",
    "topic",
    "trace_id",
    "type",
    "verdict",
    "wait_ms",
    "why",
    "destination",
    "allowed_rate",
];

/// Parses a line. Returns `None` for other text, such as a line of metrics or a line that Lambda
/// itself logs.
pub(crate) fn log_line(json: &str) -> Option<Line> {
    let Value::Object(members) = serde_json::from_str(json).ok()? else { return None };
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let at_ms = moment::parse(text("timestamp")?)?;
    let level = text("level")?.parse::<LevelFilter>().ok()?.into_level()?;
    let name = text("message")?.to_owned();
    let fields: BTreeMap<&'static str, String> =
        FIELDS.into_iter().filter_map(|name| Some((name, plain(members.get(name)?)?))).collect();
    Some(Line { name, at_ms, level, fields })
}

/// Formats a JSON value as the text of a field; `None` for objects, arrays and `null`.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
