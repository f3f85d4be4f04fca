//! `maxPerSecond` and `maxReplies`: how much of something there may be.
//!
//! Separate because several families can set them, each by a field or an annotation of its own.

use std::ops::RangeInclusive;

use crate::document::findings::{Message, quoted};
use crate::document::reader::Cursor;

/// Requests per second to a destination.
pub const PER_SECOND: RangeInclusive<u32> = 1..=10_000;
/// Deliveries that replies lead to from the second generation on, for one published event.
pub const REPLIES: RangeInclusive<u32> = 0..=10_000;

/// The number as text, as annotations have it.
pub fn text(cursor: &Cursor<'_>, range: RangeInclusive<u32>) -> Option<u32> {
    let text = cursor.scalar()?;
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.or_else(|| {
        let (least, most) = range.into_inner();
        let help = format!("a whole number from {least} to {most}");
        cursor.refuse(Message::new(format!("{} is out of range", quoted(&text))).help(help))
    })
}
