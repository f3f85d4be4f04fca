//! Event patterns, as filters.
//!
//! Separate because a pattern has the shape of the event, and a filter is a list of conditions. A field matches if one of
//! its values does, and all fields have to. In an array of the event one element is enough. What a filter cannot express
//! is an error: without that condition, a destination would get events that are not meant for it.
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html>

use delivery::document::findings::{Message, quoted};
use delivery::document::reader::Cursor;
use serde_json::{Map, Value as Json, json};

/// The help for a condition that no filter expresses.
const KEEP: &str = "keep the condition in a rule of EventBridge that sends to the events queue, and leave it out here";
/// The member that is the same in every event.
const VERSION: &str = "version";

/// The filter of a pattern, which may be JSON in a text; `None` with an error if there is no such filter.
pub(super) fn filter(pattern: &Json, at: &Cursor<'_>) -> Option<Json> {
    let Json::Object(fields) = pattern else {
        return at.refuse("an event pattern has to be an object");
    };
    let conditions = all_of(fields, "").map_err(|message| at.error(message)).ok()?;
    Some(conditions.unwrap_or_else(everything))
}

/// The condition that every event matches.
fn everything() -> Json {
    json!({ "cesql": "TRUE" })
}

/// The pattern, whether it is a mapping or JSON in a text.
pub(super) fn read(at: &Cursor<'_>) -> Option<Json> {
    let Some(text) = at.peek_text() else { return Some(at.json()) };
    let read = serde_json::from_str(text);
    read.map_err(|error| at.error(format!("not JSON: {error}"))).ok()
}

/// The sources that a pattern names exactly; `None` if others match too.
pub(super) fn sources(pattern: &Json) -> Option<Vec<String>> {
    let sources = pattern.get("source")?.as_array()?;
    sources.iter().map(|source| source.as_str().map(str::to_owned)).collect()
}

/// The condition that all fields of an object match; `None` if it is none.
fn all_of(fields: &Map<String, Json>, parent: &str) -> Result<Option<Json>, Message> {
    let mut conditions = Vec::new();
    for (name, value) in fields {
        let path = if parent.is_empty() { name.clone() } else { format!("{parent}.{name}") };
        match value {
            Json::Array(alternatives) if name == "$or" => {
                let each = alternatives.iter().map(|of| {
                    let fields = of.as_object().ok_or("$or is a list of objects")?;
                    Ok(all_of(fields, parent)?.unwrap_or_else(everything))
                });
                conditions.push(joined("any", each.collect::<Result<_, Message>>()?));
            }
            Json::Array(_) if path == VERSION => {}
            Json::Array(values) => conditions.push(any_of(&path, name, values)?),
            Json::Object(fields) => conditions.extend(all_of(fields, &path)?),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
                let message = format!("the values of {} have to be a list", quoted(&path));
                return Err(message.into());
            }
        }
    }
    Ok((!conditions.is_empty()).then(|| joined("all", conditions)))
}

/// The condition that a field has one of these values. Texts share a condition, and so do numbers.
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
        conditions.push(field.text("In", &json!(texts), true));
    }
    if !numbers.is_empty() {
        conditions.push(field.condition("NumberIn", "values", json!(numbers)));
    }
    for value in others {
        let condition = match value {
            Json::Bool(_) => Some(field.condition("BoolEquals", "value", value.clone())),
            Json::Object(operators) => field.operators(operators),
            Json::Null | Json::Number(_) | Json::String(_) | Json::Array(_) => None,
        };
        let message = || not_expressed(path, &value.to_string()).help(KEEP);
        conditions.push(condition.ok_or_else(message)?);
    }
    Ok(joined("any", conditions))
}

fn not_expressed(path: &str, what: &str) -> Message {
    Message::new(format!("no filter expresses {} of {}", quoted(what), quoted(path)))
}

/// One condition as it is, several in a list.
fn joined(word: &str, mut conditions: Vec<Json>) -> Json {
    if conditions.len() == 1 { conditions.remove(0) } else { json!({ word: conditions }) }
}

/// A field of the event, by its path.
struct Field<'p> {
    path: &'p str,
}

