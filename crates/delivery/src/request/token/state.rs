//! [`TokenState`]: caches a token, and decides when to fetch a new one.
//!
//! This module is separate from fetching, because OAuth 2.0 tokens and AWS credentials are cached
//! by the same rules.
//!
//! - A token is used until one minute before it expires. A token that lives less than two minutes
//!   is used for half of its lifetime.
//! - A token is used for at most one day.
//! - After a failure, no token is fetched for a few seconds, so that many concurrent deliveries
//!   cause one request. The same applies after a request whose caller stopped waiting.
//! - After a destination refuses a token, a new one is fetched at most once a minute.

use crate::subscription::secret::Secret;
use crate::time::duration::{DAY_MS, MINUTE_MS, SECOND_MS};
use crate::waits;

/// Safety margin before the expiration of a token. A token that lives less than twice this time is
/// used for half of its lifetime.
const ENDS_EARLY_MS: u64 = MINUTE_MS;
/// Maximum time for which a token is used, whatever lifetime its server states. A rotated client
/// secret or a removed client is therefore noticed within a day, even if tokens never expire.
const LIFE_MAX_MS: u64 = DAY_MS;
/// Minimum time for which a token is used, so that the deliveries that wait for it can use it.
const LIFE_MIN_MS: u64 = SECOND_MS;
/// Minimum time between two replacements of tokens that destinations refused.
const REPLACED_EVERY_MS: u64 = MINUTE_MS;

/// A token or another credential, and the time until which it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<T = Secret> {
    pub(super) value: T,
    pub(super) until_ms: u64,
}

impl<T> Token<T> {
    /// Creates a token from the times at which it was requested, was received and expires.
    #[must_use]
    pub fn ending(value: T, asked_ms: u64, granted_ms: u64, ends_ms: u64) -> Self {
        let life_ms = ends_ms.saturating_sub(asked_ms);
        let used_ms = life_ms.saturating_sub(ENDS_EARLY_MS.min(life_ms / 2)).min(LIFE_MAX_MS);
        Self::used_until(value, granted_ms, asked_ms.saturating_add(used_ms))
    }

    /// Creates a token that is used until `until_ms`, but for at least [`LIFE_MIN_MS`] after it was
    /// received.
    pub(super) fn used_until(value: T, granted_ms: u64, until_ms: u64) -> Self {
        Self { value, until_ms: until_ms.max(granted_ms.saturating_add(LIFE_MIN_MS)) }
    }
}

/// A cached token, and the results of the last requests for a token.
#[derive(Debug)]
pub struct TokenState<T = Secret> {
    token: Option<Token<T>>,
    /// Time and reason of the last failure to fetch a token.
    failed: Option<(u64, String)>,
    /// Time at which the last replacement of a refused token began.
    replaced_ms: Option<u64>,
    /// Time of the last token request, until its result is recorded. It stays set if the caller
    /// stops waiting for the result.
    asked_ms: Option<u64>,
}

impl<T> Default for TokenState<T> {
    fn default() -> Self {
        Self { token: None, failed: None, replaced_ms: None, asked_ms: None }
    }
}

/// The next step after a destination refused a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused<T = Secret> {
    /// Repeat the request with this token, which was fetched after the refused one.
    Use(T),
    /// Fetch a new token, and repeat the request with it.
    Ended,
    /// Do not repeat the request: a refused token was already replaced less than a minute ago.
    Stands,
}

impl<T: Clone + PartialEq> TokenState<T> {
    /// Returns the cached token, or the reason why fetching one has just failed; `None` if a token
    /// must be fetched.
    #[must_use]
    pub fn current(&self, now_ms: u64) -> Option<Result<T, String>> {
        match (&self.token, &self.failed) {
            (Some(token), _) if now_ms < token.until_ms => Some(Ok(token.value.clone())),
            (_, Some((failed_ms, why))) if waits::token_ms(now_ms.abs_diff(*failed_ms)) > 0 => {
                Some(Err(why.clone()))
            }
            (_, _) => None,
        }
    }

    /// Returns what to do after a destination refused this token. Until the token is replaced,
    /// other deliveries use it, because their destinations may accept it.
    pub fn refused(&mut self, token: &T, now_ms: u64) -> Refused<T> {
        let Some(known) = self.token.as_ref().filter(|known| now_ms < known.until_ms) else {
            return Refused::Ended;
        };
        if known.value != *token {
            // The cached token is newer than the refused one.
            return Refused::Use(known.value.clone());
        }
        let is_early = |at_ms: u64| now_ms.abs_diff(at_ms) < REPLACED_EVERY_MS;
        if self.replaced_ms.is_some_and(is_early) {
            return Refused::Stands;
        }
        self.replaced_ms = Some(now_ms);
        Refused::Ended
    }

    /// Returns the wait in milliseconds before the next token request. The wait is zero unless
    /// another caller has just started a request and abandoned it.
    #[must_use]
    pub fn wait_ms(&self, now_ms: u64) -> u64 {
        self.asked_ms.map_or(0, |at_ms| waits::token_ms(now_ms.abs_diff(at_ms)))
    }

    /// Records that a caller starts a request for a token.
    pub fn ask(&mut self, now_ms: u64) {
        self.asked_ms = Some(now_ms);
    }

    /// Records the result of a request for a token, and returns it.
    ///
    /// # Errors
    /// The error in `fetched`.
    pub fn keep(&mut self, fetched: Result<Token<T>, String>, now_ms: u64) -> Result<T, String> {
        self.asked_ms = None;
        match fetched {
            Ok(token) => {
                self.failed = None;
                Ok(self.token.insert(token).value.clone())
            }
            Err(why) => {
                self.failed = Some((now_ms, why.clone()));
                Err(why)
            }
        }
    }
}
