//! Converts event patterns into filters.
//!
//! Separate because a pattern has the shape of the event, while a filter is a list of conditions. A
//! field matches if one of its listed values does. An event matches if all fields do. A filter may
//! match more than its pattern if two elements of an array match two conditions
//! (docs/coming-from/eventbridge.md). Any other condition that a filter cannot express is an error.
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html>

use delivery::document::findings::{Message, quoted};
use delivery::document::reader::Cursor;
use serde_json::{Map, Value as Json, json};

use super::super::text;
use super::literal::refuse_deployed;

/// Help text for a condition that no filter can express.
const KEEP: &str = "keep the condition in a rule of EventBridge that sends to the events queue, \
                    and omit it here";
/// Members that every event has, and whose values are always texts.
const PLAIN: [&str; 7] = ["version", "id", "source", "detail-type", "account", "region", "time"];

/// Returns the filter for a pattern. Reports an error and returns `None` if no filter expresses the
/// pattern.
pub(super) fn filter(pattern: &Json, at: &Cursor<'_>) -> Option<Json> {
    let Json::Object(fields) = pattern else {
        return at.refuse("an event pattern must be an object");
    };
    if is_deployed(pattern) {
        return refuse_deployed(at);
    }
    let conditions = all_of(fields, "").map_err(|message| at.error(message)).ok()?;
    Some(conditions.unwrap_or_else(everything))
}

/// True if the pattern contains a function of CloudFormation, or a reference that CloudFormation
/// resolves. A field of an event may be named `Ref` too, but its value in a pattern is never a
/// text.
fn is_deployed(pattern: &Json) -> bool {
    match pattern {
        Json::String(text) => text.contains("{{resolve:"),
        Json::Array(values) => values.iter().any(is_deployed),
        Json::Object(fields) => fields.iter().any(|(name, value)| {
            name.starts_with("Fn::") || name == "Ref" && value.is_string() || is_deployed(value)
        }),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

/// Returns a condition that every event satisfies.
fn everything() -> Json {
    json!({ "cesql": "TRUE" })
}

/// Reads the pattern at the cursor, which is a mapping, or a text that contains JSON. A duplicate
/// field is an error, because one condition would be lost.
pub(super) fn read(at: &Cursor<'_>) -> Option<Json> {
    let Some(text) = at.peek_text() else { return Some(at.json()) };
    let read = text::parse("pattern.json", text).into_document();
    read.map(|pattern| at.beside(&pattern).json()).map_err(|problem| at.error(problem)).ok()
}

/// Returns the event sources that a pattern names exactly; `None` if other sources match too.
pub(super) fn sources(pattern: &Json) -> Option<Vec<String>> {
    let sources = pattern.get("source")?.as_array()?;
    sources.iter().map(|source| source.as_str().map(str::to_owned)).collect()
}

/// Returns the condition that all fields of an object match; `None` for an empty object.
fn all_of(fields: &Map<String, Json>, parent: &str) -> Result<Option<Json>, Message> {
    let mut conditions = Vec::new();
    for (name, value) in fields {
        let path = if parent.is_empty() { name.clone() } else { format!("{parent}.{name}") };
        match value {
            Json::Array(alternatives) if name == "$or" => {
                let each = alternatives.iter().map(|alternative| {
                    let fields = alternative.as_object().ok_or("$or must be a list of objects")?;
                    Ok(all_of(fields, parent)?.unwrap_or_else(everything))
                });
                conditions.push(joined("any", each.collect::<Result<_, Message>>()?));
            }
            Json::Array(values) => conditions.push(any_of(&path, name, values)?),
            Json::Object(fields) => conditions.extend(all_of(fields, &path)?),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
                let message = format!("the values of {} must be a list", quoted(&path));
                return Err(message.into());
            }
        }
    }
    Ok((!conditions.is_empty()).then(|| joined("all", conditions)))
}

/// Returns the condition that a field has one of these values. Texts share one condition, and so do
/// numbers.
fn any_of(path: &str, name: &str, values: &[Json]) -> Result<Json, Message> {
    if name.contains('.') || values.is_empty() {
        return Err(not_expressed(path, "this field").help(KEEP));
    }
    let field = Field { path };
    let (texts, others): (Vec<_>, Vec<_>) = values.iter().partition(|value| value.is_string());
    let (numbers, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|value| value.is_number());
    let mut conditions = Vec::new();
    if !texts.is_empty() {
        let is_one = Text { how: "In", with_case: true, is_negated: false };
        conditions.push(field.text(is_one, &json!(texts)));
    }
    if !numbers.is_empty() {
        conditions.push(field.comparison("NumberIn", &json!(numbers)));
    }
    for value in others {
        let condition = match value {
            Json::Bool(_) => Some(field.comparison("BoolEquals", value)),
            Json::Object(operators) => field.operators(operators),
            Json::Null | Json::Number(_) | Json::String(_) | Json::Array(_) => None,
        };
        let message = || not_expressed(path, &value.to_string()).help(KEEP);
        conditions.push(condition.ok_or_else(message)?);
    }
    Ok(joined("any", conditions))
}

fn not_expressed(path: &str, condition: &str) -> Message {
    Message::new(format!("a filter cannot express {} of {}", quoted(condition), quoted(path)))
}

/// Returns a single condition unchanged, and several as a list under `word`.
fn joined(word: &str, mut conditions: Vec<Json>) -> Json {
    if conditions.len() == 1 { conditions.remove(0) } else { json!({ word: conditions }) }
}

/// A comparison of a text field with values.
struct Text {
    /// Suffix of the filter operator's name, such as `BeginsWith`.
    how: &'static str,
    with_case: bool,
    is_negated: bool,
}

/// The path of a field in the event.
struct Field<'p> {
    path: &'p str,
}

