//! Replaying dead letters: first exactly what would be sent and where, then the button.

use std::sync::Arc;

use adapters::machine::Machine;
use axum::body::Bytes;
use axum::extract;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use deadletters::Rate;
use deadletters::filter::Filter;
use deadletters::ledger::is_job_name;
use deadletters::letter_cache::{LETTERS_MAX, LetterCache};
use deadletters::replay::sender::ReplayTarget;
use deadletters::replay::{NewJob, ReplayJob, ReplayPlan, RunOptions, UnreadableLedger, job_name};
use delivery::address::http_url;
use delivery::ports::Clock as _;
use maud::{Markup, html};

use super::app::{App, SharedApp};
use super::error::PageError;
use super::filters::chips;
use super::guard::TOKEN;
use super::layout::{NavSection, PageLayout, reading};
use super::letter_caches::{COUNT_MAX_AGE_MS, CacheState, WaitMode};
use super::list::PICKED;
use super::markup::{line, word};
use super::query::{InvalidField, Query, href, pairs, value};
use crate::text;
use crate::this_machine::user;
use crate::unreadable_ledger::refusal;

/// The fields of the forms of this page, besides filters.
const FIELDS: [&str; 8] = ["to", "to_topic", "to_url", "rate", "count", "job", PICKED, TOKEN];

/// A form of this page.
struct ReplayForm {
    query: Query,
    filter: Filter,
    /// The other fields, as they were given.
    fields: Vec<(String, String)>,
    /// Where to and how fast, or the field that is invalid.
    target: Result<(ReplayTarget, Option<Rate>), InvalidField>,
}

impl ReplayForm {
    fn read(form: &[u8]) -> Result<Self, PageError> {
        let pairs = pairs(form);
        let (query, filter) = Query::read(&pairs, &FIELDS)?;
        if value(&pairs, PICKED).is_some() && query.values("id").is_empty() {
            // Without this, picking nothing would be replaying everything.
            let why = "Pick dead letters by the boxes in the list first. Nothing was sent.";
            let error = PageError::new(StatusCode::BAD_REQUEST, "Nothing is picked", why);
            return Err(error.with_link(query.at("/"), "Back to the list"));
        }
        let target = read_target(&pairs);
        let fields =
            pairs.into_iter().filter(|(name, _)| FIELDS.contains(&name.as_str())).collect();
        Ok(Self { query, filter, fields, target })
    }

    fn field(&self, name: &str) -> &str {
        value(&self.fields, name).unwrap_or_default()
    }

    /// The name of the job.
    fn job(&self) -> Result<String, InvalidField> {
        match self.field("job") {
            "" => Ok(job_name(Machine.now_ms())),
            job if is_job_name(job) => Ok(job.to_owned()),
            job => {
                let why = format!("\"{job}\" is not a valid job name");
                Err(InvalidField::new("job", why))
            }
        }
    }

    /// The link to this page with these values.
    fn href(&self) -> String {
        self.href_with(self.query.filters())
    }

    /// Links to this page for dead letters in every state.
    fn href_of_any_state(&self) -> String {
        let others = self.query.filters().filter(|(name, _)| *name != "state");
        self.href_with(others.chain([("state", "all")]))
    }

    fn href_with<'a>(&'a self, filters: impl Iterator<Item = (&'a str, &'a str)>) -> String {
        // A URL is kept in histories, where the token does not belong; the others are made anew.
        let is_kept = |name: &str| ![TOKEN, PICKED, "count", "job"].contains(&name);
        let kept = self.fields.iter().filter(|(name, value)| is_kept(name) && !value.is_empty());
        href("/replay", filters.chain(kept.map(|(name, value)| (name.as_str(), value.as_str()))))
    }
}

fn read_target(pairs: &[(String, String)]) -> Result<(ReplayTarget, Option<Rate>), InvalidField> {
    let target = match value(pairs, "to").unwrap_or("subscription") {
        "subscription" => ReplayTarget::Subscription,
        "topic" => {
            let topic = value(pairs, "to_topic").unwrap_or_default();
            ReplayTarget::Topic(topic.parse().map_err(|why| InvalidField::new("to_topic", why))?)
        }
        "url" => {
            let text = value(pairs, "to_url").unwrap_or_default();
            let url = http_url(text).map_err(|why| InvalidField::new("to_url", why))?;
            ReplayTarget::Url(url)
        }
        other => {
            let why = format!("\"{other}\" is not valid: expected subscription, topic or url");
            return Err(InvalidField::new("to", why));
        }
    };
    let rate = value(pairs, "rate").map(str::parse).transpose();
    Ok((target, rate.map_err(|why| InvalidField::new("rate", why))?))
}

