//! What happens, as server-sent events: `step` for each new step, `lost` when some were dropped before they
//! could be sent, `problem` with what is wrong in the subscriptions.
//!
//! A page says which step it has last, by the header of the standard when it connects again, so none is sent
//! twice and none is missing that is kept. A stream holds no copy of the feed: it reads what is new when
//! something has changed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::stream::{self, Stream};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::app::{App, STREAMS_MAX, SharedApp};
use super::feed::Feed;
use super::live::StepJson;
use crate::page::error::PageError;
use crate::page::query::{pairs, value};

/// How often an idle stream sends something, so that a closed page is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How many steps are read at once.
const STEPS_AT_ONCE: usize = 200;

/// A stream to one page.
struct PageStream {
    app: SharedApp,
    changes: watch::Receiver<u64>,
    /// The number of the last step that was sent.
    last: u64,
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
    let last = after.or(value(&pairs, "after")).and_then(|last| last.parse().ok());
    let stream = PageStream {
        changes: app.changes.subscribe(),
        // A number of an earlier run is too high.
        last: last.unwrap_or(0).min(app.read(Feed::last_step)),
        problem: None,
        ready: VecDeque::new(),
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
        let app: &App = &self.app;
        let problem = app.sources.problem();
        if self.problem.as_ref() != Some(&problem) {
            // As JSON: it may be empty.
            let text = json!(problem.as_deref().unwrap_or_default());
            self.ready.push_back(Event::default().event("problem").data(text.to_string()));
            self.problem = Some(problem);
        }
        let steps: Vec<StepJson> = app.read(|feed| {
            let next = feed.steps_after(self.last).take(STEPS_AT_ONCE);
            next.map(|step| StepJson::of(app, feed, step)).collect()
        });
        for step in steps {
            let number = step.number();
            let lost = number - self.last - 1;
            if lost > 0 {
                self.ready.push_back(Event::default().event("lost").data(lost.to_string()));
            }
            self.last = number;
            let json = serde_json::to_string(&step).expect("texts and numbers are always JSON");
            let event = Event::default().event("step").id(number.to_string());
            self.ready.push_back(event.data(json));
        }
    }
}
