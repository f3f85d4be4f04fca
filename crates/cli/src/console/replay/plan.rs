//! Serves the page that starts a replay: shows the exact dead letters and their target, then a
//! button that starts the job.
//!
//! Separate from [`super::jobs`], which shows started replays.
//!
//! Promises: the job sends exactly the dead letters that the page showed, or none. If the form is
//! submitted twice, one job starts.

use std::sync::Arc;

use adapters::machine::Machine;
use axum::body::Bytes;
use axum::extract;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use deadletters::Rate;
use deadletters::dismissed::NOTE_MAX_CHARS;
use deadletters::letter_cache::{LETTERS_MAX, LetterCache};
use deadletters::replay::sender::ReplayTarget;
use deadletters::replay::{NewJob, ReplayJob, ReplayPlan, RunOptions, job_name};
use delivery::ports::Clock as _;
use maud::{Markup, html};
use uuid::Uuid;

use super::forecast::Forecast;
use super::form::ReplayForm;
use crate::console::access::Action;
use crate::console::app::{Console, SharedConsole};
use crate::console::destinations::Seen;
use crate::console::letters::caches::{COUNT_MAX_AGE_MS, CacheState, WaitMode};
use crate::console::letters::filters::chips;
use crate::console::letters::fingerprint::{FINGERPRINT, fingerprint};
use crate::console::letters::overview::read_at;
use crate::console::letters::summary::Summary;
use crate::console::shell::error::PageError;
use crate::console::shell::layout::{PageLayout, Section, reading};
use crate::console::shell::markup::{line, message, word};
use crate::console::shell::query::{InvalidField, LIST};
use crate::operations::destinations::stopped_at;
use crate::operations::this_machine::user;
use crate::terminal::advice::chain;
use crate::terminal::text;
use crate::views::unreadable_ledger::refusal;

/// Serves the page of a replay before it starts. Sends nothing.
pub(in crate::console) async fn dry_run(
    extract::State(console): extract::State<SharedConsole>,
    uri: Uri,
) -> Result<Response, PageError> {
    let form = ReplayForm::read(uri.query().unwrap_or_default().as_bytes())?;
    let (query, filter) = (&form.query, &form.filter);
    let state = console.caches.matching(query, filter, COUNT_MAX_AGE_MS, WaitMode::Briefly).await;
    let cache = match state? {
        CacheState::Ready(cache) => cache,
        CacheState::Reading(requests) => return Ok(reading(&console, requests)),
    };
    let status = if form.target.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let counted = match &form.target {
        Ok((target, rate)) => count(&console, &form, &cache, target, *rate).await,
        Err(_) => html! {},
    };
    let main = html! {
        p .crumbs { a href=(query.at(LIST)) { "Dead letters" } " / " span { "Replay" } }
        h1 { "Replay" }
        (chips(query))
        (target_form(&console, &form))
        (counted)
        (read_at(&cache, &form.href()))
    };
    let queue = form.target.as_ref().map(|(target, _)| console.queues.option(target));
    let options =
        [&console.options, &query.as_options(), &form.options(), &queue.unwrap_or_default()];
    let command = format!("deadletters replay{}", options.map(String::as_str).concat());
    // If the URL has credentials or a query, show no command, because people may pass a command on.
    let has_secrets = matches!(&form.target, Ok((target @ ReplayTarget::Url(_), _)) if target.shown() != form.field("to_url"));
    let command = Some(command).filter(|_| !has_secrets);
    let page = PageLayout { command, ..PageLayout::new("Replay", Section::DeadLetters, main) };
    Ok(page.respond(&console, status))
}

