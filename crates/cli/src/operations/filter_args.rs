//! Defines the options that filter dead letters.
//!
//! Separate from the commands because the console parses the same options from the query of a URL.

use adapters::machine::Machine;
use deadletters::cause::CausePrefix;
use deadletters::filter::{Filter, Pattern, SearchText, StatusRange, TimeBound};
use deadletters::state::{LetterState, WantedState};
use delivery::delivery::outcome::OutcomeName;
use delivery::delivery::reason::Reason;
use delivery::ports::Clock as _;

use crate::terminal::help::FILTERS;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// The filters that select dead letters.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = FILTERS)]
pub(crate) struct FilterArgs {
    /// Only this namespace
    #[arg(long, value_name = "NS")]
    namespace: Option<String>,
    /// Only this topic
    #[arg(long, value_name = "[NS/]TOPIC")]
    topic: Option<String>,
    /// Only this subscription
    #[arg(long, value_name = "[NS/TOPIC/]NAME")]
    subscription: Option<String>,
    /// Only events that became dead letters at this time or later: an RFC 3339 time, a day in UTC
    /// such as 2026-11-20, or an age such as 2h or 7d
    #[arg(long, value_name = "WHEN")]
    since: Option<TimeBound>,
    /// Only events that became dead letters before this time, in the same forms as --since
    #[arg(long, value_name = "WHEN")]
    until: Option<TimeBound>,
    /// Only this state: open, replaying, delivered, dead-again (replayed, and now another dead
    /// letter), dismissed, or all. By default open; for undismiss, dismissed. Repeatable
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<WantedState>,
    /// Only this cause: an id that `why` prints, or its prefix. Repeatable
    #[arg(long, value_name = "ID")]
    cause: Vec<CausePrefix>,
    /// Only dead letters with this text in an id, a name, the reason or the last response. Event
    /// data is not searched
    #[arg(long, value_name = "TEXT")]
    search: Option<SearchText>,
    /// Only this reason, such as TimeToLiveExceeded. Repeatable
    #[arg(long, value_name = "REASON", value_parser = Reason::named, value_delimiter = ',')]
    reason: Vec<Reason>,
    /// Only this last outcome, as in explain: a status, timeout, refused, reset, dns, tls, blocked,
    /// or an outcome of dead letters such as Busy. Repeatable
    #[arg(long, value_name = "OUTCOME", value_delimiter = ',')]
    outcome: Vec<OutcomeName>,
    /// Only this last HTTP status, such as 503, 5xx or 500-504. Repeatable
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<StatusRange>,
    /// Only events of this type; * matches any text. Repeatable
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Vec<Pattern>,
    /// Only events from this source; * matches any text. Repeatable
    #[arg(long, value_name = "SOURCE")]
    source: Vec<Pattern>,
    /// Only this event or dead letter id; * matches any text. Repeatable
    #[arg(long, value_name = "ID")]
    id: Vec<Pattern>,
    /// Only this destination; * matches any text. Repeatable
    #[arg(long, value_name = "URL")]
    destination: Vec<Pattern>,
}

impl FilterArgs {
    /// Returns true if no option restricts the dead letters.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { namespace, topic, subscription, since, until, reason, outcome, .. } = self;
        let Self { status, event_type, source, id, destination, cause, state, search, .. } = self;
        [namespace, topic, subscription].into_iter().all(Option::is_none)
            && since.is_none()
            && until.is_none()
            && reason.is_empty()
            && outcome.is_empty()
            && status.is_empty()
            && cause.is_empty()
            && state.is_empty()
            && search.is_none()
            && [event_type, source, id, destination].into_iter().all(Vec::is_empty)
    }

    /// Creates the filter of these options. By default, it matches open dead letters. An age, such
    /// as `2h`, is subtracted from the current time.
    pub(crate) fn filter(self) -> anyhow::Result<Filter> {
        self.filter_in(LetterState::Open)
    }

    /// Creates the filter of these options, which by default matches dead letters in this state.
    pub(crate) fn filter_in(self, state: LetterState) -> anyhow::Result<Filter> {
        let now_ms = Machine.now_ms();
        let any = |wanted: Vec<WantedState>| match wanted.is_empty() {
            true => vec![WantedState::Only(state)],
            false => wanted,
        };
        let mut filter = Filter {
            since_ms: self.since.map(|since| since.ms(now_ms)),
            until_ms: self.until.map(|until| until.ms(now_ms)),
            reasons: self.reason,
            outcomes: self.outcome,
            statuses: self.status,
            types: self.event_type,
            sources: self.source,
            ids: self.id,
            destinations: self.destination,
            search: self.search,
            causes: self.cause,
            wanted_states: any(self.state),
            ..Filter::default()
        };
        if let (Some(since_ms), Some(until_ms)) = (filter.since_ms, filter.until_ms)
            && since_ms >= until_ms
        {
            return Err(usage_error(format!(
                "--since {} must be before --until {}",
                text::at(Some(since_ms)),
                text::at(Some(until_ms))
            )));
        }
        let options = [
            ("--subscription", self.subscription),
            ("--topic", self.topic),
            ("--namespace", self.namespace),
        ];
        for (index, (option, name)) in options.into_iter().enumerate() {
            let Some(name) = name else { continue };
            let fields = [&mut filter.namespace, &mut filter.topic, &mut filter.subscription];
            // The full name of a subscription has three parts, that of a topic two, and that of a
            // namespace one.
            let depth = fields.len() - index;
            let parts: Vec<&str> = name.split('/').collect();
            let is_whole = parts.len() == depth || parts.len() == 1;
            if !is_whole || parts.contains(&"") {
                let expected = "is not a name or a full name";
                return Err(usage_error(format!("{option} {name:?} {expected}")));
            }
            let fields = fields.into_iter().take(depth).skip(depth - parts.len());
            for (field, part) in fields.zip(parts) {
                if field.as_deref().is_some_and(|field| field != part) {
                    let other = field.as_deref().unwrap_or_default();
                    let problem = format!("{option} {name:?} conflicts with {other:?}");
                    return Err(usage_error(problem));
                }
                *field = Some(part.to_owned());
            }
        }
        Ok(filter)
    }
}
