//! The pages of replays: those that this page runs, and those that ledgers tell of.

use axum::body::Bytes;
use axum::extract::{self, Path};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use delivery::time::duration::SECOND_MS;
use maud::{Markup, html};
use uuid::Uuid;

use super::Page;
use super::frame::{Place, Problem, Sheet, line, word};
use super::guard::TOKEN;
use super::query::{pairs, value};
use super::runs::Running;
use crate::letters::ledger::{Counts, Header, Line, State, is_job};
use crate::letters::replay::sender::{Sender, To};
use crate::letters::replay::{Pace, Rate, Replay, queue_of};
use crate::letters::text;

/// How often a running job is looked at.
const AGAIN_MS: u64 = SECOND_MS;
/// So many letters of a job are shown.
const LINES_MAX: usize = 200;

/// What is said of each job.
const COLUMNS: [&str; 6] = ["Replay", "To", "Letters", "Sent", "Not taken", "State"];

/// All jobs, newest first.
pub(super) async fn list(extract::State(page): extract::State<Page>) -> Result<Response, Problem> {
    let jobs = page.letters.jobs().await.map_err(|error| Problem::storage(&error))?;
    let main = html! {
        h1 { "Replays" }
        @if jobs.is_empty() {
            section .notice {
                h2 { "Nothing was sent again" }
                p {
                    "A replay begins at a letter, or at the letters that filters mean. "
                    "What it sends is kept beside them, in " code { "_replays" } "."
                }
                p { a .button href="/" { "Letters" } }
            }
        } @else {
            table .cards role="table" aria-label="Replays" {
                thead role="rowgroup" { tr role="row" { @for name in COLUMNS {
                    th role="columnheader" .number[matches!(name, "Letters" | "Sent" | "Not taken")] { (name) }
                } } }
                tbody role="rowgroup" { @for job in jobs.iter().rev() {
                    @let counts = page.jobs.running(&job.header.job).map_or(job.counts, |running| running.counts);
                    tr role="row" {
                        td role="cell" data-label="Replay" {
                            a .id href={ "/jobs/" (job.header.job) } { (line(&job.header.job)) }
                        }
                        td role="cell" data-label="To" { (aim(&job.header.to)) }
                        td role="cell" .number data-label="Letters" { (text::grouped(job.header.letters as u64)) }
                        td role="cell" .number data-label="Sent" { (text::grouped(counts.sent)) }
                        td role="cell" .number data-label="Not taken" {
                            (text::grouped(counts.refused + counts.uncertain))
                        }
                        td role="cell" data-label="State" { (state(&page, &job.header, counts)) }
                    }
                } }
            }
        }
    };
    Ok(Sheet::new("Replays", Place::Jobs, main).answer(&page, StatusCode::OK))
}

fn state(page: &Page, header: &Header, counts: Counts) -> Markup {
    html! {
        @if page.jobs.running(&header.job).is_some() { span .state.busy { "under way" } }
        @else if counts.ended() == header.letters as u64 { span .state.good { "done" } }
        @else { span .state.open { "broken off, or under way elsewhere" } }
    }
}

/// One job.
pub(super) async fn one(
    extract::State(page): extract::State<Page>,
    Path(job): Path<String>,
) -> Result<Response, Problem> {
    let mut sheet = match page.jobs.running(&job) {
        // What is known is not read from its ledger every second.
        Some(running) => {
            let main = html! {
                (head(&page, &running.header, running.counts))
                (progress(running.counts, running.header.letters as u64, Some(&running)))
            };
            let sheet = Sheet::new("", Place::Jobs, main);
            Sheet { again_ms: Some(AGAIN_MS), status: "Sending", ..sheet }
        }
        None => ended(&page, &job).await?,
    };
    sheet.title = format!("Replay {job}");
    Ok(sheet.answer(&page, StatusCode::OK))
}

