//! The length of details: texts for people about what went wrong.

/// A longer one quotes an event.
const DETAIL_MAX_CHARS: usize = 500;

/// Truncates a detail to its limit.
pub(crate) fn truncated_detail(text: &str) -> String {
    // By characters: a cut within one would not be UTF-8.
    text.chars().take(DETAIL_MAX_CHARS).collect()
}
