//! Serves the pages of replay jobs: those that this process runs, and those in the ledgers.
//!
//! The page of a running job reads its progress from memory. All other pages read the ledgers.
//!
//! Promises: a ledger cannot redirect dead letters without consent. If it names a URL, or a queue
//! outside this machine, that the user did not configure, the user must confirm this address before
//! the job is resumed.

use std::ops::Range;
use std::sync::Arc;

use adapters::machine::Machine;
use axum::body::Bytes;
use axum::extract::{self, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use deadletters::Rate;
use deadletters::ledger::{
    JobHeader, JobSummary, LedgerEntry, ReplayCounts, ReplayState, is_job_name,
};
use deadletters::replay::ends::{EndCounts, ReplayEnds};
use deadletters::replay::sender::ReplayTarget;
use deadletters::replay::{Jobs, ReplayJob, RunOptions};
use delivery::delivery::replay::ReplayOutcome;
use delivery::ports::Clock as _;
use delivery::subscription::display;
use delivery::time::duration::SECOND_MS;
use maud::{Markup, html};
use uuid::Uuid;

use super::running::JobProgress;
use crate::console::access::Action;
use crate::console::app::{Console, SharedConsole};
use crate::console::shell::error::PageError;
use crate::console::shell::layout::{PageLayout, Section};
use crate::console::shell::markup::{jobs_not_shown, line, message, or_none, word};
use crate::console::shell::query::{InvalidField, pairs, value};
use crate::operations::this_machine::is_here;
use crate::terminal::advice::chain;
use crate::terminal::text;
use crate::views::replay_end::NO_END;

/// The interval at which the page of a running job refreshes.
const REFRESH_MS: u64 = SECOND_MS;
/// The number of unfinished deliveries up to which a page refreshes automatically. Each refresh
/// reads the outcomes of all deliveries.
const REFRESHED_MAX: u64 = 1_000;
/// The interval at which the page of a job refreshes while deliveries are unfinished.
const ENDS_REFRESH_MS: u64 = 5 * SECOND_MS;
/// The maximum number of dead letters that the page of a job lists.
const ENTRIES_MAX: usize = 200;

/// The columns of the list of jobs.
const COLUMNS: [&str; 8] =
    ["Replay", "Target", "Dead letters", "Sent", "Delivered", "Dead-again", "Refused", "State"];
/// The indexes of the columns with numbers.
const NUMBERS: Range<usize> = 2..7;

/// Serves the page of all jobs, newest first.
pub(in crate::console) async fn list(
    extract::State(console): extract::State<SharedConsole>,
) -> Result<Response, PageError> {
    let Jobs { summaries: jobs, unreadable } =
        console.letters.jobs().await.map_err(PageError::storage)?;
    let main = html! {
        h1 { "Replays" }
        (jobs_not_shown(&unreadable))
        @if jobs.is_empty() {
            @if unreadable.is_empty() { (no_jobs()) }
        } @else {
            table .cards role="table" aria-label="Replays" {
                thead role="rowgroup" { tr role="row" { @for (at, name) in COLUMNS.iter().enumerate() {
                    th role="columnheader" .number[NUMBERS.contains(&at)] { (name) }
                } } }
                tbody role="rowgroup" { @for job in jobs.iter().rev() {
                    @let running = console.jobs.progress(&job.header.job);
                    @let counts = running.map_or(job.counts, |running| running.counts);
                    tr role="row" {
                        td role="cell" data-label="Replay" {
                            a .id href={ "/jobs/" (job.header.job) } { (line(&job.header.job)) }
                        }
                        td role="cell" data-label="Target" { (describe_target(&job.header.to)) }
                        td role="cell" .number data-label="Dead letters" { (text::grouped(job.header.letters as u64)) }
                        td role="cell" .number data-label="Sent" { (text::grouped(counts.sent)) }
                        td role="cell" .number data-label="Delivered" { (known(job, job.ends.delivered)) }
                        td role="cell" .number data-label="Dead-again" { (known(job, job.ends.dead_again)) }
                        td role="cell" .number data-label="Refused" {
                            (text::grouped(counts.refused + counts.uncertain))
                        }
                        td role="cell" data-label="State" { (state(&console, &job.header, counts)) }
                    }
                } }
            }
        }
    };
    let page = PageLayout::new("Replays", Section::Replays, main);
    let page = PageLayout { command: Some(format!("deadletters jobs{}", console.options)), ..page };
    Ok(page.respond(&console, StatusCode::OK))
}

fn no_jobs() -> Markup {
    html! { section .message {
        h2 { "There are no replays" }
        p {
            "Start a replay from a dead letter, or from all dead letters that match a filter. "
            "Each replay is recorded in the container, in " code { "_replays" } "."
        }
        p { a .button href="/letters" { "Dead letters" } }
    } }
}

/// Formats a number of outcomes; a dash if outcomes are not recorded.
fn known(job: &JobSummary, count: u64) -> String {
    if job.header.has_results(&job.counts) { text::grouped(count) } else { "–".to_owned() }
}

fn state(console: &Console, header: &JobHeader, counts: ReplayCounts) -> Markup {
    html! {
        @if console.jobs.progress(&header.job).is_some() { span .state.busy { "running" } }
        @else if counts.finished() == header.letters as u64 { span .state.good { "done" } }
        @else { span .state.open { "interrupted or running elsewhere" } }
    }
}

/// Serves the page of one job.
pub(in crate::console) async fn job_page(
    extract::State(console): extract::State<SharedConsole>,
    Path(job): Path<String>,
) -> Result<Response, PageError> {
    let mut page = match console.jobs.progress(&job) {
        // Read from memory, so that the page does not read the ledger every second.
        Some(running) => {
            let main = html! {
                (head(&console, &running.header, running.counts))
                (progress(running.counts, running.header.letters as u64, Some(&running)))
            };
            let page = PageLayout::new("", Section::Replays, main);
            PageLayout { refresh_ms: Some(REFRESH_MS), status: "Sending", ..page }
        }
        None => not_running(&console, &job).await?,
    };
    page.title = format!("Replay {job}");
    page.command = Some(format!("deadletters jobs{} {job}", console.options));
    Ok(page.respond(&console, StatusCode::OK))
}

/// Renders the page of a job that does not run in this process, from its ledger.
async fn not_running(console: &Console, job: &str) -> Result<PageLayout, PageError> {
    let replay = read_job(console, job).await?;
    let (counts, all) = (replay.counts(), replay.header.letters as u64);
    let is_done = counts.finished() == all;
    let ends = console.letters.recorded_ends(&replay.header, &counts).await;
    let ends = ends.map_err(PageError::storage)?;
    let ended = replay.end_counts(&ends);
    let main = html! {
        (head(console, &replay.header, counts))
        (progress(counts, all, None))
        (outcome(&replay.header, counts, &ended))
        @if let Some(problem) = console.jobs.problem(job) { p .invalid role="alert" { (message(&problem)) } }
        @if !is_done {
            @match replay.header.to.parse::<ReplayTarget>() {
                Ok(_) => (resume_form(console, &replay, counts)),
                Err(why) => p .notice { (line(&why)) },
            }
        }
        (entries(&replay, &ends, replay.header.has_results(&counts)))
    };
    let status = if is_done { "Done" } else { "Interrupted" };
    // Refresh only while the outcome of a delivery may still be recorded.
    let refresh_ms = (replay.header.has_results(&counts)
        && is_done
        && (1..=REFRESHED_MAX).contains(&ended.under_way))
    .then_some(ENDS_REFRESH_MS);
    Ok(PageLayout { status, refresh_ms, ..PageLayout::new("", Section::Replays, main) })
}

fn head(console: &Console, header: &JobHeader, counts: ReplayCounts) -> Markup {
    html! {
        p .crumbs { a href="/jobs" { "Replays" } " / " span { (line(&header.job)) } }
        div .head { div {
            h1 { "Replay of " (text::dead_letters(header.letters as u64)) }
            p .sub {
                (state(console, header, counts))
                " · started " (line(&text::seconds(&header.at)))
                @if let Some(by) = &header.by { " by " (line(by)) }
                " · " (describe_target(&header.to))
                @if let Some(queue) = &header.queue { " through " code { (line(queue)) } }
                @if let Some(rate) = header.rate { " · at most " (rate) }
            }
            @if let Some(note) = &header.note { p .sub { (line(note)) } }
        } }
    }
}

/// Renders the target of a job.
fn describe_target(to: &str) -> Markup {
    html! {
        @match to.parse() {
            Ok(ReplayTarget::Subscription) => "each to its own subscription",
            Ok(ReplayTarget::Topic(topic)) => { "to the topic " b { (line(&topic.to_string())) } },
            Ok(ReplayTarget::Url(_)) | Err(_) => { "to " b { (word(&ReplayTarget::shown_of(to))) } },
        }
    }
}

async fn read_job(console: &Console, job: &str) -> Result<ReplayJob, PageError> {
    check_name(job)?;
    ReplayJob::resume(&console.letters, job).await.map_err(|error| no_job(chain(&error)))
}

/// Refuses an invalid job name before it becomes part of a key or a `Location` header.
fn check_name(job: &str) -> Result<(), PageError> {
    if is_job_name(job) {
        return Ok(());
    }
    Err(no_job(format!("\"{job}\" is not a valid job name.")))
}

fn no_job(why: String) -> PageError {
    PageError::new(StatusCode::NOT_FOUND, "No such replay", why)
        .with_link("/jobs".to_owned(), "All replays")
}

fn progress(counts: ReplayCounts, all: u64, running: Option<&JobProgress>) -> Markup {
    let rows = [
        ("sent", counts.sent),
        ("refused", counts.refused),
        ("uncertain", counts.uncertain),
        ("cannot be sent to this target", counts.unfit),
        ("no longer exist", counts.gone),
        ("uncertain, skipped", counts.skipped),
        ("left", all.saturating_sub(counts.finished() + counts.refused + counts.uncertain)),
    ];
    html! { section .panel aria-label="Progress" {
        progress max=(all) value=(counts.finished()) aria-label="Finished dead letters" {}
        dl .counts {
            @for (name, count) in rows.iter().filter(|(name, count)| *count > 0 || *name == "sent") {
                div { dt { (name) } dd { (text::grouped(*count)) } }
            }
            @if let Some(JobProgress { rate, left_ms: Some(left_ms), .. }) = running {
                div { dt { "per second" } dd { (text::grouped(*rate)) } }
                div { dt { "left" } dd { (text::duration((*left_ms).max(SECOND_MS))) } }
            }
        }
    } }
}

/// Renders the number of deliveries with each outcome.
fn outcome(header: &JobHeader, counts: ReplayCounts, ends: &EndCounts) -> Markup {
    if !header.has_results(&counts) {
        return html! { p .hint { "This container does not record the results of its deliveries." } };
    }
    let rows = [
        ("delivered", ends.delivered),
        ("dead-again", ends.dead_again),
        ("dropped", ends.dropped),
        ("still under way", ends.under_way),
        ("unknown", ends.unknown),
    ];
    html! { section .panel aria-label="Results" {
        dl .counts {
            @for (name, count) in rows.iter().filter(|(name, count)| *count > 0 || *name == "delivered") {
                div { dt { (name) } dd { (text::grouped(*count)) } }
            }
        }
        @if ends.unknown > 0 { p .hint { (text::grouped(ends.unknown)) " unknown: " (message(NO_END)) "." } }
    } }
}

fn resume_form(console: &Console, replay: &ReplayJob, counts: ReplayCounts) -> Markup {
    let uncertain: u64 = replay.uncertain().iter().map(|(_, letters)| letters).sum();
    let open = (replay.header.letters as u64).saturating_sub(counts.finished());
    html! { form .panel action={ "/jobs/" (replay.header.job) "/resume" } method="post" {
        h2 { "Resume" }
        p { (text::dead_letters(open)) " are not finished. A dead letter that is sent twice has the same delivery id both times." }
        (console.token.field())
        @if uncertain > 0 {
            p .notice { (text::dead_letters(uncertain)) " may have been sent before the interruption." }
            label .inline { input type="checkbox" name="skip_uncertain" value="yes"; " Skip these" }
        }
        @if let Some(address) = only_in_ledger(console, &replay.header) {
            label .inline {
                input type="checkbox" name="address" value=(address) required;
                " The address comes only from the ledger: " code { (line(&address)) } ". Send the events there"
            }
        }
        div .buttons {
            label .inline {
                "At most "
                input name="rate" placeholder={ (replay.header.rate.map_or_else(|| "50/s".to_owned(), |rate| rate.to_string())) ", or empty" } aria-label="The maximum rate, as in 50/s"
                    autocomplete="off";
            }
            (console.access.submit(Action::Replay, true, &html! { "Resume with " (text::dead_letters(open)) }))
        }
    } }
}

/// Renders the dead letters of a job, each with its state.
fn entries(replay: &ReplayJob, ends: &ReplayEnds, results: bool) -> Markup {
    let mut all: Vec<(Uuid, Option<&LedgerEntry>)> = replay.entries().collect();
    // Show problems first, because users look for them.
    all.sort_by_key(|(letter, entry)| {
        let end = ends.get(letter).map(|end| end.state);
        let is_sent = entry.is_some_and(|entry| entry.state == ReplayState::Sent);
        (is_sent, end == Some(ReplayOutcome::Delivered), end.is_none())
    });
    html! { section aria-labelledby="entries" {
        h2 #entries {
            "Dead letters"
            @if all.len() > ENTRIES_MAX { span .of { " " (ENTRIES_MAX) " of " (text::grouped(all.len() as u64)) } }
        }
        table .cards role="table" aria-labelledby="entries" {
            thead role="rowgroup" {
                tr role="row" {
                    @for name in ["Dead letter", "State", "Problem", "New delivery"] {
                        th role="columnheader" { (name) }
                    }
                }
            }
            tbody role="rowgroup" { @for (letter, entry) in all.iter().take(ENTRIES_MAX) { tr role="row" {
                td role="cell" data-label="Dead letter" {
                    a .id href={ "/letters/" (letter) } { (text::short_id(*letter)) }
                }
                td role="cell" data-label="State" {
                    (describe_end(*entry, ends.get(letter).map(|end| end.state), results))
                }
                td role="cell" .said data-label="Problem" {
                    (or_none(entry.and_then(|entry| entry.problem.as_deref()).map(line), "–"))
                }
                td role="cell" .mono data-label="New delivery" {
                    @match ends.get(letter).filter(|end| end.is_linked()) {
                        Some(end) => { a href={ "/letters/" (end.delivery) } { (end.delivery) } },
                        None => (or_none(entry.map(|entry| html! { (entry.delivery) }), "–")),
                    }
                }
            } } }
        }
    } }
}

