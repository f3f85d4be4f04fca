//! The secrets of a request with its token and the credentials that sign it, and those of this process.
//!
//! Separate because both who delivers and who validates a destination needs them. What is asked of a token server, what
//! its answer means and how long a token is used is `delivery::request::token`; here one exchange is made for
//! all who wait for it. It goes through the sender of deliveries: the same addresses are refused, no redirect is
//! followed, and the answer is read up to the same limit.
//!
//! Credentials of AWS, which sign requests, are kept alike.
//!
//! Promises: for each client one request at a time; who needs a token waits no longer than the timeout of its destination, and what
//! it waited for in vain is no failure for others, of whom the next one asks again, after a few seconds. A token is in memory
//! only. Does not share tokens with other processes.

use std::sync::Arc;

use delivery::delivery::outcome::{Exchange, Outcome};
use delivery::ports::{AwsIdentity as _, Clock, RequestPorts, Secrets as _, SendHttp as _};
use delivery::request::token::{self, Refused, Token, TokenState};
use delivery::subscription::auth::TokenSource;
use delivery::subscription::auth::identity::WebIdentity;
use delivery::subscription::auth::oauth2::ClientCredentials;
use delivery::subscription::secret::{AwsCredentials, Keyring, Secret, SecretName};
use delivery::subscription::tls::CaBundle;
use delivery::subscription::{Destination, Subscription, host_of};

use crate::aws_identity::Identity;
use crate::http::HttpSender;
use crate::machine::machine_clock;
use crate::refreshing::Keyed;
use crate::secrets::SecretStores;

/// The tokens of this process, and the credentials that sign its requests.
#[derive(Debug, Default)]
pub struct Tokens {
    /// With the authorities that vouch for the token server.
    clients: Keyed<(ClientCredentials, Option<CaBundle>), TokenState>,
    identities: Keyed<WebIdentity, TokenState>,
    aws: tokio::sync::Mutex<TokenState<AwsCredentials>>,
}

/// The ports of a command that makes requests and is no function.
#[derive(Debug)]
pub struct CommandPorts {
    /// Sends requests.
    pub sender: HttpSender,
    /// Looks up secrets.
    pub secrets: SecretStores,
    /// Signs requests.
    pub identity: Identity,
}

impl RequestPorts for CommandPorts {
    type Http = HttpSender;
    type Secrets = SecretStores;
    type Identity = Identity;

    fn http(&self) -> &HttpSender {
        &self.sender
    }

    fn secrets(&self) -> &SecretStores {
        &self.secrets
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }
}

machine_clock!([] CommandPorts);

impl Tokens {
    /// The secrets for a request to a destination, its token, and the credentials that sign it.
    ///
    /// # Errors
    /// What cannot be had and why, for people; nothing in it is a secret.
    pub async fn keyring<P: RequestPorts>(
        &self,
        ports: &P,
        destination: &Destination,
    ) -> Result<Keyring, String> {
        let names: Vec<&SecretName> = destination.secrets().collect();
        let keyring = ports.secrets().keyring(&names, destination.receiver()).await;
        let keyring = keyring.map_err(|error| error.to_string())?;
        if destination.signing_scope().is_none() && destination.token_source().is_none() {
            return Ok(keyring);
        }
        // Boxed, as what follows: it is rare, and each who waits for it would hold it twice.
        let shown = Box::pin(self.with_shown(ports, keyring, destination));
        within(ports, destination, destination.response_timeout_ms, shown).await
    }

    /// The same keyring with the token or the credentials that requests to a destination show.
    async fn with_shown<P: RequestPorts>(
        &self,
        ports: &P,
        keyring: Keyring,
        destination: &Destination,
    ) -> Result<Keyring, String> {
        if destination.shows_aws_identity() {
            ports.identity().may_show(destination)?;
        }
        if destination.signing_scope().is_some() {
            return Ok(keyring.with_aws(self.aws(ports).await?));
        }
        let Some(source) = destination.token_source() else { return Ok(keyring) };
        let state = self.state(source, destination);
        let mut state = state.lock().await;
        let fetched = Box::pin(fetched(ports, source, destination));
        let token = current_or_asked(&mut state, ports, fetched).await?;
        Ok(keyring.with_token(token))
    }