/// A job that does not run here, from its ledger.
async fn ended(page: &Page, job: &str) -> Result<Sheet, Problem> {
    let replay = taken_up(page, job).await?;
    let (counts, all) = (replay.counts(), replay.header.letters as u64);
    let is_done = counts.ended() == all;
    let main = html! {
        (head(page, &replay.header, counts))
        (progress(counts, all, None))
        @if let Some(problem) = page.jobs.problem(job) { p .wrong role="alert" { (line(&problem)) } }
        @if !is_done { (resume_form(page, &replay, counts)) }
        (lines(&replay))
    };
    let status = if is_done { "Done" } else { "Broken off" };
    Ok(Sheet { status, ..Sheet::new("", Place::Jobs, main) })
}

fn head(page: &Page, header: &Header, counts: Counts) -> Markup {
    let begun = header.at.get(..19).unwrap_or_default().replace('T', " ");
    html! {
        p .crumbs { a href="/jobs" { "Replays" } " / " span { (line(&header.job)) } }
        div .head { div {
            h1 { "Replay of " (text::letters(header.letters as u64)) }
            p .sub {
                (state(page, header, counts)) " · begun " (line(&begun)) " · " (aim(&header.to))
                @if let Some(queue) = &header.queue { " through " code { (line(queue)) } }
            }
        } }
    }
}

/// Where the letters of a job go.
fn aim(to: &str) -> Markup {
    html! {
        @match to.parse() {
            Ok(To::Subscription) => "each to its own subscription",
            Ok(To::Topic(topic)) => { "to the topic " b { (line(&topic.to_string())) } },
            Ok(To::Url(_)) | Err(_) => { "to " b { (word(to)) } },
        }
    }
}

async fn taken_up(page: &Page, job: &str) -> Result<Replay, Problem> {
    known_name(job)?;
    Replay::resume(&page.letters, job).await.map_err(|error| no_job(format!("{error:#}")))
}

/// A name that no job can have stands in no address, in no ledger's key, and in no line that leads
/// elsewhere.
fn known_name(job: &str) -> Result<(), Problem> {
    if is_job(job) { Ok(()) } else { Err(no_job(format!("\"{job}\" is no name of a job."))) }
}

fn no_job(why: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "No such replay", why)
        .back("/jobs".to_owned(), "All replays")
}

fn progress(counts: Counts, all: u64, running: Option<&Running>) -> Markup {
    let rows = [
        ("sent", counts.sent),
        ("not taken", counts.refused),
        ("uncertain", counts.uncertain),
        ("cannot go this way", counts.unfit),
        ("not there any more", counts.gone),
        ("uncertain, and left alone", counts.skipped),
        ("to go", all.saturating_sub(counts.ended() + counts.refused + counts.uncertain)),
    ];
    html! { section .panel aria-label="How far it is" {
        progress max=(all) value=(counts.ended()) aria-label="Letters that have their end" {}
        dl .counts {
            @for (name, count) in rows.iter().filter(|(name, count)| *count > 0 || *name == "sent") {
                div { dt { (name) } dd { (text::grouped(*count)) } }
            }
            @if let Some(Running { rate, left_ms: Some(left_ms), .. }) = running {
                div { dt { "a second" } dd { (text::grouped(*rate)) } }
                div { dt { "left" } dd { (text::span((*left_ms).max(SECOND_MS))) } }
            }
        }
    } }
}

fn resume_form(page: &Page, replay: &Replay, counts: Counts) -> Markup {
    let uncertain: u64 = replay.uncertain().iter().map(|(_, letters)| letters).sum();
    let open = (replay.header.letters as u64).saturating_sub(counts.ended());
    html! { form .panel action={ "/jobs/" (replay.header.job) "/resume" } method="post" {
        h2 { "Go on" }
        p { (text::letters(open)) " have no end yet. A letter that is sent twice has the same delivery id both times." }
        input type="hidden" name=(TOKEN) value=(page.guard.token());
        @if uncertain > 0 {
            p .remark { (text::letters(uncertain)) " may have been sent when it was broken off." }
            label .inline { input type="checkbox" name="skip_uncertain" value="yes"; " Leave those alone" }
        }
        div .buttons {
            label .inline {
                "At most "
                input name="rate" placeholder="50/s, or nothing" aria-label="At most so many, as in 50/s"
                    autocomplete="off";
            }
            button .primary type="submit" { "Go on with " (text::letters(open)) }
        }
    } }
}

