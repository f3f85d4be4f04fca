//! Indents JSON for reading: only white space changes. Pure.
//!
//! Separate because parsing and serializing would change the event: numbers would lose digits,
//! members would lose their order, and repeated members would lose all values but the last.

use serde::de::IgnoredAny;

const INDENT: &str = "  ";
/// The maximum depth of indentation. Deeper levels are not indented further.
const LEVELS_MAX: usize = 40;
/// The limit for added white space is this number of bytes plus twice the length of the text.
/// Beyond the limit, the rest of the text stays on one line. The limit protects against events that
/// are nested deeply on purpose.
const ADDED_MAX_BYTES: usize = 16 * 1_024;

/// Indents JSON text; `None` if the text is not JSON.
pub(crate) fn indented(text: &str) -> Option<String> {
    // Validate first, because the loop assumes valid JSON.
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let (mut out, mut level, mut quoted, mut escaped) =
        (String::with_capacity(text.len() * 2), 0_usize, false, false);
    let mut rest = text.chars().peekable();
    let mut added_max = 2 * text.len() + ADDED_MAX_BYTES;
    let mut new_line = |out: &mut String, level: usize| {
        let added = 1 + INDENT.len() * level.min(LEVELS_MAX);
        if let Some(left) = added_max.checked_sub(added) {
            added_max = left;
            out.push('\n');
            out.push_str(&INDENT.repeat(level.min(LEVELS_MAX)));
        }
    };
    while let Some(c) = rest.next() {
        if quoted {
            out.push(c);
            quoted = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                // Skip white space, so that an empty object or array stays on its line.
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                out.push(c);
                match rest.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        level += 1;
                        new_line(&mut out, level);
                    }
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                new_line(&mut out, level);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, level);
            }
            ':' => out.push_str(": "),
            other => {
                quoted = other == '"';
                out.push(other);
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_white_space_between_the_parts_changes() {
        let text =
            r#"{"n":12345678901234567890123,"a":[ ] ,"b":{"z":"x, {\"\\","a":[1,2]},"n":1e2}"#;
        let shown = indented(text).unwrap();
        assert_eq!(
            shown,
            "{\n  \"n\": 12345678901234567890123,\n  \"a\": [],\n  \"b\": {\n    \"z\": \"x, {\\\"\\\\\",\n    \"a\": [\n      1,\n      2\n    ]\n  },\n  \"n\": 1e2\n}"
        );
        for other in ["", "hello", "{", "[1] 2"] {
            assert_eq!(indented(other), None, "{other}");
        }
        assert_eq!(indented(" \"a\" ").as_deref(), Some("\"a\""));
    }

    #[test]
    fn a_deeply_nested_event_does_not_fill_the_page() {
        let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let text = format!("[{}{nested}]", format!("{nested},").repeat(400));
        let shown = indented(&text).expect("JSON");
        assert!(shown.len() <= 3 * text.len() + ADDED_MAX_BYTES, "{} bytes", shown.len());
        let unspaced: String = shown.chars().filter(|c| !c.is_whitespace()).collect();
        assert_eq!(unspaced, text);
    }
}
