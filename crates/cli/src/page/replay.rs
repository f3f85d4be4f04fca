//! Sending letters again: first what would be sent and where, exactly; then the button.

use adapters::machine::Machine;
use axum::body::Bytes;
use axum::extract;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use delivery::ports::Clock as _;
use maud::{Markup, html};
use url::Url;

use super::filters::chips;
use super::frame::{Place, Problem, Sheet, line, word};
use super::guard::TOKEN;
use super::query::{Query, Wrong, href, pairs, value};
use super::shelves::{COUNTED_MS, Patience, Seen};
use super::{Page, reading};
use crate::letters::filter::Filter;
use crate::letters::ledger::{State, is_job};
use crate::letters::replay::sender::{Sender, To};
use crate::letters::replay::{Pace, Plan, Rate, Replay, name_of, queue_of};
use crate::letters::shelf::{LETTERS_MAX, Shelf};
use crate::letters::text;

/// What the forms of this page say besides filters.
const OTHERS: [&str; 7] = ["to", "to_topic", "to_url", "rate", "count", "job", TOKEN];

/// What is to be done.
struct Wish {
    query: Query,
    filter: Filter,
    /// The form's own values, as they were written.
    written: Vec<(String, String)>,
    /// Where to and how fast, or which of the fields says something that cannot be.
    aim: Result<(To, Option<Rate>), Wrong>,
}

impl Wish {
    fn read(form: &[u8]) -> Result<Self, Problem> {
        let asked = pairs(form);
        let (query, filter) =
            Query::read(&asked, &OTHERS).map_err(|wrong| Problem::field(&wrong))?;
        let aim = aim(&asked);
        let written =
            asked.into_iter().filter(|(name, _)| OTHERS.contains(&name.as_str())).collect();
        Ok(Self { query, filter, written, aim })
    }

    fn written(&self, name: &str) -> &str {
        value(&self.written, name).unwrap_or_default()
    }

    /// What the job is called.
    fn job(&self) -> Result<String, Wrong> {
        match self.written("job") {
            "" => Ok(name_of(Machine.now_ms())),
            job if is_job(job) => Ok(job.to_owned()),
            job => Err(Wrong {
                field: "job".to_owned(),
                why: format!("\"{job}\" is no name of a job"),
            }),
        }
    }

    /// This page again.
    fn href(&self) -> String {
        let is_kept = |name: &str| ![TOKEN, "count", "job"].contains(&name);
        let kept = self.written.iter().filter(|(name, value)| is_kept(name) && !value.is_empty());
        href(
            "/replay",
            self.query.filters().chain(kept.map(|(name, value)| (name.as_str(), value.as_str()))),
        )
    }
}

fn aim(asked: &[(String, String)]) -> Result<(To, Option<Rate>), Wrong> {
    let wrong = |field: &str, why: String| Wrong { field: field.to_owned(), why };
    let to = match value(asked, "to").unwrap_or("subscription") {
        "subscription" => To::Subscription,
        "topic" => {
            let topic = value(asked, "to_topic").unwrap_or_default();
            To::Topic(topic.parse().map_err(|why| wrong("to_topic", why))?)
        }
        "url" => {
            let url = value(asked, "to_url").unwrap_or_default();
            let right = || {
                wrong(
                    "to_url",
                    format!("\"{url}\" is no address: https://example.com/events is expected"),
                )
            };
            To::Url(
                url.parse()
                    .ok()
                    .filter(|url: &Url| matches!(url.scheme(), "http" | "https"))
                    .ok_or_else(right)?,
            )
        }
        other => {
            return Err(wrong(
                "to",
                format!("\"{other}\": subscription, topic or url is expected"),
            ));
        }
    };
    let rate = value(asked, "rate")
        .map(|rate| rate.parse().map_err(|why| wrong("rate", why)))
        .transpose()?;
    Ok((to, rate))
}

