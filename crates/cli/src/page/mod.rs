//! The dead letters as a web page on this machine: listed, filtered, explained, replayed.
//!
//! A person who finds out why events were not delivered goes back and forth between sums and single
//! dead letters; a page does that better than verbs. It shows what the verbs show, by the same
//! code: finding and replaying is in the crate `deadletters`. [`guard`] checks every request before
//! its route, [`letter_caches`] keeps what was read, [`query`] reads URLs; each page is a file.
//!
//! Promises: served to this machine only; nothing of an event is ever markup; nothing changes but
//! by a form of the page itself; works without scripts and without any network; a page costs no
//! storage request while what was read is fresh. Does not keep anything beyond its process: what
//! was sent is in the ledgers.

mod app;
mod chart;
mod curl;
mod dead_letter;
pub(crate) mod error;
mod filters;
pub(crate) mod guard;
mod jobs;
pub(crate) mod json;
pub(crate) mod layout;
mod letter_caches;
mod letter_links;
mod list;
pub(crate) mod markup;
mod neighbours;
mod outcome_text;
mod overview;
pub(crate) mod query;
mod reason_text;
mod replay;
mod running_jobs;
mod suggestions;
mod summary;
mod timeline;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use deadletters::DeadLetters;
use tokio::net::TcpListener;

use self::app::{App, SharedApp};
use self::error::PageError;
use self::guard::{FormToken, Guard};
use self::letter_caches::LetterCaches;
use self::running_jobs::RunningJobs;
use crate::interrupt;
use crate::output::note;
use crate::replay_sender::ReplayQueues;

/// The content type of scripts.
pub(crate) const SCRIPT: &str = "text/javascript; charset=utf-8";
/// How long open connections may take to end after Ctrl-C.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the dead letters until Ctrl-C. Replays under way are finished then, unless it is pressed
/// again. `random` makes the token of the forms.
///
/// # Errors
/// When the listener fails.
pub(crate) async fn serve(
    listener: TcpListener,
    letters: DeadLetters,
    queues: ReplayQueues,
    random: [u32; 8],
) -> anyhow::Result<()> {
    let caches = Arc::new(LetterCaches::new(&letters));
    let guard =
        Arc::new(Guard { container: letters.container.clone(), token: FormToken::new(random) });
    let app = Arc::new(App { letters, caches, guard, jobs: RunningJobs::default(), queues });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = axum::serve(listener, router(&app))
        .with_graceful_shutdown(async move { _ = stopped.await });
    let mut served = Box::pin(served.into_future());
    tokio::select! {
        served = &mut served => return Ok(served?),
        interrupted = interrupt::requested() => interrupted?,
    }
    // Fails when serving has ended by itself; then nothing has to be stopped.
    _ = stop.send(());
    if let Ok(served) = tokio::time::timeout(SHUTDOWN_TIMEOUT, served).await {
        served?;
    }
    finish_replays(&app).await
}

/// Waits for the replays under way, or says how to continue them.
async fn finish_replays(app: &App) -> anyhow::Result<()> {
    let jobs = app.jobs.names();
    if jobs.is_empty() {
        return Ok(());
    }
    let names = jobs.join(", ");
    note(format_args!(
        "waiting for the replays under way: {names}; Ctrl-C again interrupts them, and --resume continues them"
    ));
    tokio::select! {
        () = app.jobs.finish() => Ok(()),
        interrupted = interrupt::requested() => Ok(interrupted?),
    }
}

fn router(app: &SharedApp) -> Router {
    Router::new()
        .merge(fixed_files())
        .route("/", get(overview::answer))
        .route("/letters/{id}", get(dead_letter::answer))
        .route("/letters/{id}/raw", get(dead_letter::raw))
        .route("/letters/{id}/dismiss", post(letter_links::dismiss))
        .route("/letters/{id}/undismiss", post(letter_links::undismiss))
        .route("/replay", get(replay::dry_run).post(replay::start))
        .route("/jobs", get(jobs::list))
        .route("/jobs/{job}", get(jobs::one))
        .route("/jobs/{job}/resume", post(jobs::resume))
        .fallback(async || {
            let why = "There is no page at this address.";
            PageError::new(StatusCode::NOT_FOUND, "No such page", why)
        })
        // The last layer is the first to see a request: no route, and no fallback, is before it.
        .layer(from_fn_with_state(Arc::clone(&app.guard), guard::check))
        .with_state(Arc::clone(app))
}

/// The files of every page of ours.
pub(crate) fn fixed_files<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/style.css", fixed("text/css; charset=utf-8", include_str!("style.css")))
        .route("/page.js", fixed(SCRIPT, include_str!("page.js")))
        .route("/icon.svg", fixed("image/svg+xml", include_str!("icon.svg")))
}

/// The route of a file with this content type.
pub(crate) fn fixed<S: Clone + Send + Sync + 'static>(
    kind: &'static str,
    text: &'static str,
) -> MethodRouter<S> {
    get(async move || ([(CONTENT_TYPE, kind)], text))
}
