//! Reads texts and sections that have to be literal. The only supported function is `Fn::Sub`
//! without variables, which is read as its text.
//!
//! Separate because every part of a delivery has literal values.

use delivery::document::findings::Message;
use delivery::document::reader::{Cursor, Entry, Fields};

/// Help text for a value that only the deployed stack has.
const DEPLOYED: &str = "write the value, or convert the outputs of aws events describe-rule, list-targets-by-rule, \
                        describe-api-destination and describe-connection";

/// Returns the literal text at the cursor. Reports a value that only the deployed stack has.
pub(super) fn literal<'a>(at: &Cursor<'a>) -> Option<&'a str> {
    if let Some(text) = at.peek("Fn::Sub").and_then(|text| text.peek_text())
        && !is_dynamic(text)
    {
        return Some(text);
    }

    let is_deployed = at.is_mapping() || at.peek_text().is_some_and(is_dynamic);
    if is_deployed {
        return refuse_deployed(at);
    }
    at.text()
}

fn is_dynamic(text: &str) -> bool {
    ["${", "{{resolve:"].iter().any(|sign| text.contains(sign))
}

/// Returns the section `name` of a resource. Returns `Some(None)` if the resource has no such
/// section. Reports a function in its place and returns `None`, because the settings that the
/// function computes are unknown.
pub(super) fn section<'a>(fields: &Fields<'a>, name: &'static str) -> Option<Option<Cursor<'a>>> {
    let Some(at) = fields.given(name) else { return Some(None) };
    let is_function = |entry: &Entry<'_>| entry.name.starts_with("Fn::") || entry.name == "Ref";
    if at.peek_entries().iter().any(is_function) {
        return refuse_deployed(&at);
    }
    Some(Some(at))
}

/// Reports a value that only the deployed stack has.
pub(super) fn refuse_deployed<T>(at: &Cursor<'_>) -> Option<T> {
    at.refuse(Message::new("this value is known only after deployment").help(DEPLOYED))
}
