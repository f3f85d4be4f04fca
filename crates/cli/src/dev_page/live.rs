//! The first page: what happens, newest first.
//!
//! A step is shown by [`StepJson`], whose texts are ready to be shown: the table of the page is made of them,
//! and scripts fill the same row with the ones that follow.

use std::sync::Arc;

use adapters::machine::Machine;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use maud::{Markup, html};
use serde::Serialize;

use super::app::{App, Section, SharedApp};
use super::feed::{EVENTS_MAX, Feed, STEPS_MAX, Step};
use crate::line_words::Kind;
use crate::page::query::{pairs, value};
use crate::text;

/// How many steps the page has; scripts keep as many.
const ROWS_MAX: usize = 200;
/// How many attempts under way are shown, the newest.
pub(super) const UNDER_WAY_SHOWN: usize = 50;
/// Longer texts are cut in the table; the page of the event has all of them.
const CELL_MAX_CHARS: usize = 200;
/// The choices of the filter by what happened: value and text.
const GROUPS: [(&str, &str); 7] = [
    ("published", "published"),
    ("under-way", "attempts under way"),
    ("delivered", "delivered"),
    ("failed", "failed attempts"),
    ("waiting", "waiting"),
    ("ended", "dead letters and other ends"),
    ("other", "anything else"),
];

/// A step, as the table shows it. Every text is on one line, and without characters that cannot be seen.
#[derive(Debug, Default, Serialize)]
pub(super) struct StepJson {
    number: u64,
    /// The id of its event.
    event: Option<String>,
    delivery: String,
    time: String,
    id: String,
    kind: String,
    /// The subscription, or the topic.
    name: String,
    destination: String,
    what: String,
    class: &'static str,
    group: &'static str,
    outcome: String,
    detail: String,
    took: String,
    next: String,
    due: Option<u64>,
    /// When an attempt under way began.
    since: Option<u64>,
    letter: Option<String>,
}

/// What the filter asks for.
#[derive(Debug, Default)]
struct Wanted {
    text: String,
    name: String,
    group: String,
}

impl Wanted {
    fn read(query: &str) -> Self {
        let pairs = pairs(query.as_bytes());
        let of = |name| value(&pairs, name).unwrap_or_default().to_owned();
        Self { text: of("text"), name: of("subscription"), group: of("outcome") }
    }

    fn has(&self, step: &StepJson) -> bool {
        (self.name.is_empty() || self.name == step.name)
            && (self.group.is_empty() || self.group == step.group)
            && step.searched().contains(&self.text.to_lowercase())
    }
}

impl StepJson {
    pub(super) fn of(app: &App, feed: &Feed, step: &Step) -> Self {
        let (of, what, words) = (&step.of, &step.what, &step.what.words);
        let cell = |value: &str| text::first_chars(&text::line(value), CELL_MAX_CHARS);
        let name = match of.subscription.as_str() {
            "" => of.topic.as_deref().unwrap_or_default(),
            subscription => subscription,
        };
        let is_under_way = words.kind == Kind::UnderWay;
        let is_newest = !is_under_way && feed.is_newest(step);
        // What has come since says how a wait ended.
        let is_over = what.due_ms.is_some() && !is_newest;
        let next = if is_over { String::new() } else { cell(&words.next) };
        let detail = match words.kind {
            Kind::UnderWay => since(what.at_ms),
            // The outcome has it.
            Kind::Silent => String::new(),
            Kind::Event
            | Kind::Good
            | Kind::Failed
            | Kind::Wait
            | Kind::End
            | Kind::Stored
            | Kind::Note => cell(&words.detail),
        };
        let letter = words.dead_letter.zip(app.setup.dead_letters.as_ref());
        Self {
            number: step.number,
            event: step.event.map(|event| app.run.id(event)),
            delivery: of.delivery.map(|it| it.to_string()).unwrap_or_default(),
            time: clock(what.at_ms),
            id: cell(&of.event_id),
            kind: cell(&of.event_type),
            name: cell(name),
            destination: cell(&what.destination),
            what: cell(&step_name(step)),
            class: class(words.kind),
            group: group(words.kind),
            outcome: cell(&words.outcome),
            detail,
            took: words.duration_ms.map(text::duration).unwrap_or_default(),
            next,
            due: what.due_ms.filter(|_| is_newest),
            since: is_under_way.then_some(what.at_ms),
            letter: letter.map(|(id, address)| format!("{address}/letters/{id}")),
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The text that the filter searches.
    fn searched(&self) -> String {
        let all = [
            &self.id,
            &self.kind,
            &self.name,
            &self.destination,
            &self.what,
            &self.outcome,
            &self.detail,
            &self.next,
        ];
        all.map(|it| it.to_lowercase()).join("\n")
    }
}

/// The class of an outcome in the style sheet.
pub(super) const fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Event => "event",
        Kind::UnderWay => "under-way",
        Kind::Good => "good",
        Kind::Failed => "server",
        Kind::Silent => "silent",
        Kind::Wait => "wait",
        Kind::End => "end",
        Kind::Stored | Kind::Note => "note",
    }
}

