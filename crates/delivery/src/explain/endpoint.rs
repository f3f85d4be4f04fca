//! An endpoint that always behaves the same.
//!
//! Separate because two explanations ask it: the life of one delivery, and the probation of its destination.

use std::fmt;
use std::str::FromStr;

use crate::delivery::outcome::{Exchange, TransportResult};
use crate::subscription::Subscription;

/// What an endpoint does, every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Always {
    /// It answers with this status.
    Status(u16),
    /// It gives no answer within the response timeout.
    Timeout,
    /// It refuses the connection.
    Refused,
    /// It resets the connection.
    Reset,
    /// Its name does not resolve.
    Dns,
    /// Its certificate is refused.
    Tls,
    /// Requests to its address are not allowed.
    Blocked,
}

impl Always {
    /// An endpoint that always does what it did in this exchange; `None` where no request was made for a reason of
    /// ours.
    #[must_use]
    pub fn as_in(exchange: &Exchange) -> Option<Self> {
        match exchange.result {
            TransportResult::Answered { status, .. } => Some(Self::Status(status)),
            TransportResult::TimedOut => Some(Self::Timeout),
            TransportResult::SocketError => Some(Self::Reset),
            TransportResult::ResolutionError => Some(Self::Dns),
            TransportResult::TlsError => Some(Self::Tls),
            TransportResult::Blocked => Some(Self::Blocked),
            TransportResult::Unsendable | TransportResult::Aborted => None,
        }
    }
}

impl FromStr for Always {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "timeout" => Ok(Self::Timeout),
            "refused" => Ok(Self::Refused),
            "reset" => Ok(Self::Reset),
            "dns" => Ok(Self::Dns),
            "tls" => Ok(Self::Tls),
            "blocked" => Ok(Self::Blocked),
            status => match status.parse() {
                Ok(status @ 100..=599) => Ok(Self::Status(status)),
                Ok(_) | Err(_) => Err(format!(
                    "\"{text}\" is not an outcome: a status from 100 to 599, timeout, refused, reset, dns, tls or blocked \
                     is expected"
                )),
            },
        }
    }
}

impl fmt::Display for Always {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Timeout => f.write_str("timeout"),
            Self::Refused => f.write_str("refused"),
            Self::Reset => f.write_str("reset"),
            Self::Dns => f.write_str("dns"),
            Self::Tls => f.write_str("tls"),
            Self::Blocked => f.write_str("blocked"),
        }
    }
}

/// An endpoint that always behaves the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// What it does.
    pub always: Always,
    /// The `Retry-After` of its answers.
    pub retry_after: Option<String>,
}

impl Endpoint {
    /// One exchange with it, started at this time.
    pub(super) fn exchange(&self, subscription: &Subscription, started_ms: u64) -> Exchange {
        let retry_after = self.retry_after.clone();
        let result = match self.always {
            Always::Status(status) => {
                TransportResult::Answered { status, retry_after, body: Vec::new() }
            }
            Always::Timeout => {
                let duration_ms = subscription.destination.response_timeout_ms;
                return Exchange::new(TransportResult::TimedOut, started_ms, duration_ms);
            }
            Always::Refused | Always::Reset => TransportResult::SocketError,
            Always::Dns => TransportResult::ResolutionError,
            Always::Tls => TransportResult::TlsError,
            Always::Blocked => TransportResult::Blocked,
        };
        Exchange::new(result, started_ms, 0)
    }
}
