//! [`Outcome`]: the classification of an attempt.
//!
//! This module is separate from the exchange because it defines a vocabulary. Log fields, metric
//! dimensions, dead letters and filters of the command line use the same names.

use std::fmt;
use std::str::FromStr;

use crate::subscription::profile::RetryPolicy;

words! {
    /// The classification of an attempt.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Outcome {
        /// The status is in the success set of the policy.
        Success = "Success",
        /// The status is 404.
        NotFound = "NotFound",
        /// The status is 401.
        Unauthorized = "Unauthorized",
        /// The status is 403.
        Forbidden = "Forbidden",
        /// The status is 400.
        BadRequest = "BadRequest",
        /// The status is 413.
        PayloadTooLarge = "PayloadTooLarge",
        /// No response arrived within the response timeout, or the status is 408.
        TimedOut = "TimedOut",
        /// The status is 429 or 503.
        Busy = "Busy",
        /// The status is not covered by any other outcome.
        GenericError = "GenericError",
        /// The connection was refused, reset or closed early, or failed in another way.
        SocketError = "SocketError",
        /// The host name of the destination did not resolve.
        ResolutionError = "ResolutionError",
        /// The TLS certificate of the destination was refused.
        TlsError = "TlsError",
        /// Requests to the address are not allowed, so no request was sent.
        Blocked = "Blocked",
        /// The delivery was deferred because the destination is on probation. This is not an
        /// attempt.
        Probation = "Probation",
        /// The attempt was aborted by the function, or could not begin: for example after a panic,
        /// or if no request could be built.
        Aborted = "Aborted",
    }
}

impl Outcome {
    /// Returns the outcome of a response with this status. The policy defines which statuses count
    /// as success.
    #[must_use]
    pub fn of_status(status: u16, policy: &RetryPolicy) -> Self {
        match status {
            // The success set is tested first, because a policy can define any of the statuses
            // below as a success.
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

    /// Returns true if the outcome reveals something about the destination. Returns false if the
    /// function blocked, deferred or aborted the attempt.
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
