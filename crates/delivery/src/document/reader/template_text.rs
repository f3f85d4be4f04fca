//! Parses strings of ARM templates: literal text, or an expression such as
//! `[parameters('endpoint')]`.
//!
//! This module is separate because Azure defines the syntax. Expressions are not evaluated, because
//! only a deployment determines their values.
//! <https://learn.microsoft.com/azure/azure-resource-manager/templates/template-expressions>

/// Returns the literal text of a string in an ARM template; `None` for an expression. A text in
/// brackets that begins with `[[` is literal: `[[a]` stands for `[a]`.
pub(super) fn literal(text: &str) -> Option<&str> {
    let in_brackets = text.strip_prefix('[').filter(|rest| rest.ends_with(']'));
    match in_brackets {
        None => Some(text),
        Some(rest) => rest.starts_with('[').then_some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_brackets_is_an_expression_unless_it_begins_with_two() {
        for (text, expected) in [
            ("[parameters('a')]", None),
            ("[]", None),
            ("[[a]", Some("[a]")),
            ("[[a]]", Some("[a]]")),
            ("[a", Some("[a")),
            ("[[a", Some("[[a")),
            ("[", Some("[")),
            ("a]", Some("a]")),
            ("https://h/[a]", Some("https://h/[a]")),
            (" [a]", Some(" [a]")),
            ("", Some("")),
        ] {
            assert_eq!(literal(text), expected, "{text}");
        }
    }
}
