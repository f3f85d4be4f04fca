//! Serves the live page: steps, newest first.
//!
//! A page shows a step as [`StepJson`], whose texts are ready for display. The server renders the
//! first rows. For later steps, scripts copy a row from an HTML template and fill it.

use std::sync::Arc;

use adapters::machine::Machine;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use delivery::ports::Clock as _;
use delivery::time::duration::SECOND_MS;
use maud::{Markup, html};
use serde::Serialize;

use super::Live;
use super::feed::{EVENTS_MAX, Feed, STEPS_MAX, Step};
use crate::console::app::SharedConsole;
use crate::console::shell::error::PageError;
use crate::console::shell::layout::Section;
use crate::console::shell::query::{pairs, value};
use crate::operations::line_words::Kind;
use crate::terminal::text;

/// The maximum number of rows of the table. Scripts that add rows enforce the same limit.
const ROWS_MAX: usize = 200;
/// The maximum number of attempts in progress on the page. If there are more, the page shows the
/// newest.
pub(super) const UNDER_WAY_SHOWN: usize = 50;
/// The maximum number of characters of a cell. The page of the event shows the whole text.
const CELL_MAX_CHARS: usize = 200;
/// The maximum number of bytes of `StepJson::folded`.
const FOLDED_MAX_BYTES: usize = 2_000;
/// The choices of the filter by type of step: value and label.
const GROUPS: [(&str, &str); 7] = [
    ("published", "published"),
    ("under-way", "attempts under way"),
    ("delivered", "delivered"),
    ("failed", "failed attempts"),
    ("waiting", "waiting"),
    ("ended", "dead letters and other results"),
    ("other", "anything else"),
];

/// A step as the table shows it. Every text is one line, without invisible characters.
#[derive(Debug, Default, Serialize)]
pub(super) struct StepJson {
    number: u64,
    /// The id of the step's event: `RUN-NUMBER`.
    event: Option<String>,
    delivery: String,
    time: String,
    id: String,
    kind: String,
    /// The name of the subscription; for a step without a subscription, the name of the topic.
    name: String,
    destination: String,
    #[serde(rename = "what")]
    step_name: String,
    class: &'static str,
    group: &'static str,
    outcome: String,
    detail: String,
    took: String,
    next: String,
    due: Option<u64>,
    /// The time when an attempt in progress began.
    since: Option<u64>,
    letter: Option<String>,
    /// A key for folding: consecutive steps with the same key share a row. Empty for a step that is
    /// never folded.
    fold: String,
    /// The number of steps that are folded into the row.
    repeats: usize,
    /// The event ids of the other steps in the row, which the filter searches too.
    folded: String,
}

/// The values of the filter, from the query of the URL.
#[derive(Debug, Default)]
struct Wanted {
    text: String,
    name: String,
    group: String,
}

impl Wanted {
    fn read(query: &str) -> Self {
        let pairs = pairs(query.as_bytes());
        let field = |name| value(&pairs, name).unwrap_or_default().to_owned();
        Self { text: field("text"), name: field("subscription"), group: field("outcome") }
    }

    fn has(&self, step: &StepJson) -> bool {
        (self.name.is_empty() || self.name == step.name)
            && (self.group.is_empty() || self.group == step.group)
            && step.searched().contains(&self.text.to_lowercase())
    }
}

impl StepJson {
    pub(super) fn new(live: &Live, feed: &Feed, step: &Step) -> Self {
        let (subject, facts, words) = (&step.subject, &step.facts, &step.facts.words);
        let cell = |value: &str| text::first_chars(&text::line(value), CELL_MAX_CHARS);
        let name = match subject.subscription.as_str() {
            "" => subject.topic.as_deref().unwrap_or_default(),
            subscription => subscription,
        };
        let is_under_way = words.kind == Kind::UnderWay;
        let is_newest = !is_under_way && feed.is_newest(step);
        // A later step already shows how the wait ended.
        let is_over = facts.due_ms.is_some() && !is_newest;
        let next = if is_over { String::new() } else { cell(&words.next) };
        let detail = match words.kind {
            Kind::UnderWay => since(facts.at_ms),
            // The outcome already contains the detail.
            Kind::Silent => String::new(),
            Kind::Event
            | Kind::Good
            | Kind::Failed
            | Kind::Wait
            | Kind::End
            | Kind::Stored
            | Kind::Note => cell(&words.detail),
        };
        Self {
            number: step.number,
            event: step.event.map(|event| live.run.id(event)),
            delivery: subject.delivery.map(|id| id.to_string()).unwrap_or_default(),
            time: clock(facts.at_ms),
            id: cell(&subject.event_id),
            kind: cell(&subject.event_type),
            name: cell(name),
            destination: cell(&facts.destination),
            step_name: cell(&step_name(step)),
            class: class(words.kind),
            group: group(words.kind),
            outcome: cell(&words.outcome),
            detail,
            took: words.duration_ms.map(text::duration).unwrap_or_default(),
            next,
            due: facts.due_ms.filter(|_| is_newest),
            since: is_under_way.then_some(facts.at_ms),
            letter: words.dead_letter.map(|id| format!("/letters/{id}")),
            fold: words.fold(&subject.subscription).unwrap_or_default(),
            repeats: 1,
            folded: String::new(),
        }
    }

