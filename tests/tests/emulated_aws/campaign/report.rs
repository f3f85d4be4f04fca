//! The counts of a campaign, as the table of `docs/reference/figures/kill-campaign.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::gateway::{During, Fate};
use super::ledger::Accounts;

/// The moment of a kill.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kill {
    WhileADestinationAnswers,
    During(During),
    AtAnyTime,
}

/// All counts of a campaign.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) accounts: Accounts,
    pub(super) published: usize,
    /// The duration of publishing and killing. `all` also has the time until everything had
    /// drained.
    pub(super) killing: Duration,
    pub(super) all: Duration,
    pub(super) sends: BTreeMap<Fate, usize>,
    /// Requests to destinations.
    pub(super) requests: usize,
    /// Messages that remained at the end, by queue.
    pub(super) left: Vec<(String, usize)>,
    kills: BTreeMap<&'static str, usize>,
    invocations: Invocations,
}

/// The invocations that the event source mappings log.
#[derive(Debug, Default)]
struct Invocations {
    ended: usize,
    killed: usize,
    /// Messages of the ended invocations.
    received: usize,
    /// Messages of the ended invocations that returned to their queue.
    returned: usize,
}

impl Report {
    pub(super) fn count(&mut self, kill: Kill) {
        *self.kills.entry(kill.text()).or_default() += 1;
    }

    pub(super) fn kills(&self) -> usize {
        self.kills.values().sum()
    }

    /// Reads the log of the emulated AWS: `ESM: Lambda NAME processed 3 SQS messages from QUEUE`,
    /// with `(1 partial failures)`, and `ESM: Lambda NAME failed processing SQS batch from QUEUE`.
    pub(super) fn read_log(&mut self, log: &str) {
        let number_before = |line: &str, text: &str| -> Option<usize> {
            line.split_once(text)?.0.rsplit([' ', '(']).next()?.parse().ok()
        };
        for line in log.lines().filter(|line| line.contains("ESM: Lambda ")) {
            if line.contains(" failed processing SQS batch ") {
                self.invocations.killed += 1;
            }
            if let Some(received) = number_before(line, " SQS messages from ") {
                self.invocations.ended += 1;
                self.invocations.received += received;
                self.invocations.returned +=
                    number_before(line, " partial failures").unwrap_or_default();
            }
        }
    }
}

impl Kill {
    fn text(self) -> &'static str {
        match self {
            Self::WhileADestinationAnswers => "while a destination answers",
            Self::During(During::Sending) => "in a send, before the queue has it",
            Self::During(During::Sent) => "in a send, after the queue has it",
            Self::During(During::Storing) => "in a write of a blob, before it is stored",
            Self::During(During::Stored) => "in a write of a blob, after it is stored",
            Self::AtAnyTime => "at any time",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accounts = &self.accounts;
        writeln!(f, "\n| | |\n|---|---|")?;
        let mut row = |name: &str, value: &dyn fmt::Display| writeln!(f, "| {name} | {value} |");
        row("events published", &accounts.events)?;
        row("deliveries: one event for one subscription", &accounts.deliveries)?;
        row("**lost**: neither taken nor a dead letter", &accounts.lost.len())?;
        row("taken by their destination", &accounts.delivered)?;
        row("stored as a dead letter", &accounts.dead_lettered)?;
        row("taken and stored as a dead letter", &accounts.delivered_and_dead_lettered)?;
        for (reason, count) in &accounts.reasons {
            row(&format!("dead letters, `{reason}`"), count)?;
        }
        row("duplicates: a delivery taken once more", &accounts.duplicates)?;
        row("blobs beyond the first of a delivery", &accounts.duplicate_blobs)?;
        row("requests to destinations", &self.requests)?;
        row("functions killed (`kill -9`)", &self.kills())?;
        for (when, count) in &self.kills {
            row(&format!("killed {when}"), count)?;
        }
        row("invocations that ended", &self.invocations.ended)?;
        row("invocations that a kill ended", &self.invocations.killed)?;
        row("messages received, by invocations that ended", &self.invocations.received)?;
        row("messages returned to their queue", &self.invocations.returned)?;
        for (fate, count) in &self.sends {
            row(fate.text(), count)?;
        }
        row("publishing and killing, seconds", &self.killing.as_secs())?;
        row("until every queue was empty, seconds", &self.all.as_secs())
    }
}

impl Fate {
    fn text(self) -> &'static str {
        match self {
            Self::Passed => "calls that send messages, passed on",
            Self::Refused => "sends refused with 503, by chance and in outages",
            Self::CutBefore => "sends cut off before the queue had them",
            Self::CutAfter => "sends cut off after the queue had them",
            Self::KilledBefore => "sends of a function that was killed before the queue had them",
            Self::KilledAfter => "sends of a function that was killed after the queue had them",
        }
    }
}
