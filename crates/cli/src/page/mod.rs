//! The dead letters as a page on this machine: looked at, filtered, explained, sent again.
//!
//! A person who finds out why events were not delivered goes back and forth between sums and single
//! letters; a page does that better than verbs. It shows what the verbs show, by the same code:
//! what letters there are is [`crate::letters`]'s to say, and how they go back too. [`guard`]
//! stands before every route, [`shelves`] remembers what was read, [`query`] reads addresses; each
//! page is a file.
//!
//! Promises: served to this machine alone; nothing of an event is ever markup; nothing is changed
//! but by a form of the page itself; works without scripts and without any network; a page costs no
//! storage request while what was read is fresh. Does not keep anything beyond its process: what
//! was sent stands in the ledgers.

mod chart;
mod filters;
mod frame;
mod guard;
mod jobs;
mod json;
mod letter;
mod list;
mod overview;
mod query;
mod reason;
mod replay;
mod runs;
mod shelves;
mod timeline;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};
use delivery::time::duration::SECOND_MS;
use maud::html;
use tokio::net::TcpListener;
use url::Url;

use self::frame::{Place, Problem, Sheet};
use self::guard::Guard;
use self::runs::Jobs;
use self::shelves::Shelves;
use crate::letters::{Letters, text};

/// Connections that are still open after this are closed.
const CLOSING: Duration = Duration::from_secs(1);

/// All that the pages share.
type Page = Arc<Parts>;

struct Parts {
    letters: Letters,
    shelves: Shelves,
    guard: Guard,
    jobs: Jobs,
    queue_url: Option<Url>,
}

/// Serves the letters until Ctrl-C; replays that are under way then end first, unless it is pressed
/// again.
///
/// # Errors
/// When the listener fails.
pub(crate) async fn serve(
    listener: TcpListener,
    letters: Letters,
    queue_url: Option<Url>,
    chances: [u32; 8],
) -> anyhow::Result<()> {
    let guard = Guard::new(listener.local_addr()?.port(), chances);
    let shelves = Shelves::new(&letters);
    let page = Arc::new(Parts { letters, shelves, guard, jobs: Jobs::default(), queue_url });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = axum::serve(listener, router(&page))
        .with_graceful_shutdown(async move { _ = stopped.await });
    let mut served = Box::pin(served.into_future());
    tokio::select! {
        served = &mut served => return Ok(served?),
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    // Nobody waits for it any more when serving has ended by itself.
    _ = stop.send(());
    if let Ok(served) = tokio::time::timeout(CLOSING, served).await {
        served?;
    }
    end(&page).await
}

/// Lets replays end, or says how to go on with them.
async fn end(page: &Page) -> anyhow::Result<()> {
    let jobs = page.jobs.under_way();
    if jobs.is_empty() {
        return Ok(());
    }
    let named = jobs.join(", ");
    eprintln!(
        "replays under way end first: {named}; Ctrl-C again breaks them off, and --resume goes on with them"
    );
    tokio::select! {
        () = page.jobs.end() => Ok(()),
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}

fn router(page: &Page) -> Router {
    let fixed =
        |kind: &'static str, text: &'static str| get(async move || ([(CONTENT_TYPE, kind)], text));
    Router::new()
        .route("/", get(overview::answer))
        .route("/letters/{id}", get(letter::answer))
        .route("/letters/{id}/raw", get(letter::raw))
        .route("/replay", get(replay::dry_run).post(replay::start))
        .route("/jobs", get(jobs::list))
        .route("/jobs/{job}", get(jobs::one))
        .route("/jobs/{job}/resume", post(jobs::resume))
        .route("/style.css", fixed("text/css; charset=utf-8", include_str!("style.css")))
        .route("/page.js", fixed("text/javascript; charset=utf-8", include_str!("page.js")))
        .route("/icon.svg", fixed("image/svg+xml", include_str!("icon.svg")))
        .fallback(async || {
            Problem::new(StatusCode::NOT_FOUND, "No such page", "There is nothing at this address.")
        })
        .layer(from_fn_with_state(Arc::clone(page), guard::watch))
        .with_state(Arc::clone(page))
}

/// While a container is read for the first time.
fn reading(page: &Page, requests: u64) -> Response {
    let main = html! { section .notice {
        h1 { "Reading the letters" }
        p {
            (text::grouped(requests))
            " storage requests so far. This page goes on by itself; what was read is not read again."
        }
        progress aria-label="Reading" {}
    } };
    let mut sheet = Sheet::new("Reading", Place::Letters, main);
    (sheet.again_ms, sheet.status) = (Some(SECOND_MS), "Reading the letters");
    sheet.answer(page, StatusCode::OK)
}
