//! Event Grid, "delivery event formats", Event Grid schema: the event, then why and when.

use super::about::{About, Names};
use super::flat;

/// The names of the Event Grid schema; the custom schema has them too.
pub(super) const NAMES: Names = Names {
    reason: "deadLetterReason",
    attempts: "deliveryAttempts",
    outcome: "lastDeliveryOutcome",
    published: "publishTime",
    attempted: "lastDeliveryAttemptTime",
};

/// The name of the status.
pub(super) const STATUS: &str = "lastHttpStatusCode";
/// What this format adds to an event.
pub(super) const RESERVED: [&str; 7] = NAMES.reserved(STATUS);

/// The letter; `None` for an event that has no place in it.
pub(super) fn element(about: &About<'_>) -> Option<String> {
    let event = about.event_json()?;
    let (mut object, hidden) = flat::open_event_grid(about.letter, event, &RESERVED)?;
    about.five(&mut object, &NAMES, &about.letter.reason.to_string());
    about.status(&mut object, STATUS);
    about.lastmile(&mut object, &hidden);
    Some(object.finish())
}
