//! Declares the ranges of `maxPerSecond` and `maxReplies`.
//!
//! This module is separate because several dialects can set these limits, each with a field or an
//! annotation of its own.

use std::ops::RangeInclusive;

use crate::document::findings::{Message, quoted};
use crate::document::reader::Cursor;

/// Allowed values of `maxPerSecond`: requests per second to a destination.
pub const PER_SECOND: RangeInclusive<u32> = 1..=10_000;
/// Allowed values of `maxReplies`: the number of deliveries that replies to replies may cause for
/// one published event.
pub const REPLIES: RangeInclusive<u32> = 0..=10_000;

/// Reads an annotation whose text must be a whole number within this range.
pub fn text(cursor: &Cursor<'_>, range: RangeInclusive<u32>) -> Option<u32> {
    let text = cursor.scalar()?;
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.or_else(|| {
        let (least, most) = range.into_inner();
        let help = format!("expected a whole number from {least} to {most}");
        cursor.refuse(Message::new(format!("{} is out of range", quoted(&text))).help(help))
    })
}