    /// Another token than this one, which the destination refused; `None` where the refusal stands.
    async fn instead<P: RequestPorts>(
        &self,
        ports: &P,
        refused: &Secret,
        destination: &Destination,
    ) -> Result<Option<Secret>, String> {
        let Some(source) = destination.token_source() else { return Ok(None) };
        let state = self.state(source, destination);
        let mut state = state.lock().await;
        match state.refused(refused, ports.now_ms()) {
            Refused::Use(token) => Ok(Some(token)),
            Refused::Stands => Ok(None),
            Refused::Ended => {
                asked(&mut state, ports, Box::pin(fetched(ports, source, destination)))
                    .await
                    .map(Some)
            }
        }
    }

    /// The same secrets with another token, if the destination refused that of a request and there is another one.
    ///
    /// # Errors
    /// Why there is none, for people; nothing in it is a secret.
    pub async fn keyring_after<P: RequestPorts>(
        &self,
        ports: &P,
        exchange: &Exchange,
        keyring: &Keyring,
        subscription: &Subscription,
        timeout_ms: u64,
    ) -> Result<Option<Keyring>, String> {
        let is_refused = exchange.outcome(&subscription.retry) == Outcome::Unauthorized;
        let Some(refused) = keyring.token().filter(|_| is_refused) else { return Ok(None) };
        let other = Box::pin(self.instead(ports, refused, &subscription.destination));
        let token = within(ports, &subscription.destination, timeout_ms, other).await?;
        Ok(token.map(|token| keyring.clone().with_token(token)))
    }

    /// The credentials that sign requests.
    async fn aws(&self, ports: &impl RequestPorts) -> Result<AwsCredentials, String> {
        let mut state = self.aws.lock().await;
        current_or_asked(&mut state, ports, Box::pin(ports.identity().signing_credentials())).await
    }

    fn state(
        &self,
        of: TokenSource<'_>,
        destination: &Destination,
    ) -> Arc<tokio::sync::Mutex<TokenState>> {
        match of {
            TokenSource::Client(client) => {
                self.clients.state(&(client.clone(), destination.ca_bundle().cloned()))
            }
            TokenSource::Aws(identity) => self.identities.state(identity),
        }
    }
}

/// What is had within this time. Whoever gives up while it asks a token server leaves that to the next one who waits.
async fn within<T>(
    clock: &impl Clock,
    destination: &Destination,
    timeout_ms: u64,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    tokio::select! {
        // What is known is there, even when no time is left.
        biased;
        done = work => done,
        () = clock.sleep(timeout_ms) => {
            let what = match destination.token_source() {
                Some(TokenSource::Client(client)) => {
                    format!("no token from {}", host_of(&client.token_url))
                }
                Some(TokenSource::Aws(identity)) => format!("no token for {}", identity.audience),
                None => "no credentials of AWS".to_owned(),
            };
            Err(format!("{what} within {timeout_ms} ms"))
        }
    }
}

/// What is known, or what asking brings.
async fn current_or_asked<T: Clone + PartialEq>(
    state: &mut TokenState<T>,
    clock: &impl Clock,
    asking: impl Future<Output = Result<Token<T>, String>>,
) -> Result<T, String> {
    match state.current(clock.now_ms()) {
        Some(current) => current,
        None => asked(state, clock, asking).await,
    }
}

/// What asking brings.
async fn asked<T: Clone + PartialEq>(
    state: &mut TokenState<T>,
    clock: &impl Clock,
    asking: impl Future<Output = Result<Token<T>, String>>,
) -> Result<T, String> {
    let wait_ms = state.wait_ms(clock.now_ms());
    if wait_ms > 0 {
        clock.sleep(wait_ms).await;
    }
    state.ask(clock.now_ms());
    let brought = asking.await;
    state.keep(brought, clock.now_ms())
}

/// A token from its source.
async fn fetched<P: RequestPorts>(
    ports: &P,
    source: TokenSource<'_>,
    destination: &Destination,
) -> Result<Token, String> {
    let client = match source {
        TokenSource::Client(client) => client,
        TokenSource::Aws(identity) => return ports.identity().web_identity_token(identity).await,
    };
    let keyring = ports.secrets().keyring(&[&client.client_secret], &client.token_url).await;
    let keyring = keyring.map_err(|error| error.to_string())?;
    let request = token::ask(client, destination.ca_bundle(), &keyring)?;
    let exchange = ports.http().exchange(&request).await;
    token::read(client, &keyring, &exchange)
}
