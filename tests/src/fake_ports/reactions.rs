//! Reactions of a fake destination to requests: in order, with a delay, and perhaps after the
//! timeout.

use std::future::pending;

use delivery::delivery::outcome::{Content, Exchange, TransportResult};
use delivery::ports::Late;
use delivery::request::Request;

use crate::virtual_clock::VirtualClock;

/// The reaction to one request.
#[derive(Debug, Clone)]
pub struct Reaction {
    result: TransportResult,
    /// The time until the sender has a result.
    takes_ms: u64,
    content: Option<Content>,
    /// The late response, with its delay after the start of the request.
    late: Option<(u64, Box<Reaction>)>,
}

/// A result with this status and no body.
pub(super) fn answered(status: u16) -> TransportResult {
    TransportResult::Answered { status, retry_after: None, body: Vec::new() }
}

/// A response with this status.
#[must_use]
pub fn answers(status: u16) -> Reaction {
    let result = answered(status);
    Reaction { result, takes_ms: 0, content: None, late: None }
}

/// A response that carries a structured CloudEvent.
#[must_use]
pub fn replies(event: &str) -> Reaction {
    let content_type = Some("application/cloudevents+json".to_owned());
    let content = Some(Content { content_type, whole: true, ..Content::default() });
    Reaction { content, ..answers(200) }.with_body(event)
}

/// A timeout after this long, without a late response.
#[must_use]
pub fn times_out_after(takes_ms: u64) -> Reaction {
    Reaction { result: TransportResult::TimedOut, takes_ms, ..answers(0) }
}

/// A connection that breaks off after this long.
#[must_use]
pub fn breaks_off_after(takes_ms: u64) -> Reaction {
    Reaction { result: TransportResult::SocketError, takes_ms, ..answers(0) }
}

impl Reaction {
    /// Delays the result by this time.
    #[must_use]
    pub fn after_ms(self, takes_ms: u64) -> Self {
        Self { takes_ms, ..self }
    }

    /// Adds this `Retry-After`.
    #[must_use]
    pub fn with_retry_after(mut self, text: &str) -> Self {
        if let TransportResult::Answered { retry_after, .. } = &mut self.result {
            *retry_after = Some(text.to_owned());
        }
        self
    }

    /// Replaces the body.
    #[must_use]
    pub fn with_body(mut self, text: &str) -> Self {
        if let TransportResult::Answered { body, .. } = &mut self.result {
            *body = text.as_bytes().to_vec();
        }
        self
    }

    /// Adds these headers.
    #[must_use]
    pub fn with_headers(mut self, headers: &[(&str, &str)]) -> Self {
        let owned = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let content = Content { headers: owned.collect(), whole: true, ..Content::default() };
        self.content = Some(content);
        self
    }

    /// Adds a late response, at this time after the start of the request.
    #[must_use]
    pub fn and_late(self, after_ms: u64, late: Self) -> Self {
        Self { late: Some((after_ms, Box::new(late))), ..self }
    }

    /// Returns the result for the sender, and the late response if it has one.
    pub(super) async fn run(self, clock: VirtualClock) -> (Exchange, Option<Late>) {
        let started_ms = clock.now_ms();
        clock.sleep(self.takes_ms).await;
        (self.exchange(started_ms), self.late(started_ms, clock))
    }

    fn exchange(&self, started_ms: u64) -> Exchange {
        Exchange {
            content: self.content.clone(),
            ..Exchange::new(self.result.clone(), started_ms, self.takes_ms)
        }
    }

    fn late(self, started_ms: u64, clock: VirtualClock) -> Option<Late> {
        if self.result != TransportResult::TimedOut {
            return None;
        }
        let Some((after_ms, late)) = self.late else { return Some(Box::pin(pending())) };
        Some(Box::pin(async move {
            clock.sleep((started_ms + after_ms).saturating_sub(clock.now_ms())).await;
            Exchange { duration_ms: after_ms, ..late.exchange(started_ms) }
        }))
    }
}

/// All reactions of a test, each with the text that selects its requests.
#[derive(Default)]
pub(super) struct Reactions(Vec<(String, Vec<Reaction>)>);

impl Reactions {
    pub(super) fn add(&mut self, text: &str, reactions: &[Reaction]) {
        self.0.push((text.to_owned(), reactions.to_vec()));
    }

    /// Returns the reaction to this request. The first text that the request contains decides.
    pub(super) fn next(&mut self, request: &Request) -> Option<Reaction> {
        let body = String::from_utf8_lossy(&request.body);
        let contains = |text: &str| request.url.as_str().contains(text) || body.contains(text);
        let (_, remaining) = self.0.iter_mut().find(|(text, _)| contains(text))?;
        Some(if remaining.len() > 1 { remaining.remove(0) } else { remaining[0].clone() })
    }
}
