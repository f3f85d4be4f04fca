//! Sends the live stream to open pages, as server-sent events:
//!
//! - `run`: the name of this run, as the first event.
//! - `step`: a new step.
//! - `lost`: the number of steps that were dropped before they could be sent.
//! - `begun` and `ended`: an attempt in progress has begun or ended.
//! - `unlisted`: the number of attempts in progress that the page omits.
//! - `problem`: the errors in the subscriptions; empty if there are none.
//!
//! A page that connects again sends the id of its last step as `Last-Event-ID`, and the stream
//! continues after that step. A page of an earlier run gets all stored steps. Each stream first
//! sends the newest attempts in progress, at most [`UNDER_WAY_SHOWN`].
//!
//! A stream stores no copy of the feed. After each change, it reads only the new steps.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::stream::{self, Stream};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::STREAMS_MAX;
use super::feed::Feed;
use super::page::{StepJson, UNDER_WAY_SHOWN};
use super::run::Id;
use crate::console::app::SharedConsole;
use crate::console::shell::error::PageError;
use crate::console::shell::query::{pairs, value};

/// The interval of keep-alives on an idle stream. If a keep-alive cannot be sent, the page was
/// closed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A value of `Last-Event-ID` that requests only future steps.
const NOW: &str = "now";
/// The maximum number of steps that are read from the feed at a time.
const STEPS_AT_ONCE: usize = 200;

struct PageStream {
    console: SharedConsole,
    changes: watch::Receiver<u64>,
    /// The number of the last step that was sent to this page.
    last: u64,
    /// The numbers of the attempts in progress that were sent and have not ended.
    under_way: BTreeSet<u64>,
    /// The last number that was sent as `unlisted`.
    unlisted: usize,
    /// The text of `problem` as last sent; `None` before the first one.
    problem: Option<Option<String>>,
    ready: VecDeque<Event>,
    /// The permit that counts this stream against the limit of open streams. Dropped with the
    /// stream.
    _permit: OwnedSemaphorePermit,
}

pub(in crate::console) async fn answer(
    State(console): State<SharedConsole>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, PageError> {
    let live = console.live()?;
    let Ok(permit) = Arc::clone(&live.streams).try_acquire_owned() else {
        let why = format!("{STREAMS_MAX} pages are already open. Close one, and reload this page.");
        return Err(PageError::new(StatusCode::SERVICE_UNAVAILABLE, "Too many pages", why));
    };
    let pairs = pairs(query.unwrap_or_default().as_bytes());
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last = match after.or(value(&pairs, "after")) {
        Some(NOW) => live.read(Feed::last_step),
        Some(id) => match live.run.read(id) {
            Id::ThisRun(number) => number.min(live.read(Feed::last_step)),
            Id::AnotherRun | Id::Invalid => 0,
        },
        None => 0,
    };
    let run = Event::default().event("run").data(data(&live.run.as_str()));
    let stream = PageStream {
        changes: live.changes.subscribe(),
        last,
        under_way: BTreeSet::new(),
        unlisted: 0,
        problem: None,
        ready: VecDeque::from([run]),
        console,
        _permit: permit,
    };
    let stream = stream::unfold(stream, |mut stream| async move {
        let event = stream.next().await?;
        Some((Ok(event), stream))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

impl PageStream {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            self.changes.mark_unchanged();
            self.read();
            if self.ready.is_empty() {
                // `changed` fails when the program ends.
                self.changes.changed().await.ok()?;
            }
        }
    }

    fn read(&mut self) {
        let console = Arc::clone(&self.console);
        let problem = console.sources.problem();
        if self.problem.as_ref() != Some(&problem) {
            // Send the text as JSON, so that an empty problem has data too. Browsers ignore events
            // without data.
            self.push("problem", &problem.as_deref().unwrap_or_default());
            self.problem = Some(problem);
        }
        let Some(live) = &console.live else { return };
        let (steps, under_way, unlisted) = live.read(|feed| {
            let next = feed.steps_after(self.last).take(STEPS_AT_ONCE);
            let steps: Vec<StepJson> = next.map(|step| StepJson::new(live, feed, step)).collect();
            let shown = feed.under_way().rev().take(UNDER_WAY_SHOWN);
            let under_way: Vec<StepJson> =
                shown.map(|step| StepJson::new(live, feed, step)).collect();
            let unlisted = feed.under_way().len() - under_way.len();
            (steps, under_way, unlisted)
        });
        let now: BTreeSet<u64> = under_way.iter().map(StepJson::number).collect();
        let before = std::mem::replace(&mut self.under_way, now.clone());
        // Send `ended` first, because a step then shows the result. Send `begun` last, because an
        // attempt may follow a new step.
        before.difference(&now).for_each(|number| self.push("ended", number));
        steps.into_iter().for_each(|step| self.push_step(&step));
        let begun = under_way.iter().rev().filter(|step| !before.contains(&step.number()));
        begun.for_each(|step| self.push("begun", step));
        if self.unlisted != unlisted {
            self.unlisted = unlisted;
            self.push("unlisted", &unlisted);
        }
    }

    fn push_step(&mut self, step: &StepJson) {
        let lost = step.number() - self.last - 1;
        if lost > 0 {
            self.push("lost", &lost);
        }
        self.last = step.number();
        let id = self.console.live.as_ref().map(|live| live.run.id(self.last));
        let event = Event::default().event("step").id(id.unwrap_or_default());
        self.ready.push_back(event.data(data(step)));
    }

    fn push(&mut self, name: &str, value: &impl Serialize) {
        self.ready.push_back(Event::default().event(name).data(data(value)));
    }
}

fn data(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers are always JSON")
}
