//! Serves the pages of subscriptions: the list with the findings in their files, and one
//! subscription.

mod page;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use deadletters::replay::is_subscription;
use delivery::subscription::Subscription;
use delivery::subscription::policy::settings;
use delivery::time::duration::MINUTE_MS;
use dialects::{Finding, Severity};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

pub(super) use self::page::{explain, subscription_page};
use super::app::{Console, SharedConsole};
use super::destinations::no_deployment;
use super::shell::layout::{PageLayout, Section};
use super::shell::markup::{line, message, time, word};
use super::sources::SourcesRead;
use crate::terminal::text;

/// The maximum number of subscriptions in the list.
const LISTED_MAX: usize = 500;
/// The maximum number of findings in the list.
const FINDINGS_MAX: usize = 100;
/// The settings of a policy that the list shows: field and label.
const POLICY: [(&str, &str); 4] = [
    ("maxAttempts", "attempts"),
    ("timeToLive", "time to live"),
    ("schedule", "waits"),
    ("timeout", "timeout"),
];
/// The maximum number of characters of a setting. A longer schedule is cut.
const SETTING_MAX_CHARS: usize = 80;

/// Serves the page of all subscriptions.
pub(super) async fn list(State(console): State<SharedConsole>) -> Response {
    console.sources.refresh();
    let last = console.sources.read().await;
    let catalogue = &last.reading.catalogue;
    let count = catalogue.subscriptions().count();
    let main = html! {
        div .head { div {
            h1 {
                (text::counted(count as u64, "subscription"))
            }
            @if last.at_ms > 0 {
                p .sub {
                    "From " (line(&last.names)) ", read at " (time(Some(last.at_ms)))
                    ". The functions apply changes within " (text::duration(READ_WITHIN_MS)) "."
                }
            }
        } }
        @if last.at_ms == 0 { (no_deployment()) }
        (findings(&last))
        @if count > 0 {
            section aria-labelledby="list" {
                h2 #list { "As read" }
                table .cards {
                    thead { tr {
                        th scope="col" { "Subscription" } th scope="col" { "Destination" }
                        th scope="col" { "Events" } th scope="col" { "Policy" }
                    } }
                    tbody {
                        @for subscription in catalogue.subscriptions().take(LISTED_MAX) {
                            (row(subscription, &last))
                        }
                    }
                }
                @if count > LISTED_MAX {
                    p .hint { "The first " (LISTED_MAX) ". " code { "lastmile subscriptions list" } " shows all of them." }
                }
            }
        }
    };
    let page = PageLayout::new("Subscriptions", Section::Subscriptions, main);
    let command = (last.at_ms > 0 && console.is_stack)
        .then(|| format!("subscriptions list{}", console.options));
    PageLayout { command, ..page }.respond(&console, StatusCode::OK)
}

/// Returns the path of the page of a subscription.
fn path(name: &str) -> String {
    let parts =
        name.splitn(3, '/').map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string());
    format!("/subscriptions/{}", parts.collect::<Vec<_>>().join("/"))
}

/// Renders the name of a subscription, as a link to its page if the console has subscriptions.
pub(super) fn link(console: &Console, name: &str) -> Markup {
    html! {
        @if console.deployment.is_some() && is_subscription(name) { a href=(path(name)) { (word(name)) } }
        @else { (word(name)) }
    }
}

/// The maximum time until functions use a saved change. Functions check for changes at least this
/// often, and also when they find an unknown name.
const READ_WITHIN_MS: u64 = MINUTE_MS / 2;
const _: () = assert!(READ_WITHIN_MS >= adapters::live_topics::LOOK_EVERY_MS);

fn findings(last: &SourcesRead) -> Markup {
    let findings = &last.reading.findings;
    html! {
        @if let Some(problem) = &last.problem { p .invalid { (message(problem)) } }
        @if !findings.is_empty() {
            section aria-labelledby="findings" {
                h2 #findings { "Findings" }
                ul .findings {
                    @for finding in findings.iter().take(FINDINGS_MAX) { (described(finding)) }
                }
                @if findings.len() > FINDINGS_MAX {
                    p .hint { (text::grouped((findings.len() - FINDINGS_MAX) as u64)) " more: " code { "lastmile check" } }
                }
            }
        }
    }
}

fn described(finding: &Finding) -> Markup {
    let class = match finding.severity {
        Severity::Error => "invalid",
        Severity::Warning => "notice",
        Severity::Note => "hint",
    };
    html! { li class=(class) { (line(&finding.to_string())) } }
}

fn row(subscription: &Subscription, last: &SourcesRead) -> Markup {
    let origins = last.reading.origins.get(&subscription.name);
    let place = origins.and_then(|origins| origins.get("url").or_else(|| origins.values().next()));
    html! { tr {
        td .first.whose data-label="Subscription" {
            a .id href=(path(&subscription.name.to_string())) { (word(&subscription.name.to_string())) } " "
            @if subscription.paused { b .state.open { "paused" } " " }
            @if let Some(place) = place { span .kind { (line(place)) } }
        }
        td .address data-label="Destination" { (word(&subscription.destination.display())) }
        td .said data-label="Events" { (line(&subscription.filter.to_string())) }
        td data-label="Policy" { (line(&policy(subscription))) }
    } }
}

/// Formats the most important settings of a policy in one line.
fn policy(subscription: &Subscription) -> String {
    let all = settings(subscription);
    let describe = |(field, name): (&str, &str)| {
        let setting = all.iter().find(|setting| setting.field == field)?;
        Some(format!("{name} {}", text::first_chars(&setting.text, SETTING_MAX_CHARS)))
    };
    let dialect = format!("{} profile", subscription.dialect.as_str());
    let parts: Vec<String> = POLICY.into_iter().filter_map(describe).chain([dialect]).collect();
    parts.join(" · ")
}
