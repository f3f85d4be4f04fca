//! `maxPerSecond`: how many requests a second a destination takes.
//!
//! Separate because every family can set it, each by a field of its own.

use std::ops::RangeInclusive;

use super::findings::{Message, quoted};
use super::reader::Cursor;

/// Requests per second.
pub(super) const PER_SECOND: RangeInclusive<u32> = 1..=10_000;

/// The rate as text, as annotations have it.
pub(super) fn text(cursor: &Cursor<'_>) -> Option<u32> {
    let text = cursor.scalar()?;
    let rate = text.parse().ok().filter(|rate| PER_SECOND.contains(rate));
    rate.or_else(|| {
        let message = Message::new(format!("{} is no number of requests a second", quoted(&text)));
        cursor.refuse(message.help("a whole number from 1 to 10000"))
    })
}
