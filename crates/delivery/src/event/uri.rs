//! Encodes URI references, which CloudEvents requires in `source`.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// ASCII characters that a URI reference must not contain (RFC 3986, 2). `%` is not among them, so
/// a percent-encoded source stays unchanged.
const NOT_IN_A_REFERENCE: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Percent-encodes the characters of a text that a URI reference must not contain. Nearly every
/// source stays unchanged.
#[must_use]
pub(crate) fn reference(text: &str) -> String {
    utf8_percent_encode(text, NOT_IN_A_REFERENCE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_not_allowed_in_a_reference_are_encoded_and_all_others_stay() {
        for (text, made) in [
            ("/subscriptions/s/topics/t?x=%20#f", "/subscriptions/s/topics/t?x=%20#f"),
            ("shop orders <x>\u{0}ö", "shop%20orders%20%3Cx%3E%00%C3%B6"),
        ] {
            assert_eq!(reference(text), made);
        }
    }
}