/// The letters of a job, with what became of each.
fn lines(replay: &Replay) -> Markup {
    let mut all: Vec<(Uuid, Option<&Line>)> = replay.lines().collect();
    // What went wrong is what a person looks for.
    all.sort_by_key(|(_, line)| line.is_some_and(|line| line.state == State::Sent));
    html! { section aria-labelledby="lines" {
        h2 #lines {
            "Letters"
            @if all.len() > LINES_MAX { span .of { " " (LINES_MAX) " of " (text::grouped(all.len() as u64)) } }
        }
        table .cards role="table" aria-labelledby="lines" {
            thead role="rowgroup" {
                tr role="row" {
                    @for name in ["Letter", "State", "Problem", "New delivery"] {
                        th role="columnheader" { (name) }
                    }
                }
            }
            tbody role="rowgroup" { @for (letter, of) in all.iter().take(LINES_MAX) { tr role="row" {
                td role="cell" data-label="Letter" { a .id href={ "/letters/" (letter) } { (letter.to_string()[..8]) } }
                td role="cell" data-label="State" { (of.map_or("to go", |of| named(of.state))) }
                td role="cell" .said data-label="Problem" {
                    @match of.and_then(|of| of.problem.as_deref()) {
                        Some(problem) => (line(problem)), None => span .none { "–" }
                    }
                }
                td role="cell" .mono data-label="New delivery" {
                    @match of { Some(of) => (of.delivery), None => span .none { "–" } }
                }
            } } }
        }
    } }
}

fn named(state: State) -> &'static str {
    match state {
        State::Intent => "uncertain",
        State::Sent => "sent",
        State::Refused => "not taken",
        State::Skipped => "uncertain, left alone",
        State::Gone => "not there any more",
        State::Unfit => "cannot go this way",
    }
}

/// Goes on with a job that was broken off.
pub(super) async fn resume(
    extract::State(page): extract::State<Page>,
    Path(job): Path<String>,
    form: Bytes,
) -> Result<Response, Problem> {
    known_name(&job)?;
    let on_back = |problem: Problem| problem.back(format!("/jobs/{job}"), "Back to the replay");
    let asked = pairs(&form);
    let rate = value(&asked, "rate").map(str::parse::<Rate>).transpose();
    let wrong = |why| Problem::new(StatusCode::BAD_REQUEST, "The field rate cannot be used", why);
    let rate = rate.map_err(|why| on_back(wrong(why)))?;
    let pace = Pace { rate, skip_uncertain: value(&asked, "skip_uncertain").is_some() };
    let there = || Redirect::to(&format!("/jobs/{job}")).into_response();
    let _one_at_a_time = page.jobs.beginning.lock().await;
    if page.jobs.running(&job).is_some() {
        return Ok(there());
    }
    let replay = taken_up(&page, &job).await?;
    let begun = go_on(&page, replay, pace).await;
    let failed =
        |error| Problem::new(StatusCode::BAD_GATEWAY, "Nothing was sent", format!("{error:#}"));
    begun.map_err(|error: anyhow::Error| on_back(failed(error)))?;
    Ok(there())
}

async fn go_on(page: &Page, replay: Replay, pace: Pace) -> anyhow::Result<()> {
    let to: To = replay.header.to.parse().map_err(anyhow::Error::msg)?;
    let given = page.queue_url.clone().filter(|_| !matches!(to, To::Url(_)));
    let queue = queue_of(&to, given, replay.header.queue.as_deref())?;
    let sender = Sender::open(&to, &queue).await?;
    page.jobs.run(page, replay, sender, pace)
}