impl Field<'_> {
    /// A condition on the value, or on an element of an array.
    fn condition(&self, operator: &str, of: &str, value: Json) -> Json {
        json!({ "eventGrid": { "operatorType": operator, "key": self.path, of: value, "arrays": "elements" } })
    }

    /// A condition on a text. A single value of a member that is a text has a plainer form.
    fn text(&self, how: &str, values: &Json, with_case: bool) -> Json {
        let plain = [("In", "exact"), ("BeginsWith", "prefix"), ("EndsWith", "suffix")];
        let plain = plain.iter().find(|(of, _)| *of == how && with_case && self.is_plain());
        if let (Some((_, word)), Some(texts)) = (plain, values.as_array()) {
            return joined(
                "any",
                texts.iter().map(|text| json!({ *word: { self.path: text } })).collect(),
            );
        }
        let mut condition = self.condition(&format!("String{how}"), "values", values.clone());
        if with_case {
            condition["eventGrid"]["caseSensitive"] = json!(true);
        }
        condition
    }

    /// Returns true for a member of every event that is a text.
    fn is_plain(&self) -> bool {
        ["source", "detail-type", "account", "region", "id", "time"].contains(&self.path)
    }

    /// The condition of an object such as `{"prefix": "eu-"}`; `None` if no filter expresses it.
    fn operators(&self, operators: &Map<String, Json>) -> Option<Json> {
        let (operator, value) = operators.iter().next().filter(|_| operators.len() == 1)?;
        match (operator.as_str(), value) {
            ("exists", Json::Bool(exists)) => {
                let operator = if *exists { "IsNotNull" } else { "IsNullOrUndefined" };
                Some(json!({ "eventGrid": { "operatorType": operator, "key": self.path } }))
            }
            ("numeric", Json::Array(comparisons)) => self.numeric(comparisons),
            ("anything-but", value) => self.anything_but(value),
            (word, value) => self.texts(word, value),
        }
    }

    /// The condition of an operator on texts, with one value or several.
    fn texts(&self, operator: &str, value: &Json) -> Option<Json> {
        let ignoring_case = value.get("equals-ignore-case");
        let values = ignoring_case.unwrap_or(value);
        let list = if values.is_array() { values.clone() } else { json!([values]) };
        let texts: Vec<&str> = list.as_array()?.iter().map(Json::as_str).collect::<Option<_>>()?;
        match operator {
            "prefix" => Some(self.text("BeginsWith", &list, ignoring_case.is_none())),
            "suffix" => Some(self.text("EndsWith", &list, ignoring_case.is_none())),
            "equals-ignore-case" => Some(self.text("In", &list, false)),
            "wildcard" => {
                let each = texts.into_iter().map(|pattern| self.wildcard(pattern));
                Some(joined("any", each.collect::<Option<_>>()?))
            }
            _ => None,
        }
    }

    /// The condition of a pattern with `*`. With one in the middle, no text can begin and end by the same characters.
    fn wildcard(&self, pattern: &str) -> Option<Json> {
        let parts: Vec<&str> = pattern.split('*').collect();
        let text = |how: &str, part: &str| self.text(how, &json!([part]), true);
        match parts.as_slice() {
            _ if pattern.contains('\\') => None,
            [whole] => Some(text("In", whole)),
            [begin, ""] => Some(text("BeginsWith", begin)),
            ["", end] => Some(text("EndsWith", end)),
            ["", part, ""] => Some(text("Contains", part)),
            [begin, end] if !may_overlap(begin, end) => {
                Some(json!({ "all": [text("BeginsWith", begin), text("EndsWith", end)] }))
            }
            _ => None,
        }
    }

    /// The conditions of comparisons such as `[">", 0, "<=", 5]`.
    fn numeric(&self, comparisons: &[Json]) -> Option<Json> {
        let comparison = |pair: &[Json]| {
            let [operator, value] = pair else { return None };
            let name = match operator.as_str()? {
                "=" => return Some(self.condition("NumberIn", "values", json!([value]))),
                "<" => "NumberLessThan",
                "<=" => "NumberLessThanOrEquals",
                ">" => "NumberGreaterThan",
                ">=" => "NumberGreaterThanOrEquals",
                _ => return None,
            };
            Some(self.condition(name, "value", value.clone()))
        };
        Some(joined("all", comparisons.chunks(2).map(comparison).collect::<Option<_>>()?))
    }

    /// The condition that a value is there, and is none of these.
    fn anything_but(&self, value: &Json) -> Option<Json> {
        let is_there = json!({ "eventGrid": { "operatorType": "IsNotNull", "key": self.path } });
        let values = if value.is_array() { value.clone() } else { json!([value]) };
        let all = |is: fn(&Json) -> bool| values.as_array().is_some_and(|of| of.iter().all(is));
        let other = if let Json::Object(operators) = value {
            let (operator, value) = operators.iter().next().filter(|_| operators.len() == 1)?;
            json!({ "not": self.texts(operator, value)? })
        } else if all(Json::is_number) {
            self.condition("NumberNotIn", "values", values)
        } else if all(Json::is_string) {
            json!({ "not": self.text("In", &values, true) })
        } else {
            return None;
        };
        Some(json!({ "all": [is_there, other] }))
    }
}

/// Returns true if a text that begins with one and ends with the other may be shorter than both.
fn may_overlap(begin: &str, end: &str) -> bool {
    end.char_indices().skip(1).any(|(at, _)| end.get(..at).is_some_and(|of| begin.ends_with(of)))
        || begin.ends_with(end)
}