/// Describes the outcome of a delivery if it is recorded; otherwise, whether the delivery was sent.
fn describe_end(
    entry: Option<&LedgerEntry>,
    end: Option<ReplayOutcome>,
    results: bool,
) -> &'static str {
    let Some(entry) = entry else { return "left" };
    match end {
        Some(end) => end.as_str(),
        None if results && entry.is_end_unknown(Machine.now_ms()) => "unknown",
        None => describe_state(entry.state),
    }
}

fn describe_state(state: ReplayState) -> &'static str {
    match state {
        ReplayState::Intent => "uncertain",
        ReplayState::Sent => "sent",
        ReplayState::Refused => "refused",
        ReplayState::Skipped => "uncertain, skipped",
        ReplayState::Missing => "no longer exists",
        ReplayState::Unfit => "cannot be sent to this target",
        ReplayState::Closed => "sent by another job, or dismissed",
    }
}

/// Handles the form that resumes an interrupted job.
pub(in crate::console) async fn resume(
    extract::State(console): extract::State<SharedConsole>,
    Path(job): Path<String>,
    form: Bytes,
) -> Result<Response, PageError> {
    check_name(&job)?;
    let with_link =
        |error: PageError| error.with_link(format!("/jobs/{job}"), "Back to the replay");
    let pairs = pairs(&form);
    let rate = value(&pairs, "rate").map(str::parse::<Rate>).transpose();
    let invalid = |why| PageError::from(InvalidField::new("rate", why));
    let rate = rate.map_err(|why| with_link(invalid(why)))?;
    let skip_uncertain = value(&pairs, "skip_uncertain").is_some();
    let options = RunOptions { rate, skip_uncertain, ..RunOptions::default() };
    let started = || Redirect::to(&format!("/jobs/{job}")).into_response();
    let _one_at_a_time = console.jobs.starting.lock().await;
    if console.jobs.progress(&job).is_some() {
        return Ok(started());
    }
    let replay = read_job(&console, &job).await?;
    let only_in_ledger = only_in_ledger(&console, &replay.header);
    if only_in_ledger.is_some() && only_in_ledger.as_deref() != value(&pairs, "address") {
        let why = "Confirm the address from the ledger.".to_owned();
        return Err(with_link(InvalidField::new("address", why).into()));
    }
    let result = run(&console, replay, options).await;
    result.map_err(|error| with_link(PageError::not_sent(&error)))?;
    Ok(started())
}

/// Returns the URL, or the queue outside this machine, that only the ledger of a job names. Anyone
/// with write access to the container can change a ledger, so the user must confirm the address.
fn only_in_ledger(console: &Console, header: &JobHeader) -> Option<String> {
    let target: ReplayTarget = header.to.parse().ok()?;
    let queue = console.queues.for_target(&target, header.queue.as_deref()).ok()?;
    match (target, queue) {
        (ReplayTarget::Url(url), _) => Some(display(&url)),
        (_, Some(queue)) if console.queues.is_default() && !is_here(&queue) => {
            Some(display(&queue))
        }
        _ => None,
    }
}

async fn run(console: &Console, job: ReplayJob, options: RunOptions) -> anyhow::Result<()> {
    let target: ReplayTarget = job.header.to.parse().map_err(anyhow::Error::msg)?;
    let (sender, _) = console.queues.sender(&target, job.header.queue.as_deref()).await?;
    console.jobs.run(job, sender, options, Arc::clone(&console.caches))
}
