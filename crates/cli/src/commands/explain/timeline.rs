//! Computes the time axis in the text output of `explain`.
//!
//! Separate because a delivery may last seconds or days, and both must be readable. The axis is
//! logarithmic, with the shortest wait as its unit.

use delivery::explain::Life;
use delivery::subscription::Subscription;
use delivery::subscription::sink_text;
use delivery::time::duration::{HOUR_MS, MINUTE_MS, SECOND_MS};

/// A logarithmic time axis, from publication to the end of a delivery or to the storage of its dead
/// letter.
pub(super) struct Axis {
    unit_ms: u64,
    /// The time at the end of the axis, in milliseconds since publication.
    end_ms: u64,
}

impl Axis {
    /// Creates an axis that ends with the delivery or with the storage of its dead letter.
    pub(super) fn from_life(life: &Life) -> Self {
        let written_ms = life.stored.as_ref().map_or(0, |stored| stored.after_ms);
        // Use at least one millisecond, because a delivery may end at its publication, but the
        // axis needs a length.
        let end_ms = life.ended_ms.saturating_add(written_ms).max(1);
        let shortest_ms = life
            .attempts
            .iter()
            .map(|attempt| attempt.wait_ms)
            .filter(|wait_ms| *wait_ms > 0)
            .min();
        Self { unit_ms: shortest_ms.unwrap_or(SECOND_MS).clamp(1, end_ms), end_ms }
    }

    /// Returns the position of a time on the axis: 0 is publication, 1 the end.
    pub(super) fn position(&self, at_ms: u64) -> f64 {
        // Publication is at zero, which has no logarithm, so add one.
        let logarithm = |ms: u64| (1.0 + approximate(ms) / approximate(self.unit_ms)).ln();
        logarithm(at_ms) / logarithm(self.end_ms)
    }
}

/// Converts milliseconds to a number that is exact enough for a drawing.
#[expect(
    clippy::cast_precision_loss,
    reason = "a position in a drawing needs no exact milliseconds"
)]
fn approximate(ms: u64) -> f64 {
    ms as f64
}

/// Formats a duration in hours, minutes and seconds: `34h46m40s`, `0.25s`, `0s`.
pub(super) fn hms(ms: u64) -> String {
    let (hours, minutes, rest_ms) = (ms / HOUR_MS, ms % HOUR_MS / MINUTE_MS, ms % MINUTE_MS);
    let (seconds, milliseconds) = (rest_ms / SECOND_MS, rest_ms % SECOND_MS);
    let mut text = String::new();
    if hours > 0 {
        text.push_str(&format!("{hours}h"));
    }
    if minutes > 0 {
        text.push_str(&format!("{minutes}m"));
    }
    if milliseconds > 0 {
        let fraction = format!("{milliseconds:03}");
        text.push_str(&format!("{seconds}.{}s", fraction.trim_end_matches('0')));
    } else if seconds > 0 || text.is_empty() {
        text.push_str(&format!("{seconds}s"));
    }
    text
}

/// Describes what happens to an undelivered event, in one line.
pub(super) fn dead_letter(life: &Life, subscription: &Subscription) -> Option<String> {
    life.reason?;
    let Some(stored) = &life.stored else {
        return Some("dead letter: none, the event is dropped".to_owned());
    };
    let sink = sink_text(&subscription.dead_letter);
    let when = if stored.after_ms == 0 {
        "at once".to_owned()
    } else {
        format!("{} later", hms(stored.after_ms))
    };
    Some(format!("dead letter: {when}, to {sink}, format {}", stored.format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_hours_minutes_and_seconds() {
        for (ms, text) in [
            (0, "0s"),
            (250, "0.25s"),
            (60_000, "1m"),
            (125_200_000, "34h46m40s"),
            (3_600_000, "1h"),
            (3_601_005, "1h1.005s"),
        ] {
            assert_eq!(hms(ms), text);
        }
    }
}
