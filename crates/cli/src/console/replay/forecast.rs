//! Forecasts a replay: number of dead letters, rate, duration, cost on AWS, and unhealthy
//! destinations.
//!
//! Separate from the plan because pages of causes show a forecast too. This module reads nothing:
//! the caller passes the subscriptions and the health of destinations.

use std::collections::BTreeMap;

use deadletters::Rate;
use deadletters::replay::is_subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::time::duration::SECOND_MS;
use maud::{Markup, html};

use crate::console::app::Console;
use crate::console::destinations::Seen;
use crate::console::shell::markup::line;
use crate::operations::cost::beside::{DELIVERIES, REPLAY_DOLLARS};
use crate::operations::replay_rate::RateUsed;
use crate::terminal::text;

/// The maximum number of warnings on a page.
const WARNINGS_MAX: usize = 3;

/// The forecast of a replay, in which each dead letter is sent to its subscription.
pub(in crate::console) struct Forecast {
    letters: u64,
    rate: RateUsed,
    /// False if the queue is on this machine, where a replay has no cost.
    is_paid: bool,
    /// The number of dead letters whose destination is unknown to this console.
    unlisted: u64,
    /// The unhealthy destinations: the address of each, and its known conditions.
    warnings: Vec<(String, String)>,
}

impl Forecast {
    /// Forecasts a replay. `counts` is the number of dead letters of each subscription. Dead
    /// letters without a subscription are not sent. `given` is the rate that the user has chosen,
    /// if any.
    pub(in crate::console) fn new(
        console: &Console,
        counts: &BTreeMap<String, u64>,
        catalogue: &Catalogue,
        seen: &Seen,
        given: Option<Rate>,
    ) -> Self {
        let sent = counts.iter().filter(|(name, _)| is_subscription(name));
        let counts = &sent.map(|(name, count)| (name.clone(), *count)).collect();
        let rate = RateUsed::of_destinations(catalogue, counts);
        let rate = given.map_or(rate, RateUsed::given);
        let mut warnings: BTreeMap<String, String> = BTreeMap::new();
        let is_unlisted = |(name, _): &(&String, _)| seen.of_subscription(name).is_none();
        let unlisted = counts.iter().filter(is_unlisted).map(|(_, count)| count).sum();
        for name in counts.keys() {
            let Some(destination) = seen.of_subscription(name) else { continue };
            let conditions =
                destination.conditions.iter().map(|(name, why)| format!("{name} {why}"));
            let mut known: Vec<String> = conditions.collect();
            match destination.failed_in_a_row {
                // A probation resets the stored attempts, but the statistics of the time range
                // remain.
                0 if seen.traffic(destination).and_then(|traffic| traffic.success_percent())
                    == Some(0) =>
                {
                    known.push("every recent attempt failed".to_owned());
                }
                0 => {}
                1 => known.push("the last known attempt failed".to_owned()),
                failed => known.push(format!("the last {failed} known attempts failed")),
            }
            if !known.is_empty() {
                warnings.insert(destination.address.clone(), known.join("; "));
            }
        }
        Self {
            letters: counts.values().sum(),
            rate,
            is_paid: !console.queues.is_local(),
            unlisted,
            warnings: warnings.into_iter().collect(),
        }
    }

    /// Returns the rate at which the replay would send dead letters.
    pub(in crate::console) fn rate(&self) -> Rate {
        self.rate.rate
    }

    /// Describes the forecast in one line: `905 dead letters at 50/s, about 18 s, less than a
    /// cent`. Only a replay on AWS has a cost.
    pub(in crate::console) fn short(&self) -> String {
        if self.letters == 0 {
            return "nothing to send: the dead letters have no subscription".to_owned();
        }
        let letters = text::grouped(self.letters);
        let short = format!("{letters} at {}, {}", self.rate.rate, self.takes());
        if self.is_paid { format!("{short}, {}", price(self.letters)) } else { short }
    }

    fn takes(&self) -> String {
        match self.rate.rate.takes_ms(self.letters) {
            0..SECOND_MS => "less than a second".to_owned(),
            ms => format!("about {}", text::duration(ms)),
        }
    }

    /// Renders the forecast and its warnings, for the page of a replay.
    pub(in crate::console) fn markup(&self) -> Markup {
        if self.letters == 0 {
            return html! { p .forecast { "These dead letters have no subscription, so nothing is \
            sent. Send them to a topic or a URL instead." } };
        }
        html! {
            p .forecast {
                "Sending takes " b { (self.takes()) }
                " (" (line(&self.rate.to_string())) ")"
                @if self.is_paid { " and costs " b { (price(self.letters)) } " on AWS." }
                @else { " and costs nothing: the queue is on this machine." }
                " Each dead letter becomes a new delivery with its own attempts and time to live."
            }
            @if self.unlisted == 0 && !self.is_risky() { p .hint { "None of these destinations is known to fail." } }
            (self.warnings())
        }
    }

    /// Renders the warning about dead letters whose destination is unknown to this console.
    pub(in crate::console) fn unlisted(&self) -> Markup {
        html! { @if self.unlisted > 0 {
            p .notice {
                "Unknown destination: " (text::dead_letters(self.unlisted))
                ". If their subscription was removed, they become dead letters again."
            }
        } }
    }

    /// Renders warnings about unhealthy destinations.
    pub(in crate::console) fn warnings(&self) -> Markup {
        html! { @for (address, known) in self.warnings.iter().take(WARNINGS_MAX) {
            p .notice {
                (line(address)) " is not healthy: " (line(known))
                ". Deliveries that fail become dead letters again."
            }
        } }
    }

    /// Returns true if the stored state or the statistics show that a destination fails.
    pub(in crate::console) fn is_risky(&self) -> bool {
        !self.warnings.is_empty()
    }
}

/// Formats the cost of a replay on AWS, rounded up to a cent.
fn price(letters: u64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a million")]
    let million = DELIVERIES as u64;
    match (letters * REPLAY_DOLLARS * 100).div_ceil(million) {
        0 | 1 => "less than a cent".to_owned(),
        cents => format!("about ${}.{:02}", cents / 100, cents % 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_rounded_up_to_a_cent() {
        assert_eq!(price(0), "less than a cent");
        assert_eq!(price(3_000), "less than a cent");
        assert_eq!(price(50_000), "about $0.15");
        assert_eq!(price(1_000_000), "about $3.00");
    }
}