/// The value of the filter that a step belongs to.
const fn group(kind: Kind) -> &'static str {
    match kind {
        Kind::Event => "published",
        Kind::UnderWay => "under-way",
        Kind::Good => "delivered",
        Kind::Failed | Kind::Silent => "failed",
        Kind::Wait => "waiting",
        Kind::End | Kind::Stored => "ended",
        Kind::Note => "other",
    }
}

/// `attempt 2`, `attempt 1 to its sink`.
pub(super) fn step_name(step: &Step) -> String {
    let words = &step.what.words;
    match words.target {
        "" => words.name.clone(),
        target => format!("{} {target}", words.name),
    }
}

/// How long an attempt has been under way; scripts count on.
pub(super) fn since(at_ms: u64) -> String {
    let ms = Machine.now_ms().saturating_sub(at_ms).max(SECOND_MS);
    format!("since {}", text::duration(ms))
}

/// `07:03:00.123`.
fn clock(ms: u64) -> String {
    let moment = delivery::time::moment::rfc3339(ms);
    let time = moment.split('T').nth(1).unwrap_or_default();
    let (seconds, _) = time.split_at_checked(8).unwrap_or((time, ""));
    format!("{seconds}.{:03}", ms % 1_000)
}

/// What the page shows at first.
struct Shown {
    under_way: Vec<StepJson>,
    rows: Vec<StepJson>,
    /// How many more attempts are under way.
    unlisted: usize,
    last: u64,
    dropped: (u64, u64),
}

impl Shown {
    fn of(app: &App, feed: &Feed, wanted: &Wanted) -> Self {
        let json = |step: &Arc<Step>| StepJson::of(app, feed, step);
        let under_way: Vec<StepJson> =
            feed.under_way().rev().take(UNDER_WAY_SHOWN).map(json).collect();
        let rows = feed.steps_after(0).rev().map(json);
        Self {
            unlisted: feed.under_way().len() - under_way.len(),
            under_way: under_way.into_iter().filter(|step| wanted.has(step)).collect(),
            rows: rows.filter(|step| wanted.has(step)).take(ROWS_MAX).collect(),
            last: feed.last_step(),
            dropped: feed.dropped(),
        }
    }
}

pub(super) async fn answer(State(app): State<SharedApp>, RawQuery(query): RawQuery) -> Response {
    let wanted = Wanted::read(&query.unwrap_or_default());
    let shown = app.read(|feed| Shown::of(&app, feed, &wanted));
    let reading = app.sources.last();
    let subscriptions = reading.reading.catalogue.subscriptions().map(|it| it.name.to_string());
    let subscriptions: Vec<String> = subscriptions.take(SUBSCRIPTIONS_MAX).collect();
    let main = html! {
        div .head {
            div {
                h1 { "Live" }
                p .sub { "Every event and every attempt, newest first. " (kept(shown.dropped)) }
            }
            div .buttons {
                button #pause type="button" aria-pressed="false" hidden { "Pause" }
                a .button.primary href="/publish" { "Publish an event" }
            }
        }
        (filter(&wanted, &subscriptions))
        (steps(&app, &shown))
    };
    app.page("Live", Section::Live, main)
}

