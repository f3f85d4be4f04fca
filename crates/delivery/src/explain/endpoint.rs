//! An endpoint that always behaves the same.
//!
//! Separate because two explanations ask it: the life of one delivery, and the probation of its destination.

use std::str::FromStr;

use crate::delivery::outcome::{Exchange, NoResponse, Outcome, OutcomeName, TransportResult};
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
    /// No attempt gets that far: something of ours is missing, such as a secret.
    Aborted,
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

impl TryFrom<OutcomeName> for Always {
    type Error = String;

    /// An endpoint that always causes this outcome. A word stands for one of its statuses: `Busy` for 503.
    fn try_from(name: OutcomeName) -> Result<Self, String> {
        Ok(match name {
            OutcomeName::Status(status) => Self::Status(status),
            OutcomeName::NoResponse(word) => Self::from(word),
            OutcomeName::Word(outcome) => match outcome {
                Outcome::Success => Self::Status(200),
                Outcome::NotFound => Self::Status(404),
                Outcome::Unauthorized => Self::Status(401),
                Outcome::Forbidden => Self::Status(403),
                Outcome::BadRequest => Self::Status(400),
                Outcome::PayloadTooLarge => Self::Status(413),
                Outcome::TimedOut => Self::Timeout,
                Outcome::Busy => Self::Status(503),
                Outcome::GenericError => Self::Status(500),
                Outcome::SocketError => Self::Reset,
                Outcome::ResolutionError => Self::Dns,
                Outcome::TlsError => Self::Tls,
                Outcome::Blocked => Self::Blocked,
                Outcome::Aborted => Self::Aborted,
                Outcome::Probation => {
                    return Err(format!("{outcome} is no outcome of an attempt: none is made"));
                }
            },
        })
    }
}

impl From<NoResponse> for Always {
    fn from(word: NoResponse) -> Self {
        match word {
            NoResponse::Timeout => Self::Timeout,
            NoResponse::Refused => Self::Refused,
            NoResponse::Reset => Self::Reset,
            NoResponse::Dns => Self::Dns,
            NoResponse::Tls => Self::Tls,
            NoResponse::Blocked => Self::Blocked,
        }
    }
}

impl FromStr for Always {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<OutcomeName>()?.try_into()
    }
}

impl std::fmt::Display for Always {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Timeout => f.write_str("timeout"),
            Self::Refused => f.write_str("refused"),
            Self::Reset => f.write_str("reset"),
            Self::Dns => f.write_str("dns"),
            Self::Tls => f.write_str("tls"),
            Self::Blocked => f.write_str("blocked"),
            Self::Aborted => Outcome::Aborted.fmt(f),
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
            Always::Aborted => TransportResult::Aborted,
        };
        Exchange::new(result, started_ms, 0)
    }
}
