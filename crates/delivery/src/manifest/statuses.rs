//! Sets of HTTP statuses in documents, and how they change a policy.
//!
//! Separate because every family can override the meaning of a status, each by a field of its own.

use std::ops::RangeInclusive;

use super::findings::{Message, quoted};
use super::reader::Cursor;
use crate::subscription::profile::{RetryPolicy, StatusSet};

/// Statuses of HTTP.
pub(super) const STATUSES: RangeInclusive<u16> = 100..=599;

/// A list of statuses such as `202`, and ranges such as `200-299`.
pub(super) fn list(cursor: &Cursor<'_>) -> Option<StatusSet> {
    cursor.each(|element| range_of(&element.scalar()?, element)).map(StatusSet::new)
}

/// The same as one text, separated by commas.
pub(super) fn text(cursor: &Cursor<'_>) -> Option<StatusSet> {
    let text = cursor.scalar()?;
    let ranges: Vec<_> = text.split(',').map(|part| range_of(part.trim(), cursor)).collect();
    Some(StatusSet::new(ranges.into_iter().collect::<Option<Vec<_>>>()?))
}

/// One status, if the text is one.
pub(super) fn status(text: &str) -> Option<u16> {
    let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|status| digits && STATUSES.contains(status))
}

/// The smallest status in both sets.
pub(super) fn shared(a: &StatusSet, b: &StatusSet) -> Option<u16> {
    STATUSES.into_iter().find(|status| a.contains(*status) && b.contains(*status))
}

/// Changes the meaning of statuses: those of `never_retry` are never retried, those of `retry_on`
/// are, and neither is a success any more.
pub(super) fn override_meaning(
    policy: &mut RetryPolicy,
    never_retry: &StatusSet,
    retry_on: &StatusSet,
) {
    let [success, never] = [&mut policy.success, &mut policy.never_retry].map(std::mem::take);
    policy.success = success.difference(&never_retry.with(retry_on));
    policy.never_retry = never.with(never_retry).difference(retry_on);
}

fn range_of(text: &str, at: &Cursor<'_>) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (status(first.trim()), status(last.trim())) {
        (Some(first), Some(last)) if first <= last => Some(first..=last),
        (_, _) => {
            let message = Message::new(format!(
                "{} is neither a status nor a range of statuses",
                quoted(text)
            ));
            at.refuse(message.help("a status is 100 to 599, a range is such as 200-299"))
        }
    }
}
