//! The cause of a dead letter, as `lastmile deadletters why` groups it.
//!
//! Separate because this is the only file that depends on how causes are found and opened.

use deadletters::cause::Causes;
use deadletters::filter::decided_ms;
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
    /// Reads the facts of this dead letter. `None` cannot happen: one letter has one cause.
    pub(crate) fn of(letter: &StoredDeadLetter) -> Option<Self> {
        let mut causes = Causes::default();
        causes.add(letter);
        let cause = causes.sorted().pop()?;
        let status = cause.key.status.map(|status| format!("{status} ")).unwrap_or_default();
        Some(Self {
            cause: cause.key.id(),
            title: format!("{status}{}", cause.key.line),
            subscription: letter.subscription.to_string(),
            at_ms: decided_ms(letter),
        })
    }
}

/// The command that opens the causes of dead letters since this time.
pub(crate) fn command(container: &Container, first_ms: Option<u64>) -> String {
    let since = first_ms.map(|ms| format!(" --since {}", rfc3339(ms))).unwrap_or_default();
    let address = quoted(&format!("s3://{container}"));
    format!("lastmile deadletters why --container {address}{since}")
}