/// What would be sent.
pub(super) async fn dry_run(
    extract::State(page): extract::State<Page>,
    uri: Uri,
) -> Result<Response, Problem> {
    let wish = Wish::read(uri.query().unwrap_or_default().as_bytes())?;
    let seen = page.shelves.seen(&wish.query, &wish.filter, COUNTED_MS, Patience::Moment).await;
    let shelf = match seen.map_err(|error| Problem::storage(&error))? {
        Seen::There(shelf) => shelf,
        Seen::Reading(requests) => return Ok(reading(&page, requests)),
    };
    let status = if wish.aim.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let main = html! {
        p .crumbs { a href=(wish.query.at("/")) { "Letters" } " / " span { "Replay" } }
        h1 { "Replay" }
        (chips(&wish.query))
        (way(&page, &wish))
        @if let Ok((to, rate)) = &wish.aim { (count(&page, &wish, &shelf, to, *rate)) }
    };
    Ok(Sheet::new("Replay", Place::Letters, main).answer(&page, status))
}

/// Where to, and how fast.
fn way(page: &Page, wish: &Wish) -> Markup {
    let wrong = |name: &str| wish.aim.as_ref().err().filter(|wrong| wrong.field == name);
    let chosen = Some(wish.written("to")).filter(|to| !to.is_empty()).unwrap_or("subscription");
    let radio = |name: &str, label: &str, more: Markup| {
        html! { div .choice {
            label { input type="radio" name="to" value=(name) checked[chosen == name]; span { (label) } }
            (more)
        } }
    };
    let input = |name: &str, label: &str, hint: &str| {
        html! {
            input name=(name) value=(wish.written(name)) placeholder=(hint) aria-label=(label)
            autocomplete="off" spellcheck="false"
                aria-invalid=[wrong(name).map(|_| "true")] aria-describedby=[wrong(name).map(|_| "wrong")];
        }
    };
    html! { form .panel.way action="/replay" method="get" {
        fieldset {
            legend { "Where to" }
            (radio("subscription", "Each to its own subscription, and to nobody else", html! {
                p .hint { "As a fresh delivery through the queue " code { (line(queue(page).as_str())) } }
            }))
            (radio("topic", "To whoever subscribes to the topic", input("to_topic", "The topic", "shop/orders")))
            (radio("url", "By POST to the address", input("to_url", "The address", "https://example.com/events")))
        }
        div .buttons {
            label .inline { "At most " (input("rate", "At most so many, as in 50/s", "50/s, or nothing")) }
            button type="submit" { "Count again" }
        }
        @for (name, value) in wish.query.filters() { input type="hidden" name=(name) value=(value); }
        @if let Err(wrong) = &wish.aim { p #wrong .wrong role="alert" { (line(&wrong.why)) } }
    } }
}

fn queue(page: &Page) -> Url {
    let dev = crate::queue::DEV_EVENTS_QUEUE.parse().expect("the queue of dev has a URL");
    page.queue_url.clone().unwrap_or(dev)
}

fn planned(wish: &Wish, shelf: &Shelf, to: &To) -> Plan {
    let mut plan = Plan::default();
    let meant = shelf.letters.iter().filter(|letter| wish.filter.takes(letter));
    meant.for_each(|letter| plan.add(letter, to));
    plan
}

/// The exact count, and the button.
fn count(page: &Page, wish: &Wish, shelf: &Shelf, to: &To, rate: Option<Rate>) -> Markup {
    let plan = planned(wish, shelf, to);
    let (count, sent) = (plan.len() as u64, sent_before(&plan, shelf));
    html! { section .panel aria-labelledby="count" {
        h2 #count { @if count == 0 { "Nothing would be sent" } @else { (text::letters(count)) " would be sent" } }
        p .sub { (aimed(to)) }
        @if shelf.is_cut {
            p .remark {
                "There are more than " (text::grouped(LETTERS_MAX as u64)) " letters: filter for fewer, or use "
                code { "lastmile deadletters replay" } ", which has no such limit."
            }
        }
        @if count > 0 {
            table .plain {
                thead { tr { th scope="col" { "Subscription" } th .number scope="col" { "Letters" } } }
                tbody {
                    @for (name, count) in &plan.subscriptions {
                        tr { td { (word(name)) } td .number { (text::grouped(*count)) } }
                    }
                }
            }
        }
        @if sent > 0 {
            p .remark {
                (text::grouped(sent)) " of them were sent again before; whoever takes them may see them twice. "
                a href="/jobs" { "Which replays there were" }
            }
        }
        @for (place, count) in &plan.homeless {
            p .remark {
                (text::letters(*count)) " of " (word(place))
                " are left out: that is no subscription. A topic or an address can take them."
            }
        }
        @if count > 0 && !shelf.is_cut { (button(page, wish, count, rate)) }
    } }
}

fn aimed(to: &To) -> Markup {
    html! { @match to {
        To::Subscription => "The original event, to the byte, as a fresh delivery to its own subscription alone.",
        To::Topic(topic) => { "Published to " b { (line(&topic.to_string())) } ", for whoever subscribes to it." },
        To::Url(url) => { "By POST to " b { (word(url.as_str())) } ". No subscription takes part." },
    } }
}

fn sent_before(plan: &Plan, shelf: &Shelf) -> u64 {
    let sent = |id| shelf.replayed.get(id).is_some_and(|of| of.line.state == State::Sent);
    plan.ids().iter().filter(|id| sent(id)).count() as u64
}

fn button(page: &Page, wish: &Wish, count: u64, rate: Option<Rate>) -> Markup {
    html! { form .buttons action="/replay" method="post" {
        input type="hidden" name=(TOKEN) value=(page.guard.token());
        input type="hidden" name="count" value=(count);
        // Named before it begins: a form that is sent twice begins one job.
        input type="hidden" name="job" value=(name_of(Machine.now_ms()));
        @for (name, value) in wish.query.filters() { input type="hidden" name=(name) value=(value); }
        @for name in ["to", "to_topic", "to_url", "rate"] {
            input type="hidden" name=(name) value=(wish.written(name));
        }
        button .primary type="submit" {
            "Send " (text::letters(count)) @if rate.is_some() { ", at most " (line(wish.written("rate"))) }
        }
        a .button href=(wish.query.at("/")) { "Cancel" }
    } }
}

/// Begins the job that was counted.
pub(super) async fn start(
    extract::State(page): extract::State<Page>,
    form: Bytes,
) -> Result<Response, Problem> {
    let wish = Wish::read(&form)?;
    let back = wish.href();
    let on_back = |problem: Problem| problem.back(back.clone(), "Back to the replay");
    let (to, rate) = wish.aim.clone().map_err(|wrong| on_back(Problem::field(&wrong)))?;
    let job = wish.job().map_err(|wrong| on_back(Problem::field(&wrong)))?;
    let there = Redirect::to(&format!("/jobs/{job}")).into_response();
    let _one_at_a_time = page.jobs.beginning.lock().await;
    if page.jobs.knows(&job) {
        return Ok(there);
    }
    let seen = page.shelves.seen(&wish.query, &wish.filter, 0, Patience::Endless).await;
    let Seen::There(shelf) = seen.map_err(|error| Problem::storage(&error))? else {
        return Err(on_back(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Not read yet",
            "The container is being read.",
        )));
    };
    let plan = planned(&wish, &shelf, &to);
    if wish.written("count") != plan.len().to_string() || shelf.is_cut {
        let why = format!(
            "It would be {} now. Nothing was sent; look again what would be.",
            text::letters(plan.len() as u64)
        );
        return Err(on_back(Problem::new(StatusCode::CONFLICT, "The letters have changed", why)));
    }
    let begun = begin(&page, job, &to, rate, plan).await;
    let failed =
        |error| Problem::new(StatusCode::BAD_GATEWAY, "Nothing was sent", format!("{error:#}"));
    begun.map_err(|error: anyhow::Error| on_back(failed(error)))?;
    Ok(there)
}

async fn begin(
    page: &Page,
    job: String,
    to: &To,
    rate: Option<Rate>,
    plan: Plan,
) -> anyhow::Result<()> {
    let given = page.queue_url.clone().filter(|_| !matches!(to, To::Url(_)));
    let queue = queue_of(to, given, None)?;
    let sender = Sender::open(to, &queue).await?;
    let kept = matches!(to, To::Subscription | To::Topic(_)).then(|| queue.to_string());
    let replay = Replay::start(&page.letters, job, to, kept, plan).await?;
    page.jobs.run(page, replay, sender, Pace { rate, skip_uncertain: false })
}
