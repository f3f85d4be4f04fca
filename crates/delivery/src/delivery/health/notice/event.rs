//! The CloudEvent of a notice, with the state of its destination.
//!
//! This module is separate from the notice because the event depends on the state of the
//! destination, and that state contains the notice.

use serde_json::json;

use super::transition::Notice;
use crate::delivery::health::shared::DestinationState;
use crate::shell::quoted;
use crate::time::moment::rfc3339;

/// The CloudEvents `source` of all notices.
const SOURCE: &str = "/lastmile/destinations";

impl Notice {
    /// Returns the notice as a CloudEvent in JSON, with the state of the destination.
    #[must_use]
    pub fn event(&self, state: &DestinationState) -> String {
        let attempt = state.attempts.last().map(|last| {
            let at = rfc3339(last.at_ms);
            json!({ "at": at, "outcome": last.outcome, "status": last.status, "durationMs": last.duration_ms })
        });
        let spells = [state.failing, state.slow, state.refusing].into_iter().flatten();
        let since_ms = spells.map(|spell| spell.since_ms);
        let disabled = state.disabled.as_ref();
        let event = json!({
            "specversion": "1.0",
            "id": self.id,
            "source": SOURCE,
            "type": format!("dev.lastmile.destination.{}", self.kind),
            "subject": state.subscription,
            "time": rfc3339(self.at_ms),
            "datacontenttype": "application/json",
            "data": {
                "destination": state.destination,
                "subscription": state.subscription,
                "since": since_ms.min().map(rfc3339),
                "why": disabled.map(|disabled| &disabled.why),
                "lastAttempt": attempt,
                "command": format!("lastmile destinations show {}", quoted(&state.subscription)),
            },
        });
        event.to_string()
    }
}
