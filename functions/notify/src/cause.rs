//! The cause of a dead letter, as `lastmile deadletters why` groups it.
//!
//! Separate because this is the only file that depends on how causes are found and opened.

use deadletters::cause::{CausePrefix, titled_cause};
use deadletters::facts::decided_ms;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::shell::quoted;
use delivery::subscription::sink::Container;
use delivery::time::moment::rfc3339;

/// The counted facts of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    /// The stable id of its cause.
    pub(crate) cause: String,
    /// The cause in the words that `why` uses.
    pub(crate) title: String,
    /// `namespace/topic/name`.
    pub(crate) subscription: String,
    /// The time at which its delivery ended.
    pub(crate) at_ms: Option<u64>,
}

impl Letter {
    /// Reads the facts of this dead letter.
    pub(crate) fn of(letter: &StoredDeadLetter) -> Self {
        let (cause, title) = titled_cause(letter);
        Self {
            cause: cause.to_string(),
            title,
            subscription: letter.subscription.to_string(),
            at_ms: decided_ms(letter),
        }
    }
}

/// The command that opens the dead letters of a cause since this time. What was not read has no cause that the
/// command could select; then it shows all causes.
pub(crate) fn command(container: &Container, cause: &str, first_ms: Option<u64>) -> String {
    let verb = match cause.parse::<CausePrefix>() {
        Ok(_) => format!("list --cause {cause}"),
        Err(_) => "why".to_owned(),
    };
    let since = first_ms.map(|ms| format!(" --since {}", rfc3339(ms))).unwrap_or_default();
    let address = quoted(&format!("s3://{container}"));
    format!("lastmile deadletters {verb} --container {address}{since}")
}
