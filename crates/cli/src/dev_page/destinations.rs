//! The health of every destination, as the functions share it with each other and with
//! `lastmile destinations`.

use std::path::PathBuf;

use axum::extract::State;
use axum::response::Response;
use futures::future::BoxFuture;
use maud::{Markup, html};

use super::app::{App, Section, SharedApp};
use crate::advice::chain;
use crate::page::markup::{line, word};
use crate::text;

/// What is known of a destination.
pub(crate) struct DestinationHealth {
    /// Without credentials and query.
    pub(crate) address: String,
    /// The subscriptions that deliver there.
    pub(crate) subscriptions: Vec<String>,
    /// In which ways it is not healthy, and since when and why.
    pub(crate) conditions: Vec<(String, String)>,
    /// What happens to its next delivery.
    pub(crate) next: String,
    /// Its limits, and how much of them is used.
    pub(crate) limits: Vec<String>,
}

/// The health of all destinations, and what could not be read of it.
#[derive(Default)]
pub(crate) struct Health {
    pub(crate) destinations: Vec<DestinationHealth>,
    pub(crate) problems: Vec<String>,
}

/// Reads the health of the destinations of these subscriptions. The page does not know how: that is what
/// `lastmile destinations` knows.
pub(crate) type ReadHealth = fn(PathBuf) -> BoxFuture<'static, anyhow::Result<Health>>;

/// How many destinations are listed.
const LISTED_MAX: usize = 500;
/// The causes of a hold that mean that a destination is limited.
const LIMITS: [&str; 3] = ["rate", "concurrency", "retryAfter"];

pub(super) async fn answer(State(app): State<SharedApp>) -> Response {
    let read = (app.setup.read_health)(app.setup.subscriptions.clone()).await;
    let main = match read {
        Err(error) => html! {
            h1 { "Destinations" }
            p .invalid { "They cannot be read: " (line(&chain(&error))) }
        },
        Ok(health) => list(&app, &health),
    };
    app.page("Destinations", Section::Destinations, main)
}

fn list(app: &App, health: &Health) -> Markup {
    let Health { destinations: all, problems } = health;
    html! {
        div .head { div {
            h1 {
                (text::counted(all.len() as u64, "destination"))
            }
            p .sub {
                "What dispatch knows of them now. Disable, enable and probe them with "
                code { "lastmile destinations" } "."
            }
        } }
        @for problem in problems { p .invalid { (line(problem)) } }
        @if !all.is_empty() {
            table .cards {
                thead { tr {
                    th scope="col" { "Destination" } th scope="col" { "State" }
                    th scope="col" { "Next delivery" } th scope="col" { "Limits" }
                    th scope="col" { "Subscriptions" }
                } }
                tbody { @for it in all.iter().take(LISTED_MAX) { (row(app, it)) } }
            }
            @if all.len() > LISTED_MAX { p .hint { "The first " (LISTED_MAX) "." } }
        }
    }
}

fn row(app: &App, it: &DestinationHealth) -> Markup {
    let limited = limited(app, &it.subscriptions);
    html! { tr {
        td .first.address data-label="Destination" { span .id { (word(&it.address)) } }
        td data-label="State" {
            @for (name, why) in &it.conditions {
                p { b .state.bad { (line(name)) } " " span .kind { (line(why)) } }
            }
            @if let Some(why) = &limited { p { b .state.open { "limited" } " " span .kind { (line(why)) } } }
            @if it.conditions.is_empty() && limited.is_none() { b .state.good { "healthy" } }
        }
        td data-label="Next delivery" { (line(&it.next)) }
        td data-label="Limits" {
            @if it.limits.is_empty() { span .none { "none" } }
            @for limit in &it.limits { p { (line(limit)) } }
        }
        td data-label="Subscriptions" {
            @for name in &it.subscriptions { p { (word(name)) } }
        }
    } }
}

/// Why deliveries of these subscriptions wait for their turn, if the last step of one of them says so.
fn limited(app: &App, subscriptions: &[String]) -> Option<String> {
    app.read(|feed| {
        let of = |name: &str| subscriptions.iter().any(|it| it == name);
        let newest = feed.steps_after(0).rev().find(|step| of(&step.of.subscription))?;
        let words = &newest.what.words;
        let is_held = words.name == "held" && LIMITS.contains(&words.outcome.as_str());
        is_held.then(|| format!("a delivery waits: {}", words.outcome))
    })
}
