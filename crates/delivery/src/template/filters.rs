//! Implements the filters of templates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use url::form_urlencoded::byte_serialize;

use super::budget::{BUILT, ITEM, READ};
use super::date;
use super::error::Fault;
use super::expression::Filter;
use super::scope::Scope;
use super::value::Value;

/// Maximum number of bytes that one byte becomes when the case of a text changes (Unicode,
/// `SpecialCasing.txt`).
const CASE_GROWTH_MAX: usize = 3;

/// Applies a filter to a value. The evaluator itself handles `default`.
///
/// # Errors
///
/// Fails if the filter does not accept the value, or if the fuel is used up.
pub(super) fn apply<'v>(
    scope: Scope<'v>,
    value: &Value<'v>,
    filter: &Filter,
    [first, second]: [Option<Value<'v>>; 2],
) -> Result<Value<'v>, Fault> {
    match filter {
        Filter::Default(..) => Ok(value.clone()),
        Filter::ToJson => scope.json(value).map(Value::built),
        Filter::Date(format) => {
            let text = value.as_text().map_or(0, str::len);
            scope.budget.spend(text, READ)?;
            let mut built = scope.builder();
            built.push(&date::format(format, value)?)?;
            Ok(Value::built(built))
        }
        Filter::Base64 => {
            let text = text_of(value, "base64")?;
            // Three bytes become four characters of base64.
            built(scope, text.len() / 3 * 4 + 4, || STANDARD.encode(text))
        }
        Filter::Upper => {
            let text = text_of(value, "upper")?;
            built(scope, text.len() * CASE_GROWTH_MAX, || text.to_uppercase())
        }
        Filter::Lower => {
            let text = text_of(value, "lower")?;
            built(scope, text.len() * CASE_GROWTH_MAX, || text.to_lowercase())
        }
        Filter::UrlEncode => {
            let text = text_of(value, "urlencode")?;
            // A byte becomes at most three characters.
            built(scope, text.len() * 3, || byte_serialize(text.as_bytes()).collect())
        }
        Filter::Replace(..) => {
            let (old, new) =
                (first.unwrap_or(Value::Undefined), second.unwrap_or(Value::Undefined));
            replace(scope, value, &old, &new)
        }
        Filter::Join(_) => join(scope, value, first.as_ref()),
        Filter::Hmac(name) => hmac(scope, value, name),
        Filter::Length => length(scope, value),
        Filter::First => {
            let length = list_length(value, "first")?;
            Ok(if length == 0 { Value::Undefined } else { value.item(0) })
        }
        Filter::Last => {
            let length = list_length(value, "last")?;
            Ok(length.checked_sub(1).map_or(Value::Undefined, |last| value.item(last)))
        }
    }
}

/// Builds a text of at most `max_bytes`. The fuel for all these bytes is charged before the text is
/// built.
fn built<'v>(
    scope: Scope<'v>,
    max_bytes: usize,
    build: impl FnOnce() -> String,
) -> Result<Value<'v>, Fault> {
    scope.budget.spend(max_bytes, BUILT)?;
    Ok(Value::Built(build().into()))
}

fn replace<'v>(
    scope: Scope<'v>,
    value: &Value<'v>,
    old: &Value<'v>,
    new: &Value<'v>,
) -> Result<Value<'v>, Fault> {
    let text = text_of(value, "replace")?;
    let (old, new) = (text_of(old, "replace")?, text_of(new, "replace")?);
    if old.is_empty() {
        return Err(Fault::new(
            "`replace` needs a string to replace, but the first argument is empty",
        ));
    }
    scope.budget.spend(text.len().saturating_add(old.len()), READ)?;
    let mut built = scope.builder();
    let mut end = 0;
    for (start, _) in text.match_indices(old) {
        built.push(text.get(end..start).unwrap_or_default())?;
        built.push(new)?;
        end = start + old.len();
    }
    built.push(text.get(end..).unwrap_or_default())?;
    Ok(Value::built(built))
}

fn join<'v>(
    scope: Scope<'v>,
    value: &Value<'v>,
    separator: Option<&Value<'v>>,
) -> Result<Value<'v>, Fault> {
    let length = list_length(value, "join")?;
    let separator = separator.map_or(Ok(""), |separator| text_of(separator, "join"))?;
    scope.budget.spend(length, ITEM / 2)?;
    let mut built = scope.builder();
    for index in 0..length {
        if index > 0 {
            built.push(separator)?;
        }
        scope.push(&value.item(index), &mut built)?;
    }
    Ok(Value::built(built))
}

fn hmac<'v>(scope: Scope<'v>, value: &Value<'v>, name: &str) -> Result<Value<'v>, Fault> {
    let text = text_of(value, "hmac")?;
    scope.budget.spend(text.len(), BUILT)?;
    let key = scope.secret(name)?;
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes keys of every length");
    mac.update(text.as_bytes());
    let mut built = scope.builder();
    built.push(&hex::encode(mac.finalize().into_bytes()))?;
    Ok(Value::built(built))
}

fn length<'v>(scope: Scope<'v>, value: &Value<'v>) -> Result<Value<'v>, Fault> {
    if let Some(text) = value.as_text() {
        scope.budget.spend(text.len(), READ)?;
        return Ok(Value::count(text.chars().count()));
    }
    let length = value.list_length().or_else(|| value.member_count());
    length.map(Value::count).ok_or_else(|| wrong("length", "a string, a list or an object", value))
}

fn text_of<'t>(value: &'t Value<'_>, filter: &str) -> Result<&'t str, Fault> {
    value.as_text().ok_or_else(|| wrong(filter, "a string", value))
}

fn list_length(value: &Value<'_>, filter: &str) -> Result<usize, Fault> {
    value.list_length().ok_or_else(|| wrong(filter, "a list", value))
}

fn wrong(filter: &str, needed: &str, value: &Value<'_>) -> Fault {
    Fault::new(format!("`{filter}` needs {needed}, but the value is {}", value.kind()))
}
