//! The live page of `lastmile dev`: what is published, delivered, retried and given up, as it happens.
//!
//! `dev` prints lines; a page shows the same with requests and responses, filters, the subscriptions as they
//! are read, and the health of destinations. `recorder` turns what is observed and logged into steps of
//! `feed`, which is bounded; `shown_exchange` is the only place that looks at headers, and hides credentials;
//! `stream` sends new steps to open pages; an id on a page names its `run`; `sources` reads the subscriptions at each save; every other file
//! is a page. Layout, style, errors and the guard are those of the page of dead letters.
//!
//! Promises: served to this machine only; nothing of an event or a response is ever markup; no credential is
//! shown; memory is bounded; the static parts work without scripts. Does not change how anything is
//! delivered: what it publishes goes through the ingress.

mod app;
mod destinations;
mod event;
mod feed;
mod live;
mod publish;
mod recorder;
mod run;
mod sources;
mod stream;
mod subscriptions;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use adapters::machine::Machine;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use delivery::ports::JitterSource as _;
use delivery::subscription::secret::Secret;
use local::observe::{Observation, Observer};
use local::watch::Line;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use self::app::{App, SharedApp};
use self::recorder::{Pending, Recorder};
use self::run::Run;
use self::sources::Sources;
use crate::output::note;
use crate::page::error::PageError;
use crate::page::guard::{FormToken, accept, answer};
use crate::page::{SCRIPT, fixed, fixed_files};

pub(crate) use self::destinations::{DestinationHealth, Health, ReadHealth};

/// What the page shows, and where the rest of the application is.
pub(crate) struct Setup {
    /// The folder of the objects that the functions read.
    pub(crate) subscriptions: PathBuf,
    /// The files that have them.
    pub(crate) files: Vec<PathBuf>,
    /// The address of the ingress, without a slash at its end.
    pub(crate) ingress: String,
    /// A key that it accepts, if it asks for one.
    pub(crate) ingress_key: Option<Secret>,
    /// The address of the page of dead letters, without a slash at its end.
    pub(crate) dead_letters: Option<String>,
    pub(crate) read_health: ReadHealth,
}

/// The page before it is started: what happens from now on is kept for it.
pub(crate) struct Recording {
    observed: UnboundedReceiver<Observation>,
    lines: UnboundedReceiver<Line>,
}

/// The page while it is served; it ends with this value.
pub(crate) struct DevPage {
    /// Its address.
    pub(crate) address: String,
    _tasks: JoinSet<()>,
}

/// What is told of everything that happens.
pub(crate) struct Witness {
    pub(crate) observer: Observer,
    lines: UnboundedSender<Line>,
}

impl Witness {
    /// Tells of a log line.
    pub(crate) fn line(&self, line: &Line) {
        // The page may have ended, which is no reason to stop.
        let _ = self.lines.send(line.clone());
    }
}

/// Begins to record.
pub(crate) fn record() -> (Witness, Recording) {
    let (observer, observed) = unbounded_channel();
    let (sender, lines) = unbounded_channel();
    let witness = Witness { observer: Observer::new(observer), lines: sender };
    (witness, Recording { observed, lines })
}

/// Listens on this port of this machine, or on any other one if it is taken, and says so.
///
/// # Errors
/// When no port is free.
pub(crate) async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
        return Ok(listener);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    note(format_args!("port {port} is taken, so the page has another one"));
    Ok(listener)
}

impl Recording {
    /// Serves the page in the background.
    ///
    /// # Errors
    /// When the listener or the client of the ingress cannot be used.
    pub(crate) async fn serve(
        self,
        listener: TcpListener,
        setup: Setup,
    ) -> anyhow::Result<DevPage> {
        let address = format!("http://{}/", listener.local_addr()?);
        let token = FormToken::new(std::array::from_fn(|_| Machine.next_jitter().0));
        // What is published stays on this machine.
        // On this machine and in clear: no certificate is trusted, and none has to be there.
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
        let sources = Sources::read(setup.files.clone());
        let run = Run::new(Machine.next_jitter().0);
        let app = Arc::new(App::new(setup, run, sources, token, client));
        let Self { observed, lines } = self;
        let recorder =
            Recorder { app: Arc::clone(&app), observed, lines, pending: Pending::default() };
        let mut tasks = JoinSet::new();
        tasks.spawn(recorder.run());
        tasks.spawn(Sources::watch(Arc::clone(&app)));
        let served = axum::serve(listener, router(&app));
        tasks.spawn(async move {
            if let Err(error) = served.await {
                note(format_args!("the page has ended: {error}"));
            }
        });
        Ok(DevPage { address, _tasks: tasks })
    }
}

fn router(app: &SharedApp) -> Router {
    let publish = get(publish::form).post(publish::publish);
    Router::new()
        .merge(fixed_files())
        .route("/dev_page.css", fixed("text/css; charset=utf-8", include_str!("dev_page.css")))
        .route("/dev_page.js", fixed(SCRIPT, include_str!("dev_page.js")))
        .route("/", get(live::answer))
        .route("/stream", get(stream::answer))
        .route("/events/{id}", get(event::answer))
        .route("/publish", publish.layer(DefaultBodyLimit::max(publish::FORM_MAX_BYTES)))
        .route("/subscriptions", get(subscriptions::answer))
        .route("/destinations", get(destinations::answer))
        .fallback(async || {
            let why = "There is no page at this address.";
            PageError::new(StatusCode::NOT_FOUND, "No such page", why)
        })
        .method_not_allowed_fallback(async || {
            let why = "This page is only read, not written to.";
            PageError::new(StatusCode::METHOD_NOT_ALLOWED, "Not here", why)
        })
        // The last layer is the first to see a request: no route, and no fallback, is before it.
        .layer(from_fn_with_state(Arc::clone(app), guard))
        .with_state(Arc::clone(app))
}

/// Checks a request before its route, as the page of dead letters does.
async fn guard(State(app): State<SharedApp>, request: Request, next: Next) -> Response {
    let accepted = accept(&app.token, publish::FORM_MAX_BYTES, request).await;
    answer(accepted, next, |error| app.error_page(&error)).await
}
