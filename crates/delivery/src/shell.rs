//! Quotes arguments of shell commands that a person may copy.

/// Returns the text as one argument for a POSIX shell (Shell Command Language, 2.2.2). It is quoted
/// only if necessary.
#[must_use]
pub fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/:.-_".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_quotes_where_it_needs_them() {
        assert_eq!(quoted("s3://letters/of-shop_1"), "s3://letters/of-shop_1");
        assert_eq!(quoted("bob's $HOME"), r"'bob'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