/// Renders the form for the target and the rate.
fn target_form(console: &Console, form: &ReplayForm) -> Markup {
    let is_invalid = |name: &str| form.target.as_ref().is_err_and(|invalid| invalid.field == name);
    let chosen = Some(form.field("to")).filter(|to| !to.is_empty()).unwrap_or("subscription");
    let radio = |name: &str, label: &str, more: Markup| {
        html! { div .choice {
            label { input type="radio" name="to" value=(name) checked[chosen == name]; span { (label) } }
            (more)
        } }
    };
    let input = |name: &str, label: &str, hint: &str| {
        html! {
            input name=(name) value=(form.field(name)) placeholder=(hint) aria-label=(label)
                autocomplete="off" spellcheck="false"
                aria-invalid=[is_invalid(name).then_some("true")]
                aria-describedby=[is_invalid(name).then_some("invalid")];
        }
    };
    html! { form .panel.way action="/replay" method="get" {
        fieldset {
            legend { "Target" }
            (radio("subscription", "Each to its own subscription only", html! {
                p .hint { "As a new delivery: " (message(&displayed_queue(console))) }
            }))
            (radio("topic", "To all subscriptions of the topic", input("to_topic", "The topic", "shop/orders")))
            (radio("url", "POST to the URL", input("to_url", "The URL", "https://example.com/events")))
        }
        div .buttons {
            label .inline { "At most " (input("rate", "The maximum rate, as in 50/s", "50/s, or empty")) }
            button type="submit" { "Count again" }
        }
        @for (name, value) in form.query.filters() { input type="hidden" name=(name) value=(value); }
        @if let Err(invalid) = &form.target { p #invalid .invalid role="alert" { (message(&invalid.why)) } }
    } }
}

/// Describes the queue that is used to replay dead letters to their subscriptions, or says why there
/// is none.
fn displayed_queue(console: &Console) -> String {
    match console.queues.for_target(&ReplayTarget::Subscription, None) {
        Ok(queue) => console.queues.describe(&ReplayTarget::Subscription, queue.as_ref()),
        Err(problem) => problem.to_string(),
    }
}

/// A planned replay, and the numbers of dead letters that the plan omits.
struct Planned {
    plan: ReplayPlan,
    /// The number of dead letters omitted because of their state.
    in_other_states: u64,
    /// The number of dead letters omitted because their subscription is stopped.
    stopped: u64,
    /// The steps that the user must take before the omitted dead letters can be sent.
    remedies: Vec<String>,
}

/// Plans a replay.
///
/// # Errors
/// The reason why nothing would be sent. The plan fails if a ledger is unreadable, because it may
/// record that dead letters were already sent. It also fails if the deployment is unreadable,
/// because subscriptions may be stopped.
async fn plan_of(
    console: &Console,
    form: &ReplayForm,
    cache: &LetterCache,
    target: &ReplayTarget,
) -> Result<Planned, String> {
    if let (Some(ledger), false) =
        (cache.states.unreadable().first(), form.filter.is_of_any_state())
    {
        return Err(refusal(ledger));
    }
    let mut plan = ReplayPlan::default();
    let matching = cache.matching(&form.filter);
    matching.iter().for_each(|letter| plan.add(letter, target));
    // A dead letter and the dead letter of its failed replay contain the same event, so send only
    // the newer of the two.
    plan.leave_out_older(&cache.states);
    let of_any_state = cache.matching(&form.filter.clone().of_any_state());
    let in_other_states = (of_any_state.len() - matching.len()) as u64;
    let mut planned = Planned { plan, in_other_states, stopped: 0, remedies: Vec::new() };
    if let (Some(deployment), ReplayTarget::Subscription) = (&console.deployment, target) {
        let set_aside = planned.plan.set_aside();
        let names = set_aside.into_iter().filter_map(|name| name.parse().ok()).collect();
        let stopped = stopped_at(deployment, &names).await.map_err(|error| chain(&error))?;
        planned.stopped = planned.plan.leave_out_stopped(|name| stopped.contains_key(name));
        planned.remedies = stopped.into_values().collect();
    }
    Ok(planned)
}

/// Renders the reason why nothing would be sent, and a link that includes dead letters in every
/// state.
fn refused(form: &ReplayForm, why: &str) -> Markup {
    html! { section .panel aria-labelledby="count" {
        h2 #count { "Nothing to send" }
        p .notice {
            (message(why)) ". "
            a href=(form.href_of_any_state()) { "Send them regardless of earlier replays" }
        }
    } }
}

/// Renders the exact number of dead letters that the replay would send, and the button that starts
/// the replay.
async fn count(
    console: &Console,
    form: &ReplayForm,
    cache: &LetterCache,
    target: &ReplayTarget,
    rate: Option<Rate>,
) -> Markup {
    let planned = match plan_of(console, form, cache, target).await {
        Ok(planned) => planned,
        Err(why) => return refused(form, &why),
    };
    let Planned { plan, in_other_states: left_out, stopped, remedies } = &planned;
    let (left_out, stopped) = (*left_out, *stopped);
    let seen = Seen::read(console, None).await;
    let sources = console.sources.read().await;
    let causes = Summary::new(cache.matching(&form.filter), cache).causes;
    let forecast =
        Forecast::new(console, &plan.subscriptions, &sources.reading.catalogue, &seen, rate);
    let (count, sent) = (plan.len() as u64, plan.sent_before(&cache.states));
    html! { section .panel aria-labelledby="count" {
        h2 #count { @if count == 0 { "Nothing to send" } @else { (text::dead_letters(count)) " to send" } }
        @if let [cause] = causes.as_slice() { p { "Cause: " (line(&cause.title)) } }
        p .sub { (describe(target)) }
        @if cache.is_truncated {
            p .notice {
                "There are more than " (text::grouped(LETTERS_MAX as u64)) " dead letters: narrow the filter, or use "
                code { "lastmile deadletters replay" } ", which has no such limit."
            }
        }
        @if count > 0 {
            (subscriptions(plan, &seen))
        }
        @if count > 0 && *target == ReplayTarget::Subscription { (forecast.markup()) }
        @if stopped > 0 {
            p .notice { "Omitted: " (text::dead_letters(stopped)) " of stopped subscriptions:" }
            ul { @for remedy in remedies { li { (message(remedy)) } } }
        }
        @if left_out > 0 {
            p .notice {
                "Omitted: " (text::dead_letters(left_out)) " in another state. "
                a href=(form.href_of_any_state()) { "Include them" }
            }
        }
        (planned_elsewhere(plan, cache))
        @if sent > 0 {
            p .notice {
                (text::grouped(sent)) " of them were already replayed; receivers may receive them twice. "
                a href="/jobs" { "Show all replays" }
            }
        }
        @for (name, count) in &plan.without_subscription {
            p .notice {
                (text::dead_letters(*count)) " of " (word(name))
                ": skipped, because this is not a subscription. Select a topic or a URL to send \
                 them."
            }
        }
        @if plan.malformed_replies > 0 {
            p .notice {
                (text::dead_letters(plan.malformed_replies))
                ": skipped, because they are replies that are not events. Select a URL to send \
                 them."
            }
        }
        @if count > 0 && !cache.is_truncated {
            @if *target == ReplayTarget::Subscription { (forecast.unlisted()) }
            (button(console, form, plan, forecast.rate()))
        }
    } }
}

/// Renders the number of dead letters of each subscription, and the health of its destination.
fn subscriptions(plan: &ReplayPlan, seen: &Seen) -> Markup {
    html! {
        table .plain {
            thead { tr {
                th scope="col" { "Subscription" } th .number scope="col" { "Count" }
                th scope="col" { "Current destination" }
            } }
            tbody {
                @for (name, count) in &plan.subscriptions {
                    tr {
                        td { (word(name)) } td .number { (text::grouped(*count)) }
                        td { @if let Some(destination) = seen.of_subscription(name) {
                            (word(&destination.address)) " " (seen.health(destination))
                        } @else { span .none { "unknown" } } }
                    }
                }
            }
        }
    }
}

/// Renders a warning about dead letters that another job plans to send.
fn planned_elsewhere(plan: &ReplayPlan, cache: &LetterCache) -> Markup {
    let is_planned = |id: &&Uuid| cache.states.planned_by(**id).is_some();
    let count = plan.ids().iter().filter(is_planned).count() as u64;
    html! { @if count > 0 {
        p .notice {
            (text::grouped(count)) " of them are in the plan of an unfinished job, which may send them too. "
            a href="/jobs" { "Show all replays" }
        }
    } }
}

fn describe(target: &ReplayTarget) -> Markup {
    html! { @match target {
        ReplayTarget::Subscription => "The original event, byte for byte, as a new delivery only to its own subscription: to the address that failed.",
        ReplayTarget::Topic(topic) => {
            "Published to " b { (line(&topic.to_string())) } ", for all its subscriptions."
        },
        ReplayTarget::Url(_) => { "POST to " b { (word(&target.shown())) } ". No subscription is used." },
    } }
}

fn button(console: &Console, form: &ReplayForm, plan: &ReplayPlan, rate: Rate) -> Markup {
    html! { form .buttons action="/replay" method="post" {
        (console.token.field())
        input type="hidden" name=(FINGERPRINT) value=(fingerprint(plan.ids()));
        // Choose the name of the job before it starts. If the form is submitted twice, both
        // requests then name the same job.
        input type="hidden" name="job" value=(job_name(Machine.now_ms()));
        @for (name, value) in form.query.filters() { input type="hidden" name=(name) value=(value); }
        @for name in ["to", "to_topic", "to_url"] {
            input type="hidden" name=(name) value=(form.field(name));
        }
        input type="hidden" name="rate" value=(rate);
        label .inline { "Note " input name="note" placeholder="for the list of replays" maxlength=(NOTE_MAX_CHARS) autocomplete="off"; }
        (console.access.submit(Action::Replay, true, &html! {
            "Send " (text::dead_letters(plan.len() as u64)) ", at most " (rate)
        }))
        a .button href=(form.query.at(LIST)) { "Cancel" }
    } }
}

/// Handles the form that starts the job, for exactly the dead letters that the page showed.
pub(in crate::console) async fn start(
    extract::State(console): extract::State<SharedConsole>,
    body: Bytes,
) -> Result<Response, PageError> {
    let form = ReplayForm::read(&body)?;
    let back = form.href();
    let with_link = |error: PageError| error.with_link(back.clone(), "Back to the replay");
    let invalid = |field: InvalidField| with_link(field.into());
    let (target, rate) = form.target.clone().map_err(invalid)?;
    let job = form.job().map_err(invalid)?;
    let started = Redirect::to(&format!("/jobs/{job}")).into_response();
    let _one_at_a_time = console.jobs.starting.lock().await;
    if console.jobs.knows(&job) {
        return Ok(started);
    }
    // Read the container again instead of using a cache. The job sends exactly the dead letters
    // that the page showed, or none.
    let state = console.caches.matching(&form.query, &form.filter, 0, WaitMode::UntilRead).await;
    let CacheState::Ready(cache) = state? else {
        return Err(with_link(PageError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Not loaded yet",
            "The container is still being read.",
        )));
    };
    let refused =
        |why: String| with_link(PageError::new(StatusCode::CONFLICT, "Nothing was sent", why));
    let Planned { plan, .. } = plan_of(&console, &form, &cache, &target).await.map_err(refused)?;
    if form.field(FINGERPRINT) != fingerprint(plan.ids()) || cache.is_truncated {
        let count = text::dead_letters(plan.len() as u64);
        let why = format!(
            "The selection has changed to {count}. Nothing was sent; check the dead letters and \
             try again."
        );
        let error = PageError::new(StatusCode::CONFLICT, "The dead letters have changed", why);
        return Err(with_link(error));
    }
    let note = Some(form.field("note").to_owned()).filter(|note| !note.is_empty());
    let result = run(&console, job, (&target, rate), plan, note).await;
    result.map_err(|error| with_link(PageError::not_sent(&error)))?;
    Ok(started)
}

async fn run(
    console: &Console,
    job: String,
    (target, rate): (&ReplayTarget, Option<Rate>),
    plan: ReplayPlan,
    note: Option<String>,
) -> anyhow::Result<()> {
    let (sender, queue) = console.queues.sender(target, None).await?;
    let container = &console.letters.container;
    let results =
        console.queues.records_results(target, queue.as_ref(), container, plan.any_key()).await;
    let queue = queue.map(String::from);
    let target = target.clone();
    let new = NewJob { job, target, queue, results, rate, by: user(), note };
    let job = ReplayJob::start(&console.letters, new, plan).await?;
    console.jobs.run(job, sender, RunOptions::default(), Arc::clone(&console.caches))
}
