//! Averages as text for people: rounded, with their thousands grouped.

use crate::terminal::text::grouped;

/// Rounded to the nearest whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers are positive and below 2^53"
)]
pub(crate) fn rounded(number: f64) -> u64 {
    // The cast truncates, and saturates at the greatest number.
    (number + 0.5).max(0.0) as u64
}

/// A count, rounded to the nearest.
pub(crate) fn count(number: f64) -> String {
    grouped(rounded(number))
}

/// A number with at most three decimals.
pub(crate) fn decimals(number: f64) -> String {
    thousandths(rounded(number * 1_000.0)).trim_end_matches(".000").to_owned()
}

/// A number with at most nine decimals: enough to be multiplied by a billion events.
pub(crate) fn precise(number: f64) -> String {
    let rounded = rounded(number * 1e9);
    let text = format!("{}.{:09}", grouped(rounded / 1_000_000_000), rounded % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Thousandths as a number with three decimals, or none when it is whole.
pub(crate) fn thousandths(number: u64) -> String {
    let text = format!("{}.{:03}", grouped(number / 1_000), number % 1_000);
    if number.is_multiple_of(1_000) { grouped(number / 1_000) } else { text }
}

/// A share of 1 in per cent, with one decimal.
pub(crate) fn percent(share: f64) -> String {
    match rounded(share * 1_000.0) {
        0 if share > 0.0 => "< 0.1 %".to_owned(),
        tenths => format!("{}.{} %", grouped(tenths / 10), tenths % 10),
    }
}
