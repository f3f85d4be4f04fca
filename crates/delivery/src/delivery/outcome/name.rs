//! [`OutcomeName`]: the outcome of an attempt as people write it on a command line.
//!
//! This module is separate from [`Outcome`], the vocabulary of logs and dead letters. People also
//! write statuses, and short names for attempts without a response. Every option and filter for an
//! outcome has this type, so that all accept the same names.

use std::fmt;
use std::str::FromStr;

use super::kind::Outcome;
use crate::document::hint::hint;

/// Range of valid HTTP statuses.
/// <https://www.rfc-editor.org/rfc/rfc9110#name-status-codes>
const STATUSES: std::ops::RangeInclusive<u16> = 100..=599;

words! {
    /// The short names of outcomes without a response.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum NoResponse {
        /// No response arrived within the response timeout.
        Timeout = "timeout",
        /// The connection was refused.
        Refused = "refused",
        /// The connection was reset.
        Reset = "reset",
        /// The host name of the destination did not resolve.
        Dns = "dns",
        /// The TLS certificate of the destination was refused.
        Tls = "tls",
        /// Requests to the address are not allowed, so no request was sent.
        Blocked = "blocked",
    }
}

impl NoResponse {
    /// Returns the outcome for this short name. `refused` and `reset` stand for the same outcome.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Timeout => Outcome::TimedOut,
            Self::Refused | Self::Reset => Outcome::SocketError,
            Self::Dns => Outcome::ResolutionError,
            Self::Tls => Outcome::TlsError,
            Self::Blocked => Outcome::Blocked,
        }
    }
}

/// An outcome as people write it, for example `503`, `timeout` or `Busy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeName {
    /// Any response with this HTTP status.
    Status(u16),
    /// The short name of an outcome without a response, for example `timeout`.
    NoResponse(NoResponse),
    /// The name of an outcome in logs and dead letters, for example `Busy`.
    Word(Outcome),
}

impl OutcomeName {
    /// Returns true if the name matches an attempt that was stored with this outcome and status.
    #[must_use]
    pub fn is_of(self, outcome: Option<&str>, status: Option<u16>) -> bool {
        match self {
            Self::Status(wanted) => status == Some(wanted),
            Self::NoResponse(wanted) => {
                outcome == Some(wanted.outcome().as_str()) && status.is_none()
            }
            Self::Word(wanted) => outcome == Some(wanted.as_str()),
        }
    }
}

impl fmt::Display for OutcomeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::NoResponse(word) => f.write_str(word.as_str()),
            Self::Word(outcome) => outcome.fmt(f),
        }
    }
}

impl FromStr for OutcomeName {
    type Err = String;

    /// Parses a status or a name; case is ignored.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_text = |word: &str| word.eq_ignore_ascii_case(text);
        let status = text.parse().ok().filter(|status| STATUSES.contains(status));
        let short = NoResponse::ALL.into_iter().find(|word| is_text(word.as_str()));
        let word = Outcome::ALL.into_iter().find(|word| is_text(word.as_str()));
        let found = status.map(Self::Status).or(short.map(Self::NoResponse));
        found.or(word.map(Self::Word)).ok_or_else(|| {
            let short = NoResponse::ALL.map(NoResponse::as_str);
            let words = [&short[..], &Outcome::ALL.map(Outcome::as_str)].concat();
            format!(
                "\"{text}\" is not an outcome: expected a status from 100 to 599, or a name; {}",
                hint(text, &words)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_a_status_or_a_word_in_either_case() {
        for (text, expected) in [
            ("503", OutcomeName::Status(503)),
            ("timeout", OutcomeName::NoResponse(NoResponse::Timeout)),
            ("DNS", OutcomeName::NoResponse(NoResponse::Dns)),
            ("Busy", OutcomeName::Word(Outcome::Busy)),
            ("timedout", OutcomeName::Word(Outcome::TimedOut)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        let short = NoResponse::ALL.map(NoResponse::as_str);
        for text in short.iter().chain(&Outcome::ALL.map(Outcome::as_str)) {
            let read = text.parse::<OutcomeName>().map(|name| name.to_string().to_lowercase());
            assert_eq!(read, Ok(text.to_lowercase()));
        }
    }

    #[test]
    fn for_another_word_the_nearest_is_suggested_or_all_are_listed() {
        let problem = |text: &str| text.parse::<OutcomeName>().unwrap_err();
        for (text, nearest) in
            [("timout", "timeout"), ("bussy", "Busy"), ("SocketErr", "SocketError")]
        {
            assert!(problem(text).ends_with(&format!("; did you mean {nearest}?")), "{text}");
        }
        for text in ["", "99", "600", "5xx", "hang"] {
            let problem = problem(text);
            let begins = format!(
                "\"{text}\" is not an outcome: expected a status from 100 to 599, or a name"
            );
            assert!(problem.starts_with(&begins), "{problem}");
        }
        assert!(
            problem("hang").contains("known: timeout, refused, reset, dns, tls, blocked, Success")
        );
    }

    #[test]
    fn a_stored_outcome_is_found_by_its_word_its_status_and_the_lack_of_one() {
        let is_of = |text: &str, outcome: &str, status: Option<u16>| {
            text.parse::<OutcomeName>().unwrap().is_of(Some(outcome), status)
        };
        assert!(is_of("503", "Busy", Some(503)) && !is_of("503", "Busy", Some(429)));
        assert!(is_of("Busy", "Busy", Some(429)) && !is_of("Busy", "TimedOut", None));
        assert!(is_of("timeout", "TimedOut", None) && !is_of("timeout", "TimedOut", Some(408)));
        assert!(is_of("TimedOut", "TimedOut", Some(408)) && is_of("TimedOut", "TimedOut", None));
        assert!(is_of("refused", "SocketError", None) && is_of("reset", "SocketError", None));
        assert!(!is_of("503", "TimedOut", None));
    }
}