/// What would be sent.
pub(super) async fn dry_run(
    extract::State(app): extract::State<SharedApp>,
    uri: Uri,
) -> Result<Response, PageError> {
    let form = ReplayForm::read(uri.query().unwrap_or_default().as_bytes())?;
    let container = &app.letters.container;
    let (query, filter) = (&form.query, &form.filter);
    let state = app.caches.matching(query, filter, COUNT_MAX_AGE_MS, WaitMode::Briefly).await;
    let cache = match state? {
        CacheState::Ready(cache) => cache,
        CacheState::Reading(requests) => return Ok(reading(container, requests)),
    };
    let status = if form.target.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let main = html! {
        p .crumbs { a href=(query.at("/")) { "Dead letters" } " / " span { "Replay" } }
        h1 { "Replay" }
        (chips(query))
        (target_form(&app, &form))
        @if let Ok((target, rate)) = &form.target { (count(&app, &form, &cache, target, *rate)) }
    };
    Ok(PageLayout::new("Replay", NavSection::DeadLetters, main).respond(container, status))
}

/// Where to, and how fast.
fn target_form(app: &App, form: &ReplayForm) -> Markup {
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
            legend { "Where to" }
            (radio("subscription", "Each to its own subscription, and to no other", html! {
                p .hint { "As a new delivery: " code { (line(&displayed_queue(app))) } }
            }))
            (radio("topic", "To all subscriptions of the topic", input("to_topic", "The topic", "shop/orders")))
            (radio("url", "By POST to the URL", input("to_url", "The URL", "https://example.com/events")))
        }
        div .buttons {
            label .inline { "At most " (input("rate", "The maximum rate, as in 50/s", "50/s, or empty")) }
            button type="submit" { "Count again" }
        }
        @for (name, value) in form.query.filters() { input type="hidden" name=(name) value=(value); }
        @if let Err(invalid) = &form.target { p #invalid .invalid role="alert" { (line(&invalid.why)) } }
    } }
}

/// The queue of a replay to the subscriptions, or why there is none.
fn displayed_queue(app: &App) -> String {
    match app.queues.for_target(&ReplayTarget::Subscription, None) {
        Ok(queue) => app.queues.describe(&ReplayTarget::Subscription, queue.as_ref()),
        Err(problem) => problem.to_string(),
    }
}

/// Plans what would be sent, with the number of those that are left out because of their state.
///
/// # Errors
/// A ledger that cannot be read, and that may say that some of it is not open.
fn plan_of(
    form: &ReplayForm,
    cache: &LetterCache,
    target: &ReplayTarget,
) -> Result<(ReplayPlan, u64), UnreadableLedger> {
    if let (Some(ledger), false) =
        (cache.states.unreadable().first(), form.filter.is_of_any_state())
    {
        return Err(ledger.clone());
    }
    let mut plan = ReplayPlan::default();
    let matching = cache.matching(&form.filter);
    matching.iter().for_each(|letter| plan.add(letter, target));
    // Of a dead letter and its replay only the newer: the event of both is the same.
    plan.leave_out_older(&cache.states);
    let of_any_state = cache.matching(&form.filter.clone().of_any_state());
    Ok((plan, (of_any_state.len() - matching.len()) as u64))
}

/// Why nothing would be sent, and the link that sends it all the same.
fn refused(form: &ReplayForm, ledger: &UnreadableLedger) -> Markup {
    html! { section .panel aria-labelledby="count" {
        h2 #count { "Nothing would be sent" }
        p .notice {
            (line(&refusal(ledger))) ". "
            a href=(form.href_of_any_state()) { "Send them whether or not they were replayed" }
        }
    } }
}

/// The exact count, and the button.
fn count(
    app: &App,
    form: &ReplayForm,
    cache: &LetterCache,
    target: &ReplayTarget,
    rate: Option<Rate>,
) -> Markup {
    let (plan, left_out) = match plan_of(form, cache, target) {
        Ok(planned) => planned,
        Err(ledger) => return refused(form, &ledger),
    };
    let (count, sent) = (plan.len() as u64, plan.sent_before(&cache.states));
    html! { section .panel aria-labelledby="count" {
        h2 #count { @if count == 0 { "Nothing would be sent" } @else { (text::dead_letters(count)) " would be sent" } }
        p .sub { (describe(target)) }
        @if cache.is_truncated {
            p .notice {
                "There are more than " (text::grouped(LETTERS_MAX as u64)) " dead letters: filter for fewer, or use "
                code { "lastmile deadletters replay" } ", which has no such limit."
            }
        }
        @if count > 0 {
            table .plain {
                thead { tr { th scope="col" { "Subscription" } th .number scope="col" { "Count" } } }
                tbody {
                    @for (name, count) in &plan.subscriptions {
                        tr { td { (word(name)) } td .number { (text::grouped(*count)) } }
                    }
                }
            }
        }
        @if left_out > 0 {
            p .notice {
                "Left out: " (text::dead_letters(left_out)) " in another state. "
                a href=(form.href_of_any_state()) { "Include them" }
            }
        }
        @if sent > 0 {
            p .notice {
                (text::grouped(sent)) " of them were replayed before; their receivers may get them twice. "
                a href="/jobs" { "Show all replays" }
            }
        }
        @for (name, count) in &plan.without_subscription {
            p .notice {
                (text::dead_letters(*count)) " of " (word(name))
                " are skipped: that is not a subscription. They can be sent to a topic or a URL."
            }
        }
        @if plan.malformed_replies > 0 {
            p .notice {
                (text::dead_letters(plan.malformed_replies))
                " are skipped: they are a subscriber's answers that are no events. They can be sent to a URL."
            }
        }
        @if count > 0 && !cache.is_truncated { (button(app, form, count, rate)) }
    } }
}

