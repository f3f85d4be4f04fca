//! The address that confirms a consent: Event Grid's validation URL and CloudEvents' callback.
//!
//! Separate because it is a server, and the only one that has to be reached from outside. Each
//! question gets an address of its own that nobody can guess; whoever calls it, by GET or POST,
//! consents for that destination. A callback may tell the allowed rate, as a header or in the
//! query.
//!
//! Promises: an address that was never offered grants nothing. Lives as long as its command; does
//! not serve TLS: what makes it public does.

use std::collections::HashMap;
use std::future::IntoFuture as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use delivery::machine::consent::{ALLOWED_RATE, Question, Rate, confirm};
use delivery::subscription::{Consent, Subscription};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use url::Url;

/// The member of the query that may tell the allowed rate, for people who use a browser.
const RATE: &str = "rate";

/// Where confirmations come in.
pub(super) struct Desk {
    public: Url,
    offers: Offers,
    serving: JoinHandle<std::io::Result<()>>,
}

type Offers = Arc<Mutex<HashMap<String, Open>>>;

/// A question that may be confirmed.
struct Open {
    destination: String,
    consent: Consent,
    called: watch::Sender<Option<Rate>>,
}

/// The address of one question.
pub(super) struct Offer {
    /// What confirms when it is called.
    pub(super) url: Url,
    called: watch::Receiver<Option<Rate>>,
}

impl Desk {
    /// Listens here; the public address is how others reach it.
    pub(super) async fn open(address: SocketAddr, public: Option<Url>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        let address = listener.local_addr()?;
        let public = match public {
            Some(url) => url,
            None => Url::parse(&format!("http://{address}/"))?,
        };
        anyhow::ensure!(
            public.has_host() && matches!(public.scheme(), "http" | "https"),
            "{public} is no public URL"
        );
        eprintln!("listening on {address} for confirmations at {public}");
        let offers = Offers::default();
        let router = Router::new().fallback(receive).with_state(Arc::clone(&offers));
        let serving = tokio::spawn(axum::serve(listener, router).into_future());
        Ok(Self { public, offers, serving })
    }

    /// An address that confirms this, from now on.
    pub(super) fn offer(&self, subscription: &Subscription, consent: &Consent) -> Offer {
        let key = Question::new(super::random(), None).code.simple().to_string();
        let mut url = self.public.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push(&key);
        }
        let (sender, called) = watch::channel(None);
        let open = Open {
            destination: subscription.destination.display(),
            consent: consent.clone(),
            called: sender,
        };
        self.offers.lock().unwrap_or_else(PoisonError::into_inner).insert(key, open);
        Offer { url, called }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Offer {
    /// What its call granted, if it comes within this time.
    pub(super) async fn called(mut self, wait_ms: u64) -> Option<Rate> {
        let called = self.called.wait_for(Option::is_some);
        let rate = tokio::time::timeout(Duration::from_millis(wait_ms), called).await;
        rate.ok().and_then(Result::ok).and_then(|rate| *rate)
    }
}

async fn receive(
    State(offers): State<Offers>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> (StatusCode, String) {
    if method != Method::GET && method != Method::POST {
        return (StatusCode::METHOD_NOT_ALLOWED, "GET or POST confirms\n".to_owned());
    }
    let key = uri.path().rsplit('/').next().unwrap_or_default();
    let offers = offers.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(open) = offers.get(key) else {
        return (StatusCode::NOT_FOUND, "there is nothing to confirm here\n".to_owned());
    };
    let told = headers.get(ALLOWED_RATE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    match confirm(&open.consent, told.or_else(|| in_query(&uri)).as_deref()) {
        Ok(rate) => {
            open.called.send_replace(Some(rate));
            (
                StatusCode::OK,
                format!("confirmed: events will be delivered to {}\n", open.destination),
            )
        }
        Err(problem) => (StatusCode::BAD_REQUEST, format!("{problem}\n")),
    }
}

/// The rate as the query tells it.
fn in_query(uri: &Uri) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let named =
        |name: &str| name.eq_ignore_ascii_case(RATE) || name.eq_ignore_ascii_case(ALLOWED_RATE);
    pairs.find(|(name, _)| named(name)).map(|(_, value)| value.into_owned())
}
