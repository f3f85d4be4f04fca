//! What happens, as server-sent events: `run` first, `step` for each new step, `lost` when some were dropped before
//! they could be sent, `begun` and `ended` for attempts under way, `unlisted` with how many of those are not shown,
//! `problem` with what is wrong in the subscriptions.
//!
//! A page says which step it has last, by the header of the standard when it connects again, so none is sent
//! twice and none is missing that is kept; to one of an earlier run, all are sent. Of attempts under way, each stream
//! begins with all. A stream holds no copy of the feed: it reads what is new when
//! something has changed.

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

use super::app::{STREAMS_MAX, SharedApp};
use super::feed::Feed;
use super::live::{StepJson, UNDER_WAY_SHOWN};
use super::run::Id;
use crate::page::error::PageError;
use crate::page::query::{pairs, value};

/// How often an idle stream sends something, so that a closed page is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// In place of an id: only what happens from now on.
const NOW: &str = "now";
/// How many steps are read at once.
const STEPS_AT_ONCE: usize = 200;

/// A stream to one page.
struct PageStream {
    app: SharedApp,
    changes: watch::Receiver<u64>,
    /// The number of the last step that was sent.
    last: u64,
    /// The numbers of the attempts under way that were sent.
    under_way: BTreeSet<u64>,
    /// How many more there were.
    unlisted: usize,
    /// The problem that was sent.
    problem: Option<Option<String>>,
    ready: VecDeque<Event>,
    /// Held as long as the stream is open.
    _permit: OwnedSemaphorePermit,
}

pub(super) async fn answer(
    State(app): State<SharedApp>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, PageError> {
    let Ok(permit) = Arc::clone(&app.streams).try_acquire_owned() else {
        let why = format!("{STREAMS_MAX} pages are open already.");
        return Err(PageError::new(StatusCode::SERVICE_UNAVAILABLE, "Too many pages", why));
    };
    let pairs = pairs(query.unwrap_or_default().as_bytes());
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last = match after.or(value(&pairs, "after")) {
        Some(NOW) => app.read(Feed::last_step),
        Some(id) => match app.run.read(id) {
            Id::Of(number) => number.min(app.read(Feed::last_step)),
            Id::OfAnotherRun | Id::Invalid => 0,
        },
        None => 0,
    };
    let run = Event::default().event("run").data(data(&app.run.as_str()));
    let stream = PageStream {
        changes: app.changes.subscribe(),
        last,
        under_way: BTreeSet::new(),
        unlisted: 0,
        problem: None,
        ready: VecDeque::from([run]),
        app,
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
                // Fails when the program ends.
                self.changes.changed().await.ok()?;
            }
        }
    }

    fn read(&mut self) {
        let app = Arc::clone(&self.app);
        let problem = app.sources.problem();
        if self.problem.as_ref() != Some(&problem) {
            // As JSON: it may be empty.
            self.push("problem", &problem.as_deref().unwrap_or_default());
            self.problem = Some(problem);
        }
        let (steps, under_way, unlisted) = app.read(|feed| {
            let next = feed.steps_after(self.last).take(STEPS_AT_ONCE);
            let steps: Vec<StepJson> = next.map(|step| StepJson::of(&app, feed, step)).collect();
            let shown = feed.under_way().rev().take(UNDER_WAY_SHOWN);
            let under_way: Vec<StepJson> =
                shown.map(|step| StepJson::of(&app, feed, step)).collect();
            let unlisted = feed.under_way().len() - under_way.len();
            (steps, under_way, unlisted)
        });
        let now: BTreeSet<u64> = under_way.iter().map(StepJson::number).collect();
        let before = std::mem::replace(&mut self.under_way, now.clone());
        // What has ended makes room for its result; what begins may be what a step was followed by.
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
        let event = Event::default().event("step").id(self.app.run.id(self.last));
        self.ready.push_back(event.data(data(step)));
    }

    fn push(&mut self, name: &str, value: &impl Serialize) {
        self.ready.push_back(Event::default().event(name).data(data(value)));
    }
}

fn data(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers are always JSON")
}
