//! Provides the secrets of a request, with its token or signing credentials, and caches the tokens
//! of this process.
//!
//! Separate because both deliveries and validations need them. `delivery::request::token` builds
//! token requests, reads their responses and computes the lifetime of a token. This module makes
//! one exchange for all waiting callers. It uses the sender of deliveries: the same addresses are
//! refused, redirects are not followed, and the same size limit applies.
//!
//! AWS credentials, which sign requests, are cached in the same way.
//!
//! Promises: each client has at most one request at a time. A caller waits at most as long as the
//! timeout of its destination. A caller that gives up does not cause a failure for others; the next
//! caller makes a new request after a few seconds. Tokens are stored only in memory, and not shared
//! with other processes.

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

/// Caches the tokens of this process, and the credentials that sign its requests.
#[derive(Debug, Default)]
pub struct Tokens {
    /// The state of each client's token. The key includes the authorities that verify the token
    /// server. Otherwise a subscription without the right authorities would cause requests of
    /// others with the same client to fail.
    clients: Keyed<(ClientCredentials, Option<CaBundle>), TokenState>,
    identities: Keyed<WebIdentity, TokenState>,
    aws: tokio::sync::Mutex<TokenState<AwsCredentials>>,
}

/// The ports of a command of the CLI, which sends requests from the machine of its user.
#[derive(Debug)]
pub struct CommandPorts {
    /// The sender of HTTP requests.
    pub sender: HttpSender,
    /// The stores in which secrets are looked up.
    pub secrets: SecretStores,
    /// The identity that signs requests.
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
    /// Returns the secrets for a request to a destination, with its token or signing credentials.
    ///
    /// # Errors
    /// Fails if a secret, the token or the signing credentials cannot be fetched in time. The text
    /// is for people and contains no secret.
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
        // Boxed, because the future is large and rarely needed, and each caller's future would
        // contain two copies.
        let shown = Box::pin(self.with_shown(ports, keyring, destination));
        within(ports, destination, destination.response_timeout_ms, shown).await
    }

    /// Adds the token or the signing credentials for a destination to its keyring. Returns the
    /// keyring unchanged if the destination needs neither.
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

    /// Returns a different token after the destination refused the current one. Returns `None` if
    /// no different token exists.
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

    /// Returns the secrets with a different token if the destination refused the token of a
    /// request. Returns `None` if it did not refuse the token, or if no different token exists.
    ///
    /// # Errors
    /// Fails if no different token can be fetched. The text is for people and contains no secret.
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

    /// Returns the AWS credentials for signing requests.
    async fn aws(&self, ports: &impl RequestPorts) -> Result<AwsCredentials, String> {
        let mut state = self.aws.lock().await;
        current_or_asked(&mut state, ports, Box::pin(ports.identity().signing_credentials())).await
    }

    fn state(
        &self,
        source: TokenSource<'_>,
        destination: &Destination,
    ) -> Arc<tokio::sync::Mutex<TokenState>> {
        match source {
            TokenSource::Client(client) => {
                self.clients.state(&(client.clone(), destination.ca_bundle().cloned()))
            }
            TokenSource::Aws(identity) => self.identities.state(identity),
        }
    }
}

/// Runs work within a time limit. At the limit, cancels the work and its request for a token. The
/// next waiting caller then makes a new request.
async fn within<T>(
    clock: &impl Clock,
    destination: &Destination,
    timeout_ms: u64,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    tokio::select! {
        // Poll the work first: a cached value is returned even if no time is left.
        biased;
        done = work => done,
        () = clock.sleep(timeout_ms) => {
            let problem = match destination.token_source() {
                Some(TokenSource::Client(client)) => {
                    format!("no token from {}", host_of(&client.token_url))
                }
                Some(TokenSource::Aws(identity)) => format!("no token for {}", identity.audience),
                None => "no AWS credentials".to_owned(),
            };
            Err(format!("{problem} within {timeout_ms} ms"))
        }
    }
}

/// Returns the cached value, or requests a new one.
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

/// Requests a new value, and stores the result.
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

/// Fetches a token from its source.
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
