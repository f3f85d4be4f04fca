//! Formats averages for people: rounded, with grouped thousands.

use crate::terminal::text::grouped;

/// Rounds a number to the nearest whole number; a negative number becomes 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers are positive and below 2^53"
)]
pub(crate) fn rounded(number: f64) -> u64 {
    // The cast truncates, and saturates at the largest number.
    (number + 0.5).max(0.0) as u64
}

/// Formats a count, rounded to the nearest whole number.
pub(crate) fn count(number: f64) -> String {
    grouped(rounded(number))
}

/// Formats a number with at most three decimals.
pub(crate) fn decimals(number: f64) -> String {
    thousandths(rounded(number * 1_000.0)).trim_end_matches(".000").to_owned()
}

/// Formats a number with at most nine decimals, which is precise enough to multiply by a billion
/// events.
pub(crate) fn precise(number: f64) -> String {
    let rounded = rounded(number * 1e9);
    let text = format!("{}.{:09}", grouped(rounded / 1_000_000_000), rounded % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a number of thousandths with three decimals, or without decimals if the result is whole:
/// 1500 becomes `1.500`, and 2000 becomes `2`.
pub(crate) fn thousandths(number: u64) -> String {
    let text = format!("{}.{:03}", grouped(number / 1_000), number % 1_000);
    if number.is_multiple_of(1_000) { grouped(number / 1_000) } else { text }
}

/// Formats a fraction as a percentage with one decimal.
pub(crate) fn percent(share: f64) -> String {
    match rounded(share * 1_000.0) {
        0 if share > 0.0 => "< 0.1 %".to_owned(),
        tenths => format!("{}.{} %", grouped(tenths / 10), tenths % 10),
    }
}
