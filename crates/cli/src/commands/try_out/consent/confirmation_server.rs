//! Serves Event Grid's validation URL and the CloudEvents callback URL.
//!
//! Separate because this is the only server that other machines must be able to reach. Each
//! validation request has a URL that cannot be guessed. A GET or POST request to this URL grants
//! consent for the destination. A callback may set the allowed rate, in a header or in the query.
//!
//! Promises: requests to unknown URLs grant nothing. The server only responds to requests for the
//! public name, its listening address or this machine. Any site may link to a confirmation URL,
//! because possession of the URL is the permission. The server runs as long as its command. It does
//! not serve TLS, which the public proxy must provide.

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
use local::guard::Hosts;
use tokio::net::TcpListener;
use tokio::sync::watch;
use url::Url;

use crate::terminal::output::note;

/// The name of the query parameter with the allowed rate, for users who open the URL in a browser.
const RATE: &str = "rate";

/// The server that receives confirmations.
pub(super) struct ConfirmationServer {
    public: Url,
    pending: PendingByKey,
}

type PendingByKey = Arc<Mutex<HashMap<String, Pending>>>;

/// A consent that has not been confirmed yet.
struct Pending {
    destination: String,
    consent: Consent,
    confirmed_rate: watch::Sender<Option<Rate>>,
}

/// The confirmation of one consent, for which the command waits.
pub(super) struct Confirmation {
    /// The URL that confirms the consent when it is requested.
    pub(super) url: Url,
    confirmed_rate: watch::Receiver<Option<Rate>>,
}

impl ConfirmationServer {
    /// Starts the server on this address. `public` is the URL at which clients reach the server.
    pub(super) async fn start(address: SocketAddr, public: Option<Url>) -> anyhow::Result<Self> {
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
            "{public} is not an http or https URL"
        );
        note(format_args!("listening on {address} for confirmations at {public}"));
        let pending = PendingByKey::default();
        let state = (Arc::clone(&pending), Arc::new(hosts(address, &public)));
        let router = Router::new().fallback(receive).with_state(state);
        tokio::spawn(axum::serve(listener, router).into_future());
        Ok(Self { public, pending })
    }

    /// Registers a consent, and returns the URL that confirms it. The random bytes make the URL
    /// impossible to guess.
    pub(super) fn expect(
        &self,
        subscription: &Subscription,
        consent: &Consent,
        random: [u32; 4],
    ) -> Confirmation {
        let key = Question::new(random, None).code.simple().to_string();
        let mut url = self.public.clone();
        // Cannot fail: the scheme was checked when the server started, and such URLs have a path.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push(&key);
        }
        let (sender, confirmed_rate) = watch::channel(None);
        let confirmation = Pending {
            destination: subscription.destination.display(),
            consent: consent.clone(),
            confirmed_rate: sender,
        };
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(key, confirmation);
        Confirmation { url, confirmed_rate }
    }
}

impl Confirmation {
    /// Waits up to `wait_ms` for the confirmation. Returns the granted rate; `None` if there was no
    /// confirmation.
    pub(super) async fn rate(mut self, wait_ms: u64) -> Option<Rate> {
        let confirmed = self.confirmed_rate.wait_for(Option::is_some);
        let rate = tokio::time::timeout(Duration::from_millis(wait_ms), confirmed).await;
        rate.ok().and_then(Result::ok).and_then(|rate| *rate)
    }
}

/// Returns the host names by which clients reach this server.
fn hosts(address: SocketAddr, public: &Url) -> Hosts {
    Hosts::default().and(public.host_str().unwrap_or_default()).and_address(address.ip())
}

async fn receive(
    State((pending, hosts)): State<(PendingByKey, Arc<Hosts>)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> (StatusCode, String) {
    if let Err(refusal) = hosts.check_host(&headers, &uri) {
        return (refusal.status, format!("{}\n", refusal.text));
    }
    if method != Method::GET && method != Method::POST {
        return (StatusCode::METHOD_NOT_ALLOWED, "confirm with GET or POST\n".to_owned());
    }
    // The public URL may have a path of its own, so use only the last segment as the key.
    let key = uri.path().rsplit('/').next().unwrap_or_default();
    let pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(confirmation) = pending.get(key) else {
        return (StatusCode::NOT_FOUND, "not a confirmation URL\n".to_owned());
    };
    let rate = headers.get(ALLOWED_RATE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    match confirm(&confirmation.consent, rate.or_else(|| rate_in_query(&uri)).as_deref()) {
        Ok(rate) => {
            // `send` would drop the rate if no receiver is waiting.
            confirmation.confirmed_rate.send_replace(Some(rate));
            (
                StatusCode::OK,
                format!("confirmed: events will be delivered to {}\n", confirmation.destination),
            )
        }
        Err(problem) => (StatusCode::BAD_REQUEST, format!("{problem}\n")),
    }
}

fn rate_in_query(uri: &Uri) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let named =
        |name: &str| name.eq_ignore_ascii_case(RATE) || name.eq_ignore_ascii_case(ALLOWED_RATE);
    pairs.find(|(name, _)| named(name)).map(|(_, value)| value.into_owned())
}
