//! [`TokenState`]: how long a token is used, and when another one is fetched.
//!
//! Separate from how one is had: a token of OAuth 2.0 and credentials of AWS are kept alike.
//!
//! Promises: a token is used until a minute before its end, or for half of its life if that is shorter, and
//! a day at most. A failure is
//! remembered for a few seconds, so that many deliveries at once ask once; so is a question that nobody waited for. After a token was refused another is fetched once
//! a minute at most.

use crate::subscription::secret::Secret;
use crate::time::duration::{DAY_MS, MINUTE_MS, SECOND_MS};
use crate::waits;

/// A token is not used any more this long before it ends.
const ENDS_EARLY_MS: u64 = MINUTE_MS;
/// A token is not used for longer, whatever its server says.
const LIFE_MAX_MS: u64 = DAY_MS;
/// However early a token ends, it is used for what waited for it.
const LIFE_MIN_MS: u64 = SECOND_MS;
/// A refused token is replaced at most once in this time.
const REPLACED_EVERY_MS: u64 = MINUTE_MS;

/// A token, and until when it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<T = Secret> {
    pub(super) value: T,
    pub(super) until_ms: u64,
}

impl<T> Token<T> {
    /// A token that was asked for and granted at these times, and ends at this one.
    #[must_use]
    pub fn ending(value: T, asked_ms: u64, granted_ms: u64, ends_ms: u64) -> Self {
        let life_ms = ends_ms.saturating_sub(asked_ms);
        let used_ms = life_ms.saturating_sub(ENDS_EARLY_MS.min(life_ms / 2)).min(LIFE_MAX_MS);
        Self::used_until(value, granted_ms, asked_ms.saturating_add(used_ms))
    }

    /// A token that was granted at this time and is used until this one.
    pub(super) fn used_until(value: T, granted_ms: u64, until_ms: u64) -> Self {
        Self { value, until_ms: until_ms.max(granted_ms.saturating_add(LIFE_MIN_MS)) }
    }
}

/// What is known of one token.
#[derive(Debug)]
pub struct TokenState<T = Secret> {
    token: Option<Token<T>>,
    /// When no token could be had, and why.
    failed: Option<(u64, String)>,
    /// When a token that had been refused was last to be replaced.
    replaced_ms: Option<u64>,
    /// When a token was last asked for, until the answer is kept: whoever asks may leave before it comes.
    asked_ms: Option<u64>,
}

impl<T> Default for TokenState<T> {
    fn default() -> Self {
        Self { token: None, failed: None, replaced_ms: None, asked_ms: None }
    }
}

/// What follows from a token that a destination refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused<T = Secret> {
    /// There is another one by now.
    Use(T),
    /// Another one has to be asked for.
    Ended,
    /// The refusal stands: another one was fetched a moment ago.
    Stands,
}

impl<T: Clone + PartialEq> TokenState<T> {
    /// The token, or why there is none; `None` when one has to be asked for.
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

    /// What follows from the refusal of this token. It stays in use until there is another one: who else shows it may be
    /// accepted.
    pub fn refused(&mut self, token: &T, now_ms: u64) -> Refused<T> {
        let Some(known) = self.token.as_ref().filter(|known| now_ms < known.until_ms) else {
            return Refused::Ended;
        };
        if known.value != *token {
            // It was fetched meanwhile.
            return Refused::Use(known.value.clone());
        }
        let is_early = |at_ms: u64| now_ms.abs_diff(at_ms) < REPLACED_EVERY_MS;
        if self.replaced_ms.is_some_and(is_early) {
            return Refused::Stands;
        }
        self.replaced_ms = Some(now_ms);
        Refused::Ended
    }

    /// How long to wait before a token is asked for: whoever asked a moment ago has left before the answer came.
    #[must_use]
    pub fn wait_ms(&self, now_ms: u64) -> u64 {
        self.asked_ms.map_or(0, |at_ms| waits::token_ms(now_ms.abs_diff(at_ms)))
    }

    /// Notes that somebody asks for a token.
    pub fn ask(&mut self, now_ms: u64) {
        self.asked_ms = Some(now_ms);
    }

    /// Keeps what asking brought, and returns it.
    ///
    /// # Errors
    /// As what it brought.
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