    /// Adds an older, similar step to this row, and counts it. Returns false if the older step
    /// needs a separate row.
    fn take_in(&mut self, older: &Self) -> bool {
        if self.fold.is_empty() || self.fold != older.fold {
            return false;
        }
        self.repeats += 1;
        if self.folded.len() < FOLDED_MAX_BYTES {
            self.folded.push(' ');
            self.folded.push_str(&older.id);
        }
        true
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the text that the filter searches.
    fn searched(&self) -> String {
        let all = [
            &self.id,
            &self.kind,
            &self.name,
            &self.destination,
            &self.step_name,
            &self.outcome,
            &self.detail,
            &self.next,
            &self.folded,
        ];
        all.map(|text| text.to_lowercase()).join("\n")
    }
}

/// Returns the CSS class for the outcome of a step.
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

/// Returns the filter choice that a step belongs to.
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

/// Returns the name of a step, such as `attempt 2` or `attempt 1 to the sink`.
pub(super) fn step_name(step: &Step) -> String {
    let words = &step.facts.words;
    match words.target {
        "" => words.name.clone(),
        target => format!("{} {target}", words.name),
    }
}

/// Formats the time since an attempt began, such as `for 3 s`. Scripts keep the text up to date.
pub(super) fn since(at_ms: u64) -> String {
    let ms = Machine.now_ms().saturating_sub(at_ms).max(SECOND_MS);
    format!("for {}", text::duration(ms))
}

/// Formats the time of day in UTC, such as `07:03:00.123`.
fn clock(ms: u64) -> String {
    let moment = delivery::time::moment::rfc3339(ms);
    let time = moment.split('T').nth(1).unwrap_or_default();
    let (seconds, _) = time.split_at_checked(8).unwrap_or((time, ""));
    format!("{seconds}.{:03}", ms % 1_000)
}

/// The content with which the server renders the page, before scripts add steps.
struct Shown {
    under_way: Vec<StepJson>,
    rows: Vec<StepJson>,
    /// The number of attempts in progress that the page omits, because it shows at most
    /// [`UNDER_WAY_SHOWN`].
    unlisted: usize,
    last: u64,
    dropped: (u64, u64),
}

impl Shown {
    fn new(live: &Live, feed: &Feed, wanted: &Wanted) -> Self {
        let json = |step: &Arc<Step>| StepJson::new(live, feed, step);
        let under_way: Vec<StepJson> =
            feed.under_way().rev().take(UNDER_WAY_SHOWN).map(json).collect();
        let mut rows: Vec<StepJson> = Vec::new();
        for step in feed.steps_after(0).rev().map(json).filter(|step| wanted.has(step)) {
            let is_taken_in = rows.last_mut().is_some_and(|row| row.take_in(&step));
            if !is_taken_in && rows.len() == ROWS_MAX {
                break;
            }
            if !is_taken_in {
                rows.push(step);
            }
        }
        Self {
            unlisted: feed.under_way().len() - under_way.len(),
            under_way: under_way.into_iter().filter(|step| wanted.has(step)).collect(),
            rows,
            last: feed.last_step(),
            dropped: feed.dropped(),
        }
    }
}

pub(in crate::console) async fn answer(
    State(console): State<SharedConsole>,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let live = console.live()?;
    let wanted = Wanted::read(&query.unwrap_or_default());
    let shown = live.read(|feed| Shown::new(live, feed, &wanted));
    let reading = console.sources.last();
    let subscriptions =
        reading.reading.catalogue.subscriptions().map(|subscription| subscription.name.to_string());
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
        (steps(live, &shown))
    };
    Ok(console.page("Live", Section::Live, main))
}

fn steps(live: &Live, shown: &Shown) -> Markup {
    let Shown { under_way, rows, unlisted, last, .. } = shown;
    html! { section aria-labelledby="steps" {
        h2 #steps .unseen { "Steps" }
        p #lost .notice hidden {}
        p #empty .panel hidden[!rows.is_empty() || !under_way.is_empty()] {
            "No events yet. Publish an event here, with " code { "lastmile publish" } ", or with "
            code { "POST " (live.ingress) "/topics/{namespace}/{topic}" } "."
        }
        p #unlisted .hint hidden[*unlisted == 0] {
            span { (text::grouped(*unlisted as u64)) } " more attempts are under way."
        }
        table #live .cards data-last=(live.run.id(*last)) data-max=(ROWS_MAX) {
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

/// The maximum number of subscriptions that the filter offers.
const SUBSCRIPTIONS_MAX: usize = 500;

fn kept((steps, events): (u64, u64)) -> String {
    if steps == 0 && events == 0 {
        return String::new();
    }
    format!(
        "The last {} steps and {} events are stored; {} older steps and {} older events were \
         dropped.",
        text::grouped(STEPS_MAX as u64),
        text::grouped(EVENTS_MAX as u64),
        text::grouped(steps),
        text::grouped(events),
    )
}

fn filter(wanted: &Wanted, subscriptions: &[String]) -> Markup {
    html! {
        form #filter .panel.fields method="get" action="/live" role="search" aria-label="Filter" {
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
                label for="outcome" { "Type of step" }
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

/// Renders a row of the table. Scripts fill a copy of the row, whose elements they find by class.
fn row(step: &StepJson) -> Markup {
    html! {
        tr data-number=(step.number) data-delivery=(step.delivery) data-name=(step.name)
            data-group=(step.group) data-fold=(step.fold) data-repeats=(step.repeats) data-folded=(step.folded) {
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
            td .what data-label="What" { (step.step_name) }
            td data-label="Outcome" { div {
                span class={ "outcome " (step.class) } { b { (step.outcome) } }
                " " b .repeats { @if step.repeats > 1 { "× " (step.repeats) } }
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
