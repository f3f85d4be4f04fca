//! Finds the cause of a dead letter, as `lastmile deadletters why` does.
//!
//! Separate because only this file depends on the rules of causes and on the commands that show
//! them.

use deadletters::cause::{CausePrefix, titled_cause};
use deadletters::facts::decided_ms;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::shell::quoted;
use delivery::subscription::sink::Container;
use delivery::time::moment::rfc3339;

/// The facts that a message contains about a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    /// The stable id of the cause.
    pub(crate) cause: String,
    /// The title of the cause, as `lastmile deadletters why` prints it.
    pub(crate) title: String,
    /// The full name of the subscription, `namespace/topic/name`.
    pub(crate) subscription: String,
    /// Time at which the delivery ended, in milliseconds since 1970.
    pub(crate) at_ms: Option<u64>,
}

impl Letter {
    pub(crate) fn new(letter: &StoredDeadLetter) -> Self {
        let (cause, title) = titled_cause(letter);
        Self {
            cause: cause.to_string(),
            title,
            subscription: letter.subscription.to_string(),
            at_ms: decided_ms(letter),
        }
    }
}

/// Returns the command that shows the dead letters of a cause since `first_ms`. An unread dead
/// letter has no cause to select, so its command shows all causes.
pub(crate) fn command(container: &Container, cause: &str, first_ms: Option<u64>) -> String {
    let verb = match cause.parse::<CausePrefix>() {
        Ok(_) => format!("list --cause {cause}"),
        Err(_) => "why".to_owned(),
    };
    let since = first_ms.map(|ms| format!(" --since {}", rfc3339(ms))).unwrap_or_default();
    let address = quoted(&format!("s3://{container}"));
    format!("lastmile deadletters {verb} --container {address}{since}")
}
