//! Models an endpoint that always behaves in the same way.
//!
//! This module is separate because two explanations use it: the attempts of a delivery, and the
//! probation of its destination.

use std::str::FromStr;

use crate::delivery::outcome::{Exchange, NoResponse, Outcome, OutcomeName, TransportResult};
use crate::subscription::Subscription;

/// The reaction of an endpoint to every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Always {
    /// The endpoint responds with this status.
    Status(u16),
    /// The endpoint does not respond within the response timeout.
    Timeout,
    /// The endpoint refuses the connection.
    Refused,
    /// The endpoint resets the connection.
    Reset,
    /// The host name of the endpoint does not resolve.
    Dns,
    /// The TLS certificate of the endpoint is refused.
    Tls,
    /// The endpoint has an address to which no requests are allowed, such as a private one.
    Blocked,
    /// No request is sent to the endpoint, because something is missing on our side, such as a
    /// secret.
    Aborted,
}

impl Always {
    /// Returns the behaviour that this exchange shows; `None` if a problem on our side prevented
    /// the request.
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

    /// Returns the behaviour that causes this outcome. For an outcome with several statuses, it
    /// returns one of them, such as 503 for `Busy`.
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
                    return Err(format!(
                        "{outcome} cannot result from an attempt, because no request is sent"
                    ));
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

/// An endpoint that always behaves in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The reaction of the endpoint to every request.
    pub always: Always,
    /// The `Retry-After` header of its responses, if they have one.
    pub retry_after: Option<String>,
}

impl Endpoint {
    /// Returns the exchange of one request to this endpoint. The request starts at `started_ms`.
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
