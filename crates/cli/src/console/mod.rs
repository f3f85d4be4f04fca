//! The console: one web application on this machine, for `lastmile dev`, a deployed stack, or a
//! container of dead letters.
//!
//! A person who investigates failed deliveries switches between totals and single dead letters. The
//! pages show the same values as the commands:
//!
//! - The crate `deadletters` finds, groups and replays dead letters.
//! - [`crate::operations::destinations`] reads the health of destinations.
//! - [`crate::operations::event_report`] explains which subscriptions match an event.
//!
//! The server renders pages of links and forms. This needs the least code, because the server
//! already has the values, and a browser needs no second model of them. Links and forms work with a
//! keyboard, with a screen reader and without scripts. Scripts only keep an open page up to date.
//!
//! [`shell`] has the parts that all pages share. Its guard checks every request before its route.
//! [`home`] is the first page. Each folder has one subject: [`letters`], [`destinations`],
//! [`subscriptions`], [`replay`], and [`live`] for `lastmile dev`.
//!
//! Promises:
//!
//! - Only this machine is served.
//! - Nothing in an event becomes markup.
//! - Only forms on these pages change anything.
//! - No page costs a storage request while cached data is fresh.
//!
//! The container stores the ledgers of replays, and the dismissals. All other data of the console
//! is lost when the process ends.

mod access;
mod app;
mod destinations;
mod home;
mod letters;
mod live;
mod replay;
mod shell;
mod sources;
mod subscriptions;

use std::sync::Arc;

use adapters::machine::Machine;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use deadletters::DeadLetters;
use delivery::ports::JitterSource as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use self::app::{Console, SharedConsole};
use self::destinations::HealthCache;
#[cfg(feature = "aws")]
pub(crate) use self::destinations::cloudwatch::CloudWatch;
pub(crate) use self::destinations::rates::RateSource;
use self::letters::caches::LetterCaches;
use self::letters::{cause, letter, links, overview};
use self::live::publish::{EVENT_FORM_MAX_BYTES, PUBLISH};
use self::live::{Live, event, page, publish, stream};
pub(crate) use self::live::{LiveSetup, Recording, Witness, record};
use self::replay::running::RunningJobs;
use self::replay::{jobs, plan};
use self::shell::error::PageError;
use self::shell::guard::{self, FormToken};
pub(crate) use self::sources::Sources;
use crate::operations::access::Access;
use crate::operations::destinations::deployment::Deployment;
use crate::operations::replay_sender::ReplayQueues;
use crate::terminal::interrupt;
use crate::terminal::output::note;

/// The settings of a console: the stack or container that it shows, and the actions that it allows.
pub(crate) struct Setup {
    /// The name of the stack or container that the console shows.
    pub(crate) name: String,
    /// The options that make a command show this stack or container, such as ` --stack live`.
    pub(crate) options: String,
    pub(crate) letters: DeadLetters,
    pub(crate) queues: ReplayQueues,
    /// True if the console shows a stack.
    pub(crate) is_stack: bool,
    /// The table and the subscriptions of the deployment, if they are known.
    pub(crate) deployment: Option<Deployment>,
    pub(crate) sources: Sources,
    /// The source of success rates. `lastmile dev` uses its own statistics instead.
    pub(crate) rates: RateSource,
    pub(crate) access: Access,
    /// True if pages must not show the contents of events.
    pub(crate) hides_events: bool,
    /// The ingress and the recording of `lastmile dev`; `None` in other consoles.
    pub(crate) live: Option<(LiveSetup, Recording)>,
}

/// A running console. Dropping this value stops the console.
pub(crate) struct Served {
    /// The URL of the first page, such as `http://127.0.0.1:9181/`.
    pub(crate) address: String,
    console: SharedConsole,
    tasks: JoinSet<()>,
}

