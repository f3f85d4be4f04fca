//! The subscriptions as they are read, and what is wrong in their files.

use axum::extract::State;
use axum::response::Response;
use delivery::subscription::Subscription;
use delivery::subscription::policy::settings;
use delivery::time::duration::MINUTE_MS;
use dialects::{Finding, Severity};
use maud::{Markup, html};

use super::app::{Section, SharedApp};
use super::sources::SourcesRead;
use crate::page::markup::{line, time, word};
use crate::text;

/// How many subscriptions are listed.
const LISTED_MAX: usize = 500;
/// How many findings are listed.
const FINDINGS_MAX: usize = 100;
/// The settings of a policy that are worth a line.
const POLICY: [(&str, &str); 4] = [
    ("maxAttempts", "attempts"),
    ("timeToLive", "time to live"),
    ("schedule", "waits"),
    ("timeout", "timeout"),
];
/// A longer schedule is cut.
const SETTING_MAX_CHARS: usize = 80;

pub(super) async fn answer(State(app): State<SharedApp>) -> Response {
    app.sources.refresh();
    let last = app.sources.last();
    let catalogue = &last.reading.catalogue;
    let count = catalogue.subscriptions().count();
    let main = html! {
        div .head { div {
            h1 {
                (text::counted(count as u64, "subscription"))
            }
            p .sub {
                "From " (line(&app.sources.names())) ", read at " (time(Some(last.at_ms)))
                ". The functions use a saved file at once, a changed catalogue within "
                (text::duration(READ_WITHIN_MS)) "."
            }
        } }
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
                    p .hint { "The first " (LISTED_MAX) ". " code { "lastmile subscriptions list" } " has all of them." }
                }
            }
        }
    };
    app.page("Subscriptions", Section::Subscriptions, main)
}

/// The functions look for changes this often, and again when a name is missing.
const READ_WITHIN_MS: u64 = MINUTE_MS / 2;
const _: () = assert!(READ_WITHIN_MS >= adapters::live_topics::LOOK_EVERY_MS);

fn findings(last: &SourcesRead) -> Markup {
    let findings = &last.reading.findings;
    html! {
        @if let Some(problem) = &last.problem { p .invalid { (line(problem)) } }
        @if !findings.is_empty() {
            section aria-labelledby="findings" {
                h2 #findings { "Findings" }
                ul .findings {
                    @for finding in findings.iter().take(FINDINGS_MAX) { (one(finding)) }
                }
                @if findings.len() > FINDINGS_MAX {
                    p .hint { (text::grouped((findings.len() - FINDINGS_MAX) as u64)) " more: " code { "lastmile check" } }
                }
            }
        }
    }
}

fn one(finding: &Finding) -> Markup {
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
            span .id { (word(&subscription.name.to_string())) } " "
            @if subscription.paused { b .state.open { "paused" } " " }
            @if let Some(place) = place { span .kind { (line(place)) } }
        }
        td .address data-label="Destination" { (word(&subscription.destination.display())) }
        td .said data-label="Events" { (line(&subscription.filter.to_string())) }
        td data-label="Policy" { (line(&policy(subscription))) }
    } }
}

/// What matters most of a policy, in one line.
fn policy(subscription: &Subscription) -> String {
    let all = settings(subscription);
    let of = |(field, name): (&str, &str)| {
        let setting = all.iter().find(|setting| setting.field == field)?;
        Some(format!("{name} {}", text::first_chars(&setting.text, SETTING_MAX_CHARS)))
    };
    let dialect = format!("{} profile", subscription.dialect.as_str());
    let parts: Vec<String> = POLICY.into_iter().filter_map(of).chain([dialect]).collect();
    parts.join(" · ")
}
