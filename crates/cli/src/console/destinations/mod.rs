//! Serves the pages of destinations: their health, their success rate, and the next step of their
//! deliveries.

#[cfg(feature = "aws")]
pub(crate) mod cloudwatch;
pub(crate) mod rates;

use std::sync::Arc;

use adapters::machine::Machine;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use delivery::ports::Clock as _;
use delivery::time::duration::{HOUR_MS, SECOND_MS};
use maud::{Markup, html};

use self::rates::Rates;
use super::app::{Console, SharedConsole};
use super::letters::filters::periods;
use super::live::traffic::Traffic;
use super::shell::error::PageError;
use super::shell::layout::{PageLayout, Section};
use super::shell::markup::{line, message, or_none, time, word};
use super::shell::query::{Query, href, pairs, range_ms};
use super::subscriptions;
use crate::operations::destinations::deployment::Deployment;
use crate::operations::destinations::health::{DestinationHealth, Health};
use crate::terminal::advice::chain;
use crate::terminal::text;

/// The maximum number of destinations in the list.
const LISTED_MAX: usize = 500;
/// The default time range of success rates.
const RANGE_MS: u64 = HOUR_MS;
/// The maximum number of subscriptions named in a row.
const NAMED_MAX: usize = 3;
/// The maximum age of the displayed health. Each reading queries the table for every destination.
const HEALTH_MAX_AGE_MS: u64 = 30 * SECOND_MS;
/// The maximum age of the displayed health in `lastmile dev`, whose table is on this machine.
const LOCAL_MAX_AGE_MS: u64 = SECOND_MS;
/// The minimum success rate in percent that counts as healthy. A lower rate is shown as a failure.
const GOOD_PERCENT: u64 = 99;

/// Caches the health of destinations, so that several pages share one reading.
#[derive(Default)]
pub(super) struct HealthCache(tokio::sync::Mutex<Option<(u64, Arc<Health>)>>);

impl HealthCache {
    async fn read(&self, deployment: &Deployment, max_age_ms: u64) -> anyhow::Result<Arc<Health>> {
        let mut last = self.0.lock().await;
        let oldest_ms = Machine.now_ms().saturating_sub(max_age_ms);
        if let Some((_, health)) = last.as_ref().filter(|(at_ms, _)| *at_ms >= oldest_ms) {
            return Ok(Arc::clone(health));
        }
        let health = Arc::new(deployment.health().await?);
        *last = Some((Machine.now_ms(), Arc::clone(&health)));
        Ok(health)
    }
}

/// The health of destinations, and the statistics of their attempts.
pub(super) struct Seen {
    pub(super) health: Arc<Health>,
    rates: Rates,
    /// The reason why the health of destinations cannot be read.
    problem: Option<String>,
    range_ms: u64,
}

impl Seen {
    /// Reads the health of all destinations, and the statistics of the last `range_ms` milliseconds
    /// (by default, [`RANGE_MS`]).
    pub(super) async fn read(console: &Console, range_ms: Option<u64>) -> Self {
        let range_ms = range_ms.unwrap_or(RANGE_MS);
        let max_age_ms = if console.live.is_some() { LOCAL_MAX_AGE_MS } else { HEALTH_MAX_AGE_MS };
        let (health, problem) = match &console.deployment {
            None => (Arc::default(), None),
            Some(deployment) => match console.health.read(deployment, max_age_ms).await {
                Ok(health) => (health, None),
                Err(error) => (Arc::default(), Some(chain(&error))),
            },
        };
        let of_each = health
            .destinations
            .iter()
            .flat_map(|destination| destination.subscriptions.iter().cloned());
        let mut names: Vec<String> = of_each.collect();
        names.sort_unstable();
        names.dedup();
        let rates = console.rates.last(range_ms, &names).await;
        Self { health, rates, problem, range_ms }
    }

    /// Returns the statistics of all attempts to a destination; `None` if attempts were not
    /// measured.
    pub(super) fn traffic(&self, destination: &DestinationHealth) -> Option<Traffic> {
        self.rates.traffic(destination.subscriptions.iter().map(String::as_str))
    }

    /// Returns true if any destination has an unhealthy condition or a low success rate.
    pub(super) fn is_any_unhealthy(&self) -> bool {
        self.health.destinations.iter().any(|destination| {
            let percent = self.traffic(destination).and_then(|traffic| traffic.success_percent());
            !destination.conditions.is_empty()
                || percent.is_some_and(|percent| percent < GOOD_PERCENT)
        })
    }