impl Field<'_> {
    /// Returns a condition with this operator on the field. If the value of the field is an array,
    /// the condition is true if it is true for one element.
    fn condition(&self, operator: &str) -> Json {
        json!({ "eventGrid": { "operatorType": operator, "key": self.path, "arrays": "leaves" } })
    }

    /// Returns a condition that compares the field with one value, or with several in a list.
    fn comparison(&self, operator: &str, value: &Json) -> Json {
        let mut condition = self.condition(operator);
        let field = if value.is_array() { "values" } else { "value" };
        condition["eventGrid"][field] = value.clone();
        condition
    }

    /// Returns a condition on a text field. Members of [`PLAIN`] have a simpler form.
    fn text(&self, Text { how, with_case, is_negated }: Text, values: &Json) -> Json {
        let plain = [("In", "exact"), ("BeginsWith", "prefix"), ("EndsWith", "suffix")];
        let plain =
            plain.iter().find(|(operator, _)| *operator == how && PLAIN.contains(&self.path));
        let plain = plain.filter(|_| with_case && !is_negated);
        if let (Some((_, word)), Some(texts)) = (plain, values.as_array()) {
            let each = texts.iter().map(|text| json!({ *word: { self.path: text } }));
            return joined("any", each.collect());
        }
        let not = if is_negated { "Not" } else { "" };
        let mut condition = self.comparison(&format!("String{not}{how}"), values);
        if with_case {
            condition["eventGrid"]["caseSensitive"] = json!(true);
        }
        condition
    }

    /// Converts an object with an operator, such as `{"prefix": "eu-"}`; returns `None` if no
    /// filter expresses it.
    fn operators(&self, operators: &Map<String, Json>) -> Option<Json> {
        match single(operators)? {
            ("exists", Json::Bool(true)) => Some(self.condition("IsNotNull")),
            ("exists", Json::Bool(false)) => Some(self.condition("IsNullOrUndefined")),
            ("numeric", Json::Array(comparisons)) => self.numeric(comparisons),
            ("anything-but", value) => self.anything_but(value),
            (word, value) => self.texts(word, value, false),
        }
    }

    /// Converts an operator that compares texts, with one value or several.
    fn texts(&self, operator: &str, value: &Json, is_negated: bool) -> Option<Json> {
        let text = |how| Text { how, with_case: true, is_negated };
        let without_case = |how| Text { with_case: false, ..text(how) };
        let ignoring_case = value.as_object().and_then(single);
        let (text, values) = match (operator, ignoring_case) {
            ("prefix", Some(("equals-ignore-case", value))) => (without_case("BeginsWith"), value),
            ("suffix", Some(("equals-ignore-case", value))) => (without_case("EndsWith"), value),
            ("prefix", _) => (text("BeginsWith"), value),
            ("suffix", _) => (text("EndsWith"), value),
            ("equals-ignore-case", _) => (without_case("In"), value),
            ("wildcard", _) => return self.wildcards(&texts_of(value)?, is_negated),
            _ => return None,
        };
        Some(self.text(text, &json!(texts_of(values)?)))
    }

    /// Converts wildcard patterns, which contain `*`. A negated condition requires that no pattern
    /// matches, which a filter expresses for one pattern only.
    fn wildcards(&self, patterns: &[&str], is_negated: bool) -> Option<Json> {
        if is_negated && patterns.len() > 1 {
            return None;
        }
        let each = patterns.iter().map(|pattern| self.wildcard(pattern, is_negated));
        Some(joined("any", each.collect::<Option<_>>()?))
    }

    /// Converts one wildcard pattern. A pattern with `*` inside becomes a prefix and a suffix;
    /// returns `None` if they may overlap. Example: `ab*ba` does not match `aba`, but its prefix
    /// and its suffix do.
    fn wildcard(&self, pattern: &str, is_negated: bool) -> Option<Json> {
        let parts: Vec<&str> = pattern.split('*').collect();
        let text =
            |how, part: &str| self.text(Text { how, with_case: true, is_negated }, &json!([part]));
        match parts.as_slice() {
            _ if pattern.contains('\\') => None,
            [whole] => Some(text("In", whole)),
            [begin, ""] => Some(text("BeginsWith", begin)),
            ["", end] => Some(text("EndsWith", end)),
            ["", part, ""] => Some(text("Contains", part)),
            [begin, end] if !may_overlap(begin, end) => {
                let word = if is_negated { "any" } else { "all" };
                Some(json!({ word: [text("BeginsWith", begin), text("EndsWith", end)] }))
            }
            _ => None,
        }
    }

    /// Converts comparisons such as `[">", 0, "<=", 5]`.
    fn numeric(&self, comparisons: &[Json]) -> Option<Json> {
        let comparison = |pair: &[Json]| {
            let [operator, value] = pair else { return None };
            let name = match operator.as_str()? {
                "=" => return Some(self.comparison("NumberIn", &json!([value]))),
                "<" => "NumberLessThan",
                "<=" => "NumberLessThanOrEquals",
                ">" => "NumberGreaterThan",
                ">=" => "NumberGreaterThanOrEquals",
                _ => return None,
            };
            Some(self.comparison(name, value))
        };
        Some(joined("all", comparisons.chunks(2).map(comparison).collect::<Option<_>>()?))
    }

    /// Converts `anything-but`, which requires a value that is none of the listed values.
    fn anything_but(&self, value: &Json) -> Option<Json> {
        if let Json::Object(operators) = value {
            let (operator, value) = single(operators)?;
            return self.texts(operator, value, true);
        }
        if let Some(texts) = texts_of(value) {
            let is_none = Text { how: "In", with_case: true, is_negated: true };
            return Some(self.text(is_none, &json!(texts)));
        }
        let numbers = list_of(value);
        numbers
            .iter()
            .all(|element| element.is_number())
            .then(|| self.comparison("NumberNotIn", &json!(numbers)))
    }
}

/// Returns the operator and the value of an object with exactly one member.
fn single(operators: &Map<String, Json>) -> Option<(&str, &Json)> {
    let first = operators.iter().next().filter(|_| operators.len() == 1);
    first.map(|(operator, value)| (operator.as_str(), value))
}

/// Returns the elements of a list, or the value itself.
fn list_of(value: &Json) -> Vec<&Json> {
    value.as_array().map_or_else(|| vec![value], |list| list.iter().collect())
}

/// Returns one text or several; `None` if a value of a different type is among them.
fn texts_of(value: &Json) -> Option<Vec<&str>> {
    list_of(value).into_iter().map(Json::as_str).collect()
}

/// True if a text with this prefix and suffix may be shorter than both together: `aba` for `ab` and
/// `ba`.
fn may_overlap(begin: &str, end: &str) -> bool {
    end.char_indices()
        .skip(1)
        .any(|(at, _)| end.get(..at).is_some_and(|start| begin.ends_with(start)))
        || begin.ends_with(end)
}
