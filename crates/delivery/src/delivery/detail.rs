//! Limits the length of details, which are texts for people about an error.

/// Maximum length of a detail. Longer texts usually quote an event.
const DETAIL_MAX_CHARS: usize = 500;

/// Truncates a detail to its maximum length.
pub(crate) fn truncated_detail(text: &str) -> String {
    // Counts characters, because a cut within a character would not be UTF-8.
    text.chars().take(DETAIL_MAX_CHARS).collect()
}
