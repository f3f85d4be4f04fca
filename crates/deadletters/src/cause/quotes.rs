//! Quoted parts of a text: which of them name something, and which hold a value.
//!
//! Separate because the rule is a judgement of its own. An identifier names a field or a constraint and is part of the cause
//! (`unknown field "amount"`). Other quoted texts are values of one event (`"red shoes, size 42"`), and so is what stands after a
//! word such as `value` (`Duplicate entry 'jane' for key 'users.email'`).

use super::template;

/// A longer quoted text is no identifier.
const IDENTIFIER_MAX_CHARS: usize = 40;
/// Quoted text after one of these words is a value, whatever it looks like.
const BEFORE_VALUES: [&str; 14] = [
    "entry", "value", "values", "got", "received", "was", "input", "found", "user", "customer",
    "username", "sku", "id", "uuid:",
];

/// A quoted part at the beginning of a text.
pub(super) struct Quoted<'a> {
    pub(super) open: char,
    pub(super) close: char,
    /// The part with its marks.
    pub(super) whole: &'a str,
    /// The part without its marks.
    inner: &'a str,
    /// The rest of the text.
    pub(super) after: &'a str,
    is_after_value: bool,
}

/// The quoted part that a text begins with. An apostrophe within a word is no mark.
pub(super) fn quoted<'a>(before: &str, text: &'a str) -> Option<Quoted<'a>> {
    let open = text.chars().next()?;
    let close = match open {
        '"' | '\'' | '`' => open,
        '“' => '”',
        '‘' => '’',
        '«' => '»',
        // PostgreSQL: `Key (sku)=(A 1) already exists`.
        '(' if before.ends_with("=") => ')',
        _ => return None,
    };
    if before.ends_with(char::is_alphanumeric) {
        return None;
    }
    let mut rest = text.strip_prefix(open)?;
    loop {
        let (_, after) = rest.split_once(close)?;
        if !after.starts_with(char::is_alphanumeric) {
            let whole = text.strip_suffix(after)?;
            let inner = whole.strip_prefix(open)?.strip_suffix(close)?;
            let is_after_value = open == '(' || ends_with_value_word(before);
            return Some(Quoted { open, close, whole, inner, after, is_after_value });
        }
        rest = after;
    }
}

fn ends_with_value_word(before: &str) -> bool {
    let before = before.trim_end();
    let word = before.rsplit(' ').next().unwrap_or_default();
    BEFORE_VALUES.iter().any(|of| word.eq_ignore_ascii_case(of))
}

impl Quoted<'_> {
    /// True for a short word of letters, digits, dots and underscores that contains no id.
    pub(super) fn is_identifier(&self) -> bool {
        let Self { inner, is_after_value, .. } = self;
        // A function is a name too: `Customer.getEmail()`.
        let inner = inner.strip_suffix("()").unwrap_or(inner);
        let is_part =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$' | '[' | ']');
        !is_after_value
            && inner.len() <= IDENTIFIER_MAX_CHARS
            && inner.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$'))
            && inner.chars().all(is_part)
            && template::of(inner) == inner
    }
}