    /// Returns the destination of a subscription, by the full name of the subscription.
    pub(super) fn of_subscription(&self, name: &str) -> Option<&DestinationHealth> {
        let has = |destination: &&DestinationHealth| {
            destination.subscriptions.iter().any(|subscription| subscription == name)
        };
        self.health.destinations.iter().find(has)
    }

    /// Renders the health of a destination.
    pub(super) fn health(&self, destination: &DestinationHealth) -> Markup {
        health(destination, self.traffic(destination).as_ref())
    }

    /// Renders an explanation of which data is missing.
    fn notes(&self) -> Markup {
        html! {
            @if let Some(problem) = &self.problem { p .invalid { "Destinations cannot be read: " (message(problem)) } }
            @for problem in &self.health.problems { p .invalid { (message(problem)) } }
            @if let Some(note) = &self.rates.note { p .hint { (line(note)) } }
        }
    }

    /// Returns the destinations by urgency: unhealthy ones first, then by success rate, lowest
    /// first.
    pub(super) fn worst_first(&self) -> Vec<&DestinationHealth> {
        let mut all: Vec<&DestinationHealth> = self.health.destinations.iter().collect();
        all.sort_by_cached_key(|destination| {
            let traffic = self.traffic(destination);
            let percent = traffic.and_then(|traffic| traffic.success_percent()).unwrap_or(u64::MAX);
            (destination.conditions.is_empty(), percent, destination.address.clone())
        });
        all
    }

    /// Renders a table of destinations.
    pub(super) fn table(&self, shown: &[&DestinationHealth]) -> Markup {
        html! {
            (self.notes())
            @if !shown.is_empty() {
                table .cards role="table" aria-label="Destinations" {
                    thead role="rowgroup" { tr role="row" {
                        th role="columnheader" { "Destination" }
                        th role="columnheader" { "Health" }
                        th role="columnheader" .number { "Succeeded" }
                        th role="columnheader" .number { "95 % within" }
                        th role="columnheader" { "Next delivery" }
                    } }
                    tbody role="rowgroup" { @for destination in shown { (self.row(destination)) } }
                }
            }
        }
    }

    fn row(&self, destination: &DestinationHealth) -> Markup {
        let traffic = self.traffic(destination).unwrap_or_default();
        html! { tr role="row" {
            td role="cell" .first.address data-label="Destination" {
                a .id href={ "/destinations/" (destination.key) } { (word(&destination.address)) }
                @for name in destination.subscriptions.iter().take(NAMED_MAX) {
                    div .kind { (word(name)) }
                }
                @if destination.subscriptions.len() > NAMED_MAX {
                    div .kind { "and " (destination.subscriptions.len() - NAMED_MAX) " more" }
                }
            }
            td role="cell" data-label="Health" { div { (self.health(destination)) } }
            td role="cell" .number data-label="Succeeded" { div { (success(&traffic)) } }
            td role="cell" .number data-label="95 % within" {
                (or_none(traffic.p95_ms().map(|ms| html! { (text::duration(ms)) }), "–"))
            }
            td role="cell" data-label="Next delivery" { div {
                (line(&destination.next))
                @for limit in &destination.limits { div .kind { (line(limit)) } }
            } }
        } }
    }
}

/// Renders the health of a destination: its stored conditions; if there are none, its success rate.
fn health(destination: &DestinationHealth, traffic: Option<&Traffic>) -> Markup {
    html! {
        @for (name, why) in &destination.conditions {
            p { b .state.bad { (line(name)) } " " span .kind { (line(why)) } }
        }
        @if destination.conditions.is_empty() {
            @match traffic.map(|traffic| (traffic.successes, traffic.success_percent())) {
                None => { "no known problem" span .kind { ", success rate unknown" } },
                Some((_, None)) => { b .state.good { "healthy" } span .kind { ", no attempt in this period" } },
                Some((0, _)) => b .state.bad { "every attempt fails" },
                Some((_, Some(percent))) if percent < GOOD_PERCENT => b .state.open { "some attempts fail" },
                Some(_) => b .state.good { "healthy" },
            }
        }
    }
}

