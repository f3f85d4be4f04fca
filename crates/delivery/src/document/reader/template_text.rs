//! Text of ARM templates: literal text, or an expression such as `[parameters('endpoint')]`.
//!
//! Separate because the rule is Azure's. Expressions are not evaluated: their values are known to a deployment only.
//! <https://learn.microsoft.com/azure/azure-resource-manager/templates/template-expressions>

/// The literal text of a text in a template; `None` for an expression. Of text in brackets, two at the beginning stand
/// for one: `[[a]` is `[a]`.
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
