//! The options that all verbs share: the container, and which of its letters are meant.
//!
//! Separate because the page reads the very same options from its address.

use adapters::machine::Machine;
use delivery::delivery::outcome::Outcome;
use delivery::delivery::reason::Reason;
use delivery::ports::Clock as _;

use super::Look;
use super::shape::Output;
use crate::letters::Letters;
use crate::letters::filter::{Filter, Moment, Pattern, Statuses, outcome, reason};
use crate::letters::storage::LOCAL_CONTAINER;

/// Where letters are.
#[derive(Debug, clap::Args)]
pub(super) struct Container {
    /// s3://BUCKET[/PREFIX], or a folder; without it, what `lastmile dev` and `lastmile demo` leave
    #[arg(long, value_name = "PLACE", default_value = LOCAL_CONTAINER)]
    container: String,
}

impl Container {
    pub(super) async fn open(&self) -> anyhow::Result<Letters> {
        Letters::open(&self.container).await
    }
}

/// Which letters of which container: how most verbs begin.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    #[command(flatten)]
    container: Container,
    #[command(flatten)]
    meant: Meant,
}

impl Which {
    pub(super) async fn open(self) -> anyhow::Result<(Letters, Filter)> {
        let letters = self.container.open().await?;
        Ok((letters, self.meant.filter()?))
    }

    /// The same for who looks once, and says what that cost.
    pub(super) async fn look(self) -> anyhow::Result<(Letters, Filter, Look)> {
        let (letters, filter) = self.open().await?;
        let look = Look::begin(&letters);
        Ok((letters, filter, look))
    }
}

/// What the verbs that sum up are told.
#[derive(Debug, clap::Args)]
pub(super) struct Summing {
    #[command(flatten)]
    pub(super) which: Which,
    /// How to show them
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub(super) output: Output,
}

/// Which letters are meant.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Which letters")]
pub(crate) struct Meant {
    /// Of this namespace
    #[arg(long, value_name = "NS")]
    namespace: Option<String>,
    /// Of this topic
    #[arg(long, value_name = "[NS/]TOPIC")]
    topic: Option<String>,
    /// Of this subscription
    #[arg(long, value_name = "[NS/TOPIC/]NAME")]
    subscription: Option<String>,
    /// Ended at this moment or later: RFC 3339, a day in UTC, or how long ago, as in PT1H
    #[arg(long, value_name = "WHEN")]
    since: Option<Moment>,
    /// Ended before this moment
    #[arg(long, value_name = "WHEN")]
    until: Option<Moment>,
    /// With this reason, such as TimeToLiveExceeded; this and all below may be said several times
    #[arg(long, value_name = "REASON", value_parser = reason, value_delimiter = ',')]
    reason: Vec<Reason>,
    /// With this last outcome, such as TimedOut
    #[arg(long, value_name = "OUTCOME", value_parser = outcome, value_delimiter = ',')]
    outcome: Vec<Outcome>,
    /// With this last status, or one of its class, as in 5xx
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<Statuses>,
    /// Of events of this type; here and below * stands for anything
    #[arg(long = "type", value_name = "TYPE")]
    kind: Vec<Pattern>,
    /// Of events from this source
    #[arg(long, value_name = "SOURCE")]
    source: Vec<Pattern>,
    /// With this id: the event's, or the letter's own
    #[arg(long, value_name = "ID")]
    id: Vec<Pattern>,
    /// To this destination
    #[arg(long, value_name = "URL")]
    destination: Vec<Pattern>,
}

impl Meant {
    /// The filter that the options make, as seen from now.
    pub(crate) fn filter(self) -> anyhow::Result<Filter> {
        let now_ms = Machine.now_ms();
        let mut filter = Filter {
            since_ms: self.since.map(|since| since.ms(now_ms)),
            until_ms: self.until.map(|until| until.ms(now_ms)),
            reasons: self.reason,
            outcomes: self.outcome,
            statuses: self.status,
            types: self.kind,
            sources: self.source,
            ids: self.id,
            destinations: self.destination,
            ..Filter::default()
        };
        let names = [
            ("--subscription", self.subscription),
            ("--topic", self.topic),
            ("--namespace", self.namespace),
        ];
        for (place, (option, name)) in names.into_iter().enumerate() {
            let Some(name) = name else { continue };
            let places = [&mut filter.namespace, &mut filter.topic, &mut filter.subscription];
            let last = places.len() - place;
            let parts: Vec<&str> = name.split('/').collect();
            let whole = parts.len() == last || parts.len() == 1;
            anyhow::ensure!(
                whole && !parts.contains(&""),
                "{option} {name:?} is no name, and no whole name either"
            );
            for (known, part) in places.into_iter().take(last).skip(last - parts.len()).zip(parts) {
                let same = known.as_deref().is_none_or(|known| known == part);
                anyhow::ensure!(same, "{option} {name:?} contradicts {known:?}");
                *known = Some(part.to_owned());
            }
        }
        Ok(filter)
    }
}
