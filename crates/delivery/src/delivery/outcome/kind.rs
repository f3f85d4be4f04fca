//! [`Outcome`]: what happened in an attempt, in one word.
//!
//! Separate from the exchange because it is vocabulary: log field, metric dimension, field of a
//! dead letter and filter of the command line all use these words.

use std::fmt;
use std::str::FromStr;

use crate::subscription::profile::RetryPolicy;

words! {
    /// What happened in an attempt, in one word.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Outcome {
        /// A status in the policy's success set.
        Success = "Success",
        /// 404.
        NotFound = "NotFound",
        /// 401.
        Unauthorized = "Unauthorized",
        /// 403.
        Forbidden = "Forbidden",
        /// 400.
        BadRequest = "BadRequest",
        /// 413.
        PayloadTooLarge = "PayloadTooLarge",
        /// No answer within the response timeout, or 408.
        TimedOut = "TimedOut",
        /// 429 or 503.
        Busy = "Busy",
        /// Any other status.
        GenericError = "GenericError",
        /// Refused, reset, or broken off.
        SocketError = "SocketError",
        /// The name did not resolve.
        ResolutionError = "ResolutionError",
        /// The certificate was refused.
        TlsError = "TlsError",
        /// Requests to the address are not allowed; none was sent.
        Blocked = "Blocked",
        /// Deferred because the destination is on probation; not an attempt.
        Probation = "Probation",
        /// The attempt was aborted by us, or could not begin: a panic, a request that could not be
        /// built.
        Aborted = "Aborted",
    }
}

impl Outcome {
    /// The outcome of an answer with this status. The policy says which statuses are a success.
    #[must_use]
    pub fn of_status(status: u16, policy: &RetryPolicy) -> Self {
        match status {
            // First: a policy may count a status as a success that has a word below.
            status if policy.success.contains(status) => Self::Success,
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            408 => Self::TimedOut,
            413 => Self::PayloadTooLarge,
            429 | 503 => Self::Busy,
            _ => Self::GenericError,
        }
    }

    /// Returns false if no request was sent, so that the outcome does not depend on the destination.
    #[must_use]
    pub const fn tested_destination(self) -> bool {
        match self {
            Self::Aborted | Self::Blocked | Self::Probation => false,
            Self::Success
            | Self::NotFound
            | Self::Unauthorized
            | Self::Forbidden
            | Self::BadRequest
            | Self::PayloadTooLarge
            | Self::TimedOut
            | Self::Busy
            | Self::GenericError
            | Self::SocketError
            | Self::ResolutionError
            | Self::TlsError => true,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Outcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
            .ok_or_else(|| format!("\"{text}\" is not an outcome"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_read_back_from_its_word() {
        for outcome in Outcome::ALL {
            assert_eq!(outcome.as_str().parse(), Ok(outcome));
        }
        assert!("success".parse::<Outcome>().is_err());
    }
}
