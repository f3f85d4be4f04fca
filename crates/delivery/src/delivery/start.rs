//! Determines the start of a delivery. No attempt is made before the start, and the time to live
//! counts from it.
//!
//! The start is the latest of three moments: the publication, the event's `deliverat`, and the
//! publication plus the subscription's `delay`. Example: an event is published at 9:00, and its
//! `deliverat` is 10:00. With a `delay` of PT30M its delivery starts at 10:00, with PT2H at 11:00.
//!
//! This module is separate because all code that publishes calls [`check_moment`]. A start is at
//! most 14 days after publication. [`check_moment`] refuses moments that leave no time for an
//! attempt.

use std::borrow::Cow;

use crate::event::{DELIVER_AT, Event, Malformed};
use crate::subscription::profile::LIFETIME_MAX_MS;
use crate::time::moment;

/// Checks that the event's `deliverat` leaves time for an attempt.
///
/// # Errors
/// [`Malformed`] if `deliverat` is 14 days or more after the publication.
pub fn check_moment(event: &Event, published_ms: u64) -> Result<(), Malformed> {
    match event.deliver_at_ms() {
        Some(at_ms) if at_ms.saturating_sub(published_ms) >= LIFETIME_MAX_MS => {
            // Quotes the publisher's text, because a moment near the end of the year 9999 cannot be
            // formatted.
            let written = event.members().text(DELIVER_AT).map(Cow::into_owned);
            let at = written.unwrap_or_else(|| moment::rfc3339(at_ms));
            Err(Malformed::TooFarAhead(at, moment::rfc3339(published_ms)))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the start of a delivery: the publication, or a later `deliverat`. Ignores the `delay` of
/// the subscription.
pub(super) fn of_event(event: &Event, published_ms: u64) -> u64 {
    let latest_ms = published_ms.saturating_add(LIFETIME_MAX_MS);
    event.deliver_at_ms().unwrap_or(published_ms).clamp(published_ms, latest_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::{Delivery, Origin};
    use crate::event::Input;
    use crate::time::duration::{HOUR_MS, MINUTE_MS};

    const PUBLISHED_MS: u64 = 1_796_115_600_000;

    /// Returns an event with this `deliverat`.
    fn event(deliver_at: &str) -> Event {
        let text = format!(
            r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t","deliverat":"{deliver_at}"}}"#
        );
        Event::recall(&text.into(), Input::Auto)
    }

    #[test]
    fn a_delivery_starts_at_the_latest_of_publication_moment_and_delay() {
        for (deliver_at, delay_ms, after_ms) in [
            ("2026-12-01T08:00:00Z", 0, 0),
            ("2026-12-01T08:00:00Z", MINUTE_MS, MINUTE_MS),
            ("2026-12-01T10:00:00Z", 0, HOUR_MS),
            ("2026-12-01T10:00:00Z", MINUTE_MS, HOUR_MS),
            ("2026-12-01T10:00:00Z", 2 * HOUR_MS, 2 * HOUR_MS),
            ("9999-12-31T23:59:59Z", 0, LIFETIME_MAX_MS),
        ] {
            let origin = Origin { message: "m".to_owned(), index: 0 };
            let name = "a/b/c".parse().expect("a name");
            let delivery = Delivery::new(event(deliver_at), name, origin, PUBLISHED_MS);
            let delivery = delivery.delayed(delay_ms);
            let starts_ms = PUBLISHED_MS + after_ms;
            let case = format!("{deliver_at} {delay_ms}");
            assert_eq!((delivery.starts_ms, delivery.due_ms), (starts_ms, starts_ms), "{case}");
        }
    }

    #[test]
    fn a_moment_is_possible_within_14_days() {
        for (deliver_at, is_possible) in [
            ("1969-12-01T09:00:00Z", true),
            ("2026-12-01T09:00:00Z", true),
            ("2026-12-15T08:59:59.999Z", true),
            ("2026-12-15T09:00:00Z", false),
            ("9999-12-31T23:59:59Z", false),
        ] {
            let checked = check_moment(&event(deliver_at), PUBLISHED_MS);
            assert_eq!(checked.is_ok(), is_possible, "{deliver_at}");
        }
        for moment in ["2027-12-01T10:00:00+01:00", "9999-12-31T00:00:00Z"] {
            let why = check_moment(&event(moment), PUBLISHED_MS).unwrap_err().to_string();
            assert!(why.contains(moment) && why.contains("2026-12-01T09:00:00"), "{why}");
        }
    }
}
