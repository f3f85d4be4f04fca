//! Compares the times of records in ledgers and dismissals. Pure.
//!
//! Separate because states, dismissals and replays all select the newest record.

use delivery::time::moment;

/// Converts the RFC 3339 time of a record to milliseconds since 1970. Returns 0 for an invalid
/// time, so that it sorts before all others.
pub(crate) fn recorded_ms(at: &str) -> u64 {
    moment::parse(at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_by_their_value_and_not_as_text() {
        let newest_first = [
            "2026-11-20T09:00:02+01:00",
            "2026-11-20T08:00:01.5Z",
            "2026-11-20T08:00:01.0000000Z",
            "2026-11-20T08:00:00Z",
            "yesterday",
        ];
        assert!(newest_first.is_sorted_by(|a, b| recorded_ms(a) > recorded_ms(b)));
    }
}
