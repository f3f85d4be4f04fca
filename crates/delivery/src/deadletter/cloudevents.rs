//! Event Grid, "delivery event formats", CloudEvents 1.0 schema: the event, then why and when as
//! extension attributes.

use super::about::{About, Names};
use super::flat;

const NAMES: Names = Names {
    reason: "deadletterreason",
    attempts: "deliveryattempts",
    outcome: "lastdeliveryoutcome",
    published: "publishtime",
    attempted: "lastdeliveryattempttime",
};

/// The name of the status.
const STATUS: &str = "lasthttpstatuscode";
/// What this format adds to an event.
pub(super) const RESERVED: [&str; 7] = NAMES.reserved(STATUS);

/// The letter; `None` for an event that can be no CloudEvent.
pub(super) fn element(about: &About<'_>) -> Option<String> {
    let event = about.event_json()?;
    let (mut object, hidden) = flat::open_cloud_event(about.letter, event, &RESERVED)?;
    about.five(&mut object, &NAMES, &about.letter.reason.to_string());
    about.status(&mut object, STATUS);
    about.lastmile(&mut object, &hidden);
    Some(object.finish())
}