fn describe(target: &ReplayTarget) -> Markup {
    html! { @match target {
        ReplayTarget::Subscription => "The original event, byte for byte, as a new delivery only to its own subscription: to the party that failed.",
        ReplayTarget::Topic(topic) => {
            "Published to " b { (line(&topic.to_string())) } ", for all its subscriptions."
        },
        ReplayTarget::Url(_) => { "By POST to " b { (word(&target.shown())) } ". No subscription is used." },
    } }
}

fn button(app: &App, form: &ReplayForm, count: u64, rate: Option<Rate>) -> Markup {
    html! { form .buttons action="/replay" method="post" {
        (app.guard.token.field())
        input type="hidden" name="count" value=(count);
        // Named before it starts: a form that is sent twice starts one job.
        input type="hidden" name="job" value=(job_name(Machine.now_ms()));
        @for (name, value) in form.query.filters() { input type="hidden" name=(name) value=(value); }
        @for name in ["to", "to_topic", "to_url", "rate"] {
            input type="hidden" name=(name) value=(form.field(name));
        }
        button .primary type="submit" {
            "Send " (text::dead_letters(count)) @if rate.is_some() { ", at most " (line(form.field("rate"))) }
        }
        a .button href=(form.query.at("/")) { "Cancel" }
    } }
}

/// Starts the job that was counted.
pub(super) async fn start(
    extract::State(app): extract::State<SharedApp>,
    body: Bytes,
) -> Result<Response, PageError> {
    let form = ReplayForm::read(&body)?;
    let back = form.href();
    let with_link = |error: PageError| error.with_link(back.clone(), "Back to the replay");
    let invalid = |field: InvalidField| with_link(field.into());
    let (target, rate) = form.target.clone().map_err(invalid)?;
    let job = form.job().map_err(invalid)?;
    let started = Redirect::to(&format!("/jobs/{job}")).into_response();
    let _one_at_a_time = app.jobs.starting.lock().await;
    if app.jobs.knows(&job) {
        return Ok(started);
    }
    // Read now, not from a cache: exactly what was counted is sent, or nothing.
    let state = app.caches.matching(&form.query, &form.filter, 0, WaitMode::UntilRead).await;
    let CacheState::Ready(cache) = state? else {
        return Err(with_link(PageError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Not read yet",
            "The container is being read.",
        )));
    };
    let refused = |ledger| {
        with_link(PageError::new(StatusCode::CONFLICT, "Nothing was sent", refusal(&ledger)))
    };
    let (plan, _) = plan_of(&form, &cache, &target).map_err(refused)?;
    if form.field("count") != plan.len().to_string() || cache.is_truncated {
        let count = text::dead_letters(plan.len() as u64);
        let why = format!("It would be {count} now. Nothing was sent; check the new count.");
        let error = PageError::new(StatusCode::CONFLICT, "The dead letters have changed", why);
        return Err(with_link(error));
    }
    let result = run(&app, job, &target, rate, plan).await;
    result.map_err(|error| with_link(PageError::not_sent(&error)))?;
    Ok(started)
}

async fn run(
    app: &App,
    job: String,
    target: &ReplayTarget,
    rate: Option<Rate>,
    plan: ReplayPlan,
) -> anyhow::Result<()> {
    let (sender, queue) = app.queues.sender(target, None).await?;
    let container = &app.letters.container;
    let results =
        app.queues.records_results(target, queue.as_ref(), container, plan.any_key()).await;
    let queue = queue.map(String::from);
    let target = target.clone();
    let new = NewJob { job, target, queue, results, rate, by: user(), note: None };
    let job = ReplayJob::start(&app.letters, new, plan).await?;
    app.jobs.run(job, sender, RunOptions::default(), Arc::clone(&app.caches))
}