/// Renders the success rate, and the number of attempts.
fn success(traffic: &Traffic) -> Markup {
    html! { @match traffic.success_percent() {
        None => span .none { "–" },
        Some(percent) => {
            b class=(if percent < GOOD_PERCENT { "state bad" } else { "state good" }) { (percent) " %" }
            " " span .kind { "of " (text::grouped(traffic.attempts())) }
        }
    } }
}

/// Serves the page of all destinations.
pub(super) async fn list(
    State(console): State<SharedConsole>,
    uri: Uri,
) -> Result<Response, PageError> {
    let (query, filter) = Query::read(&pairs(uri.query().unwrap_or_default().as_bytes()), &[])?;
    let seen = Seen::read(&console, range_ms(&filter)).await;
    let all = seen.worst_first();
    let main = html! {
        div .head { div {
            h1 { (text::counted(all.len() as u64, "destination")) }
            p .sub {
                "Success rates of the last " (text::duration(seen.range_ms)) ". Disable and enable destinations with "
                code { "lastmile destinations" } "."
            }
        } }
        (periods(&query, "/destinations"))
        @if console.deployment.is_none() { (no_deployment()) }
        (seen.table(all.get(..LISTED_MAX.min(all.len())).unwrap_or_default()))
        @if all.len() > LISTED_MAX { p .hint { "The first " (LISTED_MAX) " of " (text::grouped(all.len() as u64)) "." } }
    };
    let command =
        console.destination_options().map(|options| format!("destinations list{options}"));
    let page = PageLayout::new("Destinations", Section::Destinations, main);
    Ok(PageLayout { command, ..page }.respond(&console, StatusCode::OK))
}

/// Serves the page of one destination.
pub(super) async fn destination_page(
    State(console): State<SharedConsole>,
    Path(key): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    let (query, filter) = Query::read(&pairs(uri.query().unwrap_or_default().as_bytes()), &[])?;
    let seen = Seen::read(&console, range_ms(&filter)).await;
    if let Some(problem) = seen.problem {
        let title = "Destinations cannot be read";
        return Err(PageError::new(StatusCode::BAD_GATEWAY, title, problem));
    }
    let Some(destination) =
        seen.health.destinations.iter().find(|destination| destination.key == key)
    else {
        let why = "No subscription delivers to this destination, and it has no stored state.";
        let error = PageError::new(StatusCode::NOT_FOUND, "No such destination", why);
        return Err(error.with_link("/destinations".to_owned(), "All destinations"));
    };
    let path = format!("/destinations/{key}");
    let main = html! {
        p .crumbs {
            a href="/destinations" { "Destinations" } " / " span { (word(&destination.address)) }
        }
        div .head { div {
            h1 { (word(&destination.address)) }
            p .sub { (line(&destination.next)) }
        } }
        (periods(&query, &path))
        (seen.table(&[destination]))
        (details(&console, destination))
    };
    let command =
        console.destination_options().map(|options| format!("destinations show{options} {key}"));
    let page = PageLayout::new(destination.address.clone(), Section::Destinations, main);
    Ok(PageLayout { command, ..page }.respond(&console, StatusCode::OK))
}

fn details(console: &Console, destination: &DestinationHealth) -> Markup {
    html! {
        section aria-labelledby="limits" {
            h2 #limits { "Limits" }
            @if destination.limits.is_empty() { p .none { "This destination has no limits." } }
            ul { @for limit in &destination.limits { li { (line(limit)) } } }
        }
        section aria-labelledby="attempts" {
            h2 #attempts { "Last attempts that changed the health" }
            @if destination.attempts.is_empty() { p .none { "None." } }
            ol .timeline { @for (at_ms, outcome) in destination.attempts.iter().rev() {
                li .attempt { (time(Some(*at_ms))) " " span { (line(outcome)) } }
            } }
        }
        section aria-labelledby="subscriptions" {
            h2 #subscriptions { "Subscriptions of this destination" }
            ul { @for name in &destination.subscriptions {
                li { (subscriptions::link(console, name)) }
            } }
            p { a href=(href("/letters", [("destination", destination.address.as_str())])) {
                "Dead letters of this destination"
            } }
        }
    }
}

/// Renders an explanation of how to start the console with a deployment, if it only shows a
/// container.
pub(super) fn no_deployment() -> Markup {
    html! { p .notice {
        "This console shows only a container of dead letters. Start it with " code { "lastmile console --stack NAME" }
        " to see destinations and subscriptions too."
    } }
}
