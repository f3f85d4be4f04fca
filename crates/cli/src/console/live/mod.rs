//! Serves the live part of the console in `lastmile dev`. Its pages show each event and each step
//! of a delivery when it happens: attempts, waits and the final result.
//!
//! - `recorder` converts observations and log lines to steps of `feed`, whose size is limited, and
//!   to statistics of `traffic`.
//! - `shown_exchange` is the only module that reads headers. It hides credentials.
//! - `stream` sends new steps to open pages.
//! - `run` identifies one run of `lastmile dev`. Every id on a page contains it.
//!
//! Promises: no page shows a credential; memory is limited; the pages can be read without scripts.
//! Nothing here changes how events are delivered: the console publishes through the ingress.

pub(super) mod event;
mod feed;
pub(super) mod page;
pub(super) mod preview;
pub(super) mod publish;
mod recorder;
pub(super) mod run;
pub(super) mod stream;
pub(super) mod traffic;

use std::sync::{Arc, Mutex, PoisonError};

use adapters::machine::Machine;
use axum::http::StatusCode;
use delivery::ports::JitterSource as _;
use delivery::subscription::secret::Secret;
use local::observe::{Observation, Observer};
use local::watch::Line;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use self::feed::{Event, Feed};
use self::recorder::{Pending, Recorder};
use self::run::{Id, Run};
use self::traffic::Recorded;
use super::app::SharedConsole;
use super::shell::error::PageError;
use super::sources::LOOK_EVERY;
use crate::operations::environment::Allowed;

/// The maximum number of open streams. Each open page has one stream.
const STREAMS_MAX: usize = 50;

/// The live part of a console: the stored events and steps, and the client that publishes.
pub(super) struct Live {
    /// The address of the ingress, without a trailing slash.
    pub(super) ingress: String,
    /// The key with which the console publishes; `None` if the ingress requires none.
    ingress_key: Option<Secret>,
    /// The environment variables that a preview may contain.
    allowed: Allowed,
    client: reqwest::Client,
    pub(super) run: Run,
    feed: Mutex<Feed>,
    /// The statistics of attempts, by minute.
    pub(super) traffic: Arc<Mutex<Recorded>>,
    /// A counter of changes in the feed and in the subscriptions. A change of the counter wakes
    /// open pages.
    changes: watch::Sender<u64>,
    streams: Arc<Semaphore>,
}

/// The settings of the live part: the ingress to which the console publishes, and the allowed
/// variables.
pub(crate) struct LiveSetup {
    /// The address of the ingress, without a trailing slash.
    pub(crate) ingress: String,
    /// The key with which the console publishes; `None` if the ingress requires none.
    pub(crate) ingress_key: Option<Secret>,
    /// The environment variables that a preview may contain.
    pub(crate) allowed: Allowed,
}

/// The receiving end of the channels to the recorder. The channels store messages until the console
/// starts.
pub(crate) struct Recording {
    observed: UnboundedReceiver<Observation>,
    lines: UnboundedReceiver<Line>,
}

/// The sending end of the channels to the recorder.
pub(crate) struct Witness {
    pub(crate) observer: Observer,
    lines: UnboundedSender<Line>,
}

impl Witness {
    /// Sends a log line to the recorder of the console.
    pub(crate) fn line(&self, line: &Line) {
        // `lastmile dev` continues if the console has ended.
        let _ = self.lines.send(line.clone());
    }
}

/// Creates the channels to the recorder, and returns both ends.
pub(crate) fn record() -> (Witness, Recording) {
    let (observer, observed) = unbounded_channel();
    let (sender, lines) = unbounded_channel();
    let witness = Witness { observer: Observer::new(observer), lines: sender };
    (witness, Recording { observed, lines })
}

impl Recording {
    /// Starts two background tasks: one records messages, the other checks for changed files.
    pub(super) fn start(self, console: &SharedConsole, tasks: &mut JoinSet<()>) {
        let Self { observed, lines } = self;
        let console = Arc::clone(console);
        tasks.spawn(watch_files(Arc::clone(&console)));
        tasks.spawn(Recorder { console, observed, lines, pending: Pending::default() }.run());
    }
}

/// Checks the files periodically, and wakes open pages after a change. Never returns.
async fn watch_files(console: SharedConsole) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if console.sources.refresh() {
            console.live.iter().for_each(Live::tell);
        }
    }
}

impl Live {
    /// Creates the live part with an empty feed.
    ///
    /// # Errors
    /// If the HTTP client cannot be created.
    pub(super) fn new(setup: LiveSetup) -> anyhow::Result<Self> {
        let LiveSetup { ingress, ingress_key, allowed } = setup;
        // Requests to the ingress stay on this machine and use plain HTTP. The client therefore
        // needs no certificates.
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
        Ok(Self {
            ingress,
            ingress_key,
            allowed,
            client,
            run: Run::new(Machine.next_jitter().0),
            feed: Mutex::default(),
            traffic: Arc::default(),
            changes: watch::Sender::new(0),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        })
    }

    /// Locks the feed, and calls `read` with it.
    fn read<T>(&self, read: impl FnOnce(&Feed) -> T) -> T {
        read(&self.feed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks the feed, calls `change` with it, and wakes all open pages.
    fn change(&self, change: impl FnOnce(&mut Feed)) {
        change(&mut self.feed.lock().unwrap_or_else(PoisonError::into_inner));
        self.tell();
    }

    /// Wakes all open pages, so that they read the changes.
    fn tell(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Returns the event with this id.
    ///
    /// # Errors
    /// A page with the reason why the event is not available.
    fn event(&self, id: &str) -> Result<Event, PageError> {
        let (title, why) = match self.run.read(id) {
            Id::ThisRun(number) => match self.read(|feed| feed.event(number).cloned()) {
                Some(event) => return Ok(event),
                None => ("The event is no longer stored", "Newer events have replaced it."),
            },
            Id::AnotherRun => (
                "An event of an earlier run",
                "lastmile dev was restarted, and stores events only in memory.",
            ),
            Id::Invalid => (
                "No such event",
                "This is not the address of an event; see the live page for stored events.",
            ),
        };
        let error = PageError::new(StatusCode::NOT_FOUND, title, why);
        Err(error.with_link("/live".to_owned(), "Live"))
    }
}
