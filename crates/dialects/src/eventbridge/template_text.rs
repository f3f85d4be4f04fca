//! Writes texts of EventBridge as native templates: constants, and paths into the event.
//!
//! Separate because every part of a request may have both constants and paths. A rule sends the
//! whole event to a queue, and the topic reads it as custom JSON. Therefore `$.detail.id` becomes
//! `event.data.detail.id`.

/// Writes a constant as a template, escaping everything that looks like a tag. `is_before_tag` is
/// true if a tag follows the text.
pub(super) fn constant(text: &str, is_before_tag: bool) -> String {
    let mut written = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let begins_tag = match characters.peek() {
            Some(next) => matches!(next, '{' | '%' | '#'),
            None => is_before_tag,
        };
        match character {
            '{' if begins_tag => written.push_str("{{ '{' }}"),
            other => written.push(other),
        }
    }
    written
}

/// Returns the expression for a path such as `$.detail.items[0].id`; `None` for a path that may
/// lead to several values.
pub(super) fn expression(path: &str) -> Option<String> {
    let mut rest = path.trim().strip_prefix('$')?;
    let mut written = "event.data".to_owned();
    while !rest.is_empty() {
        if let Some(index) = rest.strip_prefix('[') {
            let (index, after) = index.split_once(']')?;
            index.parse::<u32>().ok()?;
            written.push_str(&format!("[{index}]"));
            rest = after;
            continue;
        }
        let name = rest.strip_prefix('.')?;
        let (name, after) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
        let is_word = |other: &str| name.chars().all(|c| c.is_alphanumeric() || other.contains(c));
        if name.is_empty() || !is_word("_-/:") {
            return None;
        }
        let is_plain =
            is_word("_") && name.is_ascii() && !name.starts_with(|c: char| c.is_ascii_digit());
        written.push_str(&if is_plain { format!(".{name}") } else { format!("['{name}']") });
        rest = after;
    }
    Some(written)
}

/// Converts the value of a header, a parameter or a part of a path to a template. The value is a
/// constant, or a path into the event. The error is a path that may lead to several values.
pub(super) fn dynamic(value: &str) -> Result<String, &str> {
    if !value.starts_with("$.") {
        return Ok(constant(value, false));
    }
    expression(value).map(|expression| format!("{{{{ {expression} }}}}")).ok_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_an_expression_unless_it_may_lead_to_several_values() {
        for (path, expected) in [
            ("$", Some("event.data")),
            ("$.detail.id", Some("event.data.detail.id")),
            ("$.detail-type", Some("event.data['detail-type']")),
            ("$.detail.items[0].a/b", Some("event.data.detail.items[0]['a/b']")),
            ("$.detail.7", Some("event.data.detail['7']")),
            ("$.detail.items[*]", None),
            ("$..id", None),
            ("$.detail.", None),
            ("$.a['b']", None),
            ("$.it's", None),
            ("detail", None),
        ] {
            assert_eq!(expression(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn nothing_in_a_constant_is_a_tag() {
        for (text, before_tag, expected) in [
            (r#"{"a":{"b":1}}"#, false, r#"{"a":{"b":1}}"#),
            ("{{ x }}", false, "{{ '{' }}{ x }}"),
            ("{{{%", false, "{{ '{' }}{{ '{' }}{{ '{' }}%"),
            ("a{", false, "a{"),
            ("a{", true, "a{{ '{' }}"),
        ] {
            assert_eq!(constant(text, before_tag), expected, "{text}");
        }
    }
}
