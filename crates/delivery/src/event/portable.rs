//! Embeds JSON of publishers so that every JSON parser accepts the result.
//!
//! This module is separate because RFC 8259 allows texts that some parsers refuse. Such a parser
//! then fails for the whole file or folder. An unpaired surrogate (`"\ud800"`) is an escape without
//! a character: DuckDB and jq refuse it. Deep nesting exceeds the limits of jq and of most
//! libraries. Numbers of any size and repeated names are kept, because parsers accept them,
//! although some lose precision or values.
//! <https://www.rfc-editor.org/rfc/rfc8259#section-8.2>,
//! <https://www.rfc-editor.org/rfc/rfc8259#section-9>

use std::borrow::Cow;

use serde_json::value::RawValue;

/// Maximum nesting of embedded JSON. jq 1.6 reads at most 127 nested objects, and `serde_json` at
/// most 127 nested values. A dead letter adds up to two levels around its event.
pub const NESTING_MAX: usize = 100;

/// Escape of U+FFFD, which replaces an unpaired surrogate without changing the length of the text.
const REPLACEMENT: &str = "\\ufffd";
/// Length of a Unicode escape such as `\ud800`.
const ESCAPE_BYTES: usize = REPLACEMENT.len();

/// Replaces each unpaired surrogate with U+FFFD, which keeps the length. If there is none, the text
/// is borrowed. Returns `None` for a text that is not JSON, or is nested deeper than
/// [`NESTING_MAX`].
#[must_use]
pub fn portable(text: &str) -> Option<Cow<'_, str>> {
    let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
    (is_json && nesting(text) <= NESTING_MAX).then(|| without_unpaired_surrogates(text))
}

/// Returns the maximum nesting depth of objects and arrays.
fn nesting(json: &str) -> usize {
    let (mut level, mut deepest, mut is_in_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b'{' | b'[' if !is_in_string => level += 1,
            b'}' | b']' if !is_in_string => level = level.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(level);
    }
    deepest
}

/// Replaces unpaired surrogates with U+FFFD. It searches for backslashes: in JSON, they occur only
/// in strings, and each one begins an escape.
fn without_unpaired_surrogates(json: &str) -> Cow<'_, str> {
    let (mut replaced, mut at) = (Cow::Borrowed(json), 0);
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        let unit = code_unit(json, escape);
        let next = || code_unit(json, escape + ESCAPE_BYTES);
        at = escape
            + match unit {
                None => "\\n".len(),
                Some(0xd800..=0xdbff) if matches!(next(), Some(0xdc00..=0xdfff)) => {
                    2 * ESCAPE_BYTES
                }
                Some(unit) => {
                    if matches!(unit, 0xd800..=0xdfff) {
                        let surrogate = escape..escape + ESCAPE_BYTES;
                        replaced.to_mut().replace_range(surrogate, REPLACEMENT);
                    }
                    ESCAPE_BYTES
                }
            };
    }
    replaced
}

/// Returns the UTF-16 code unit if the text at `at` is an escape such as `\u00fc`; otherwise
/// `None`.
fn code_unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE_BYTES)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpaired_surrogates_are_replaced_and_nothing_else_is() {
        for (json, expected) in [
            (r#""\ud800""#, r#""\ufffd""#),
            (r#" {"\uDFFF" : "a\ud800\ud800b"} "#, r#" {"\ufffd" : "a\ufffd\ufffdb"} "#),
            (r#""\udc00\ud800""#, r#""\ufffd\ufffd""#),
            (r#""\ud800\n\udc00""#, r#""\ufffd\n\ufffd""#),
            (r#""\ud800\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\\ud800\\ud800""#, r#""\\\ufffd\\ud800""#),
            ("[\"\\n€\\ud800€\"]", "[\"\\n€\\ufffd€\"]"),
        ] {
            assert_eq!(portable(json).as_deref(), Some(expected), "{json}");
        }
        for json in [
            r#""\ud83d\ude00\uD83D\uDE00""#,
            r#""\\ud800 \\\\udc00""#,
            r#""\uffff\ufffe\u0000\u007f\ud7ff\ue000""#,
            "\"\u{ffff}\u{fffe}\u{7f}\u{85}\u{2028}\"",
            r#"{"a":1,"a":1e999,"A":-0.0}"#,
            "\"\\\"\\\\\"",
        ] {
            assert!(matches!(portable(json), Some(Cow::Borrowed(text)) if text == json), "{json}");
        }
    }

    #[test]
    fn text_and_deep_json_are_not_portable() {
        for text in ["", "x", "{", "{} {}", "\"\u{1}\"", r#""\ud80""#] {
            assert_eq!(portable(text), None, "{text}");
        }
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(portable(&nested(NESTING_MAX)).is_some());
        assert_eq!(portable(&nested(NESTING_MAX + 1)), None);
        assert_eq!(portable(&nested(500_000)), None);
        // Brackets in a string do not count as nesting, and neither do brackets beside each other.
        let flat = format!("[\"{}\\\"{}\",[],{{}}]", "[".repeat(200), "{".repeat(200));
        assert!(portable(&flat).is_some());
        let siblings = format!("[{}[]]", "[],".repeat(200));
        assert!(portable(&siblings).is_some());
    }
}