/// Starts to serve a console in the background.
///
/// # Errors
/// If the listener has no address, or the HTTP client cannot be created.
pub(crate) fn serve(listener: TcpListener, setup: Setup) -> anyhow::Result<Served> {
    let address = format!("http://{}/", listener.local_addr()?);
    let (live, recording) = setup.live.unzip();
    let live = live.map(Live::new).transpose()?;
    let recorded = live.as_ref().map(|live| RateSource::Recorded(Arc::clone(&live.traffic)));
    let console = Arc::new(Console {
        name: setup.name,
        options: setup.options,
        token: FormToken::new(std::array::from_fn(|_| Machine.next_jitter().0)),
        caches: Arc::new(LetterCaches::new(&setup.letters)),
        letters: setup.letters,
        jobs: RunningJobs::default(),
        queues: setup.queues,
        is_stack: setup.is_stack,
        deployment: setup.deployment,
        health: HealthCache::default(),
        sources: setup.sources,
        rates: recorded.unwrap_or(setup.rates),
        access: setup.access,
        hides_events: setup.hides_events,
        live,
    });
    let mut tasks = JoinSet::new();
    if let Some(recording) = recording {
        recording.start(&console, &mut tasks);
    }
    let served = axum::serve(listener, router(&console));
    tasks.spawn(async move {
        if let Err(error) = served.await {
            note(format_args!("the console has stopped: {error}"));
        }
    });
    Ok(Served { address, console, tasks })
}

impl Served {
    /// Stops serving pages, then waits for the replays in progress. Prints how to interrupt and
    /// resume them.
    ///
    /// # Errors
    /// If signals cannot be received.
    pub(crate) async fn finish(mut self) -> anyhow::Result<()> {
        self.tasks.shutdown().await;
        let jobs = self.console.jobs.names();
        if jobs.is_empty() {
            return Ok(());
        }
        let names = jobs.join(", ");
        note(format_args!(
            "waiting for the running replays: {names}; press Ctrl-C again to interrupt them, and \
             continue them later with --resume"
        ));
        tokio::select! {
            () = self.console.jobs.finish() => Ok(()),
            interrupted = interrupt::requested() => Ok(interrupted?),
        }
    }
}

fn router(console: &SharedConsole) -> Router {
    let publish = get(publish::form).post(publish::publish);
    Router::new()
        .merge(shell::fixed_files())
        .route("/", get(home::answer))
        .route("/causes/{id}", get(cause::answer))
        .route("/causes/{id}/dismiss", post(cause::dismiss))
        .route("/letters", get(overview::answer))
        .route("/letters/{id}", get(letter::answer))
        .route("/letters/{id}/raw", get(letter::raw))
        .route("/letters/{id}/dismiss", post(links::dismiss))
        .route("/letters/{id}/undismiss", post(links::undismiss))
        .route("/replay", get(plan::dry_run).post(plan::start))
        .route("/jobs", get(jobs::list))
        .route("/jobs/{job}", get(jobs::job_page))
        .route("/jobs/{job}/resume", post(jobs::resume))
        .route("/destinations", get(destinations::list))
        .route("/destinations/{key}", get(destinations::destination_page))
        .route("/subscriptions", get(subscriptions::list))
        .route(
            "/subscriptions/{namespace}/{topic}/{name}",
            get(subscriptions::subscription_page).post(subscriptions::explain),
        )
        .route("/live", get(page::answer))
        .route("/stream", get(stream::answer))
        .route("/events/{id}", get(event::answer))
        .route(PUBLISH, publish.layer(DefaultBodyLimit::max(EVENT_FORM_MAX_BYTES)))
        .fallback(async || {
            let why = "This address has no page.";
            PageError::new(StatusCode::NOT_FOUND, "No such page", why)
        })
        .method_not_allowed_fallback(async || {
            let why = "This address does not accept the method of the request.";
            PageError::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", why)
        })
        // axum runs the last layer first, so the guard sees every request before any route and
        // fallback.
        .layer(from_fn_with_state(Arc::clone(console), guard::check))
        .with_state(Arc::clone(console))
}