fn steps(app: &App, shown: &Shown) -> Markup {
    let Shown { under_way, rows, unlisted, last, .. } = shown;
    html! { section aria-labelledby="steps" {
        h2 #steps .unseen { "Steps" }
        p #lost .notice hidden {}
        p #empty .panel hidden[!rows.is_empty() || !under_way.is_empty()] {
            "Nothing yet. Publish an event here, with " code { "lastmile publish" } ", or by "
            code { "POST " (app.setup.ingress) "/topics/{namespace}/{topic}" } "."
        }
        p #unlisted .hint hidden[*unlisted == 0] {
            span { (text::grouped(*unlisted as u64)) } " more attempts are under way."
        }
        table #live .cards data-last=(app.run.id(*last)) data-max=(ROWS_MAX) {
            thead { tr {
                th scope="col" { "Time" } th scope="col" { "Event" }
                th scope="col" { "Subscription" } th scope="col" { "What" }
                th scope="col" { "Outcome" } th .number scope="col" { "Took" }
                th scope="col" { "Next" }
            } }
            tbody #under-way { @for step in under_way { (row(step)) } }
            tbody { @for step in rows { (row(step)) } }
        }
        template #row { (row(&StepJson::default())) }
    } }
}

/// How many subscriptions the filter lists.
const SUBSCRIPTIONS_MAX: usize = 500;

fn kept((steps, events): (u64, u64)) -> String {
    if steps == 0 && events == 0 {
        return String::new();
    }
    format!(
        "The last {} steps and {} events are kept; {} older steps and {} older events were dropped.",
        text::grouped(STEPS_MAX as u64),
        text::grouped(EVENTS_MAX as u64),
        text::grouped(steps),
        text::grouped(events),
    )
}

fn filter(wanted: &Wanted, subscriptions: &[String]) -> Markup {
    html! {
        form #filter .panel.fields method="get" action="/" role="search" aria-label="Filter" {
            div .field {
                label for="text" { "Text" }
                input #text name="text" type="search" value=(wanted.text) placeholder="an id, a type, an outcome" autocomplete="off";
            }
            div .field {
                label for="subscription" { "Subscription" }
                select #subscription name="subscription" {
                    option value="" { "all" }
                    @for name in subscriptions {
                        option value=(name) selected[*name == wanted.name] { (text::line(name)) }
                    }
                }
            }
            div .field {
                label for="outcome" { "What happened" }
                select #outcome name="outcome" {
                    option value="" { "all" }
                    @for (value, name) in GROUPS {
                        option value=(value) selected[value == wanted.group] { (name) }
                    }
                }
            }
            noscript { div .field { button type="submit" { "Filter" } } }
        }
    }
}

/// A row of the table. Scripts fill the same row by the classes of its parts.
fn row(step: &StepJson) -> Markup {
    html! {
        tr data-number=(step.number) data-delivery=(step.delivery) data-name=(step.name)
            data-group=(step.group) {
            td .time data-label="Time" { (step.time) }
            td .first data-label="Event" { div {
                a .id href=[step.event.as_ref().map(|event| format!("/events/{event}"))] {
                    (if step.id.is_empty() && step.event.is_some() { "event" } else { &step.id })
                }
                " " span .kind.type { (step.kind) }
            } }
            td .whose data-label="Subscription" { div {
                span .name { (step.name) } " " span .kind.destination { (step.destination) }
            } }
            td .what data-label="What" { (step.what) }
            td data-label="Outcome" { div {
                span class={ "outcome " (step.class) } { b { (step.outcome) } }
                " " span .kind.detail data-since=[step.since] { (step.detail) }
            } }
            td .number.took data-label="Took" { (step.took) }
            td .next data-label="Next" { div {
                span .due data-due=[step.due] { (step.next) }
                " " a .letter href=[step.letter.as_ref()] hidden[step.letter.is_none()] { "Dead letter" }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_asks_for_text_subscription_and_outcome() {
        let step = StepJson {
            id: "Order-7".to_owned(),
            name: "n/t/s".to_owned(),
            group: "failed",
            outcome: "503 Service Unavailable".to_owned(),
            ..StepJson::default()
        };
        for (query, is_wanted) in [
            ("", true),
            ("text=ORDER", true),
            ("text=503+service", true),
            ("text=order-8", false),
            ("subscription=n%2Ft%2Fs&outcome=failed", true),
            ("subscription=n%2Ft", false),
            ("outcome=delivered", false),
        ] {
            assert_eq!(Wanted::read(query).has(&step), is_wanted, "{query}");
        }
    }

    #[test]
    fn times_are_shown_to_the_millisecond() {
        assert_eq!(clock(1_795_158_180_123), "07:03:00.123");
    }
}
