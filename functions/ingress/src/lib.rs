//! ingress: publishes the events of HTTP requests to the events queue.
//!
//! This file is the flow of a request, top to bottom: **read → grant a handshake → check the key →
//! route → decode → publish → answer**. The rules of each step are in [`delivery::publish`], which
//! the ingress of `lastmile dev` uses too.
//!
//! A request succeeds only after the queue has accepted its message. If a client repeats a failed
//! request, no event is lost, but the events may be published twice. One request is one message, so
//! its events are never published in part.
//!
//! The function reads no subscriptions. An event for a missing topic becomes a dead letter, as with
//! any publisher.

#![cfg_attr(not(test), deny(clippy::string_slice))] // slicing untrusted text may split a character and panic

pub mod invocation;

use std::sync::atomic::{AtomicU64, Ordering};

use adapters::telemetry;
use delivery::event::Input;
use delivery::ports::{IngressPorts, PublishEvents as _, PublisherKeys as _};
use delivery::publish::{
    self, AllowedOrigins, DefaultTopic, HttpRequest, KnownKeys, Refusal, ShownKeys,
};
use delivery::subscription::name::TopicName;
use delivery::subscription::secret::SecretName;

use crate::invocation::{Invocation, Response};

/// Minimum interval between log lines about unreadable keys.
const REPORTED_EVERY_MS: u64 = 60_000;

/// The ingress function, generic over its ports.
#[derive(Debug)]
pub struct Ingress<P> {
    ports: P,
    default_topic: DefaultTopic,
    keys: Vec<SecretName>,
    origins: AllowedOrigins,
    /// Time of the last log line about unreadable keys.
    reported_ms: AtomicU64,
}

impl<P: IngressPorts> Ingress<P> {
    /// Creates the function. `default_topic` is for requests that name no topic; `keys` are the
    /// names of the accepted keys. Without keys, the function assumes that IAM has checked the
    /// caller.
    pub fn new(ports: P, default_topic: Option<TopicName>, keys: Vec<SecretName>) -> Self {
        let default_topic = default_topic.map(Into::into).unwrap_or_default();
        let (origins, reported_ms) = (AllowedOrigins::default(), AtomicU64::new(0));
        Self { ports, default_topic, keys, origins, reported_ms }
    }

    /// Sets the senders whose webhook handshakes are granted.
    #[must_use]
    pub fn allowing(self, origins: AllowedOrigins) -> Self {
        Self { origins, ..self }
    }

    /// Handles one HTTP request.
    pub async fn handle(&self, invocation: &Invocation) -> Response {
        match self.publish(invocation).await {
            Ok(response) => response,
            Err(refusal) => {
                telemetry::request_refused(refusal.status);
                Response::of_refusal(&refusal)
            }
        }
    }

    async fn publish(&self, invocation: &Invocation) -> Result<Response, Refusal> {
        let (headers, body) = (invocation.headers(), invocation.body()?);
        let request = HttpRequest {
            method: invocation.method(),
            path: invocation.path(),
            query: invocation.query(),
            headers: &headers,
            body: &body,
        };
        // A handshake or validation for a path that accepts no events is refused, like an event.
        if let Some(granted) = publish::handshake(&request, &self.origins)? {
            publish::route(&request, &self.default_topic)?;
            return Ok(Response::granted(granted));
        }
        if let Some(answer) = publish::validation_response(&request) {
            publish::route(&request, &self.default_topic)?;
            return Ok(Response::json(200, answer));
        }
        self.check_key(&request).await?;
        let route = publish::route(&request, &self.default_topic)?;
        // Only dispatch knows the input format of the topic.
        let message = publish::message(&request, &route, Input::Auto, self.ports.now_ms())?;
        let sent = self.ports.events().publish(&message.topic, &message.body).await;
        let id = sent.map_err(|error| {
            telemetry::request_unpublished(&message.topic, &error);
            Refusal::unpublished(&error)
        })?;
        telemetry::request_published(&message.topic, &id, message.events, message.body.len());
        Ok(Response::json(route.status, route.answer(&id, message.events)))
    }

    async fn check_key(&self, request: &HttpRequest<'_>) -> Result<(), Refusal> {
        if self.keys.is_empty() {
            return Ok(());
        }
        // Checked before the keys are read, so that a request without a key causes no call to a
        // secret store.
        let shown = ShownKeys::read(request)?;
        let now_ms = self.ports.now_ms();
        let (mut read, mut problems) = (Vec::new(), Vec::new());
        for key in self.ports.keys().publisher_keys(&self.keys).await {
            match key {
                Ok(key) => read.push(key),
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() && self.is_report_due(now_ms) {
            problems.iter().for_each(telemetry::key_unreadable);
        }
        let keys = KnownKeys { read: &read, others: !problems.is_empty() };
        publish::check_key(&shown, keys, now_ms)
    }

    /// True if unreadable keys should be logged now. The interval prevents a log line for every
    /// request.
    fn is_report_due(&self, now_ms: u64) -> bool {
        let before_ms = self.reported_ms.load(Ordering::Relaxed);
        let is_due = now_ms.abs_diff(before_ms) >= REPORTED_EVERY_MS;
        if is_due {
            self.reported_ms.store(now_ms, Ordering::Relaxed);
        }
        is_due
    }
}
