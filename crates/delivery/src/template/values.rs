//! [`Values`]: the variables and secrets that the templates of one request can use.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::budget::Budget;
use super::expression::Variable;
use super::value::Value;
use crate::time::moment::rfc3339;

/// The subscription that sends the request. Templates read it as the variable `subscription`.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The value of `subscription.namespace`.
    pub namespace: &'a str,
    /// The value of `subscription.topic`.
    pub topic: &'a str,
    /// The value of `subscription.name`.
    pub name: &'a str,
}

/// The attempt that sends the request. Templates read it as the variable `attempt`.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The value of `attempt.number`, counted from 1.
    pub number: u32,
    /// The value of `attempt.deliveryid`: the id of the delivery, or the `webhook-id` of a batch.
    pub delivery_id: &'a str,
    /// The start of the attempt in milliseconds since 1970. Templates read it as `attempt.time`, in
    /// RFC 3339.
    pub time_ms: u64,
}

/// The variables and secrets for the expressions of one request, and the fuel that all its
/// templates share. Events are CloudEvents in JSON.
pub struct Values {
    events: Json,
    is_batch: bool,
    subscription: Json,
    attempt: Json,
    secrets: BTreeMap<String, String>,
    budget: Budget,
}

impl Values {
    /// Returns the values for a request with one event. The variable `event` is that event, and
    /// `events` is a list that contains only that event.
    #[must_use]
    pub fn of_event(event: Json, origin: Origin<'_>, attempt: Attempt<'_>) -> Self {
        Self { is_batch: false, ..Self::of_batch(vec![event], origin, attempt) }
    }

    /// Returns the values for a request of a subscription that batches. The variable `events` is
    /// the list of the events. The variable `event` does not exist, even in a batch of one event.
    /// Otherwise, a template that uses `event` would fail only in the first larger batch.
    #[must_use]
    pub fn of_batch(events: Vec<Json>, origin: Origin<'_>, attempt: Attempt<'_>) -> Self {
        let Origin { namespace, topic, name } = origin;
        let Attempt { number, delivery_id, time_ms } = attempt;
        Self {
            events: Json::Array(events),
            is_batch: true,
            subscription: json!({ "namespace": namespace, "topic": topic, "name": name }),
            attempt: json!({ "number": number, "deliveryid": delivery_id, "time": rfc3339(time_ms) }),
            secrets: BTreeMap::new(),
            budget: Budget::new(),
        }
    }

    /// Adds the values of secrets, by their names in templates.
    #[must_use]
    pub fn with_secrets(mut self, secrets: BTreeMap<String, String>) -> Self {
        self.secrets = secrets;
        self
    }

    /// Returns the fuel that is left for the templates of the request.
    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns the value of a variable.
    pub(super) fn variable(&self, variable: Variable) -> Value<'_> {
        match variable {
            Variable::Event if self.is_batch => Value::Undefined,
            Variable::Event => self.events.get(0).map_or(Value::Undefined, Value::from_json),
            Variable::Events => Value::from_json(&self.events),
            Variable::Subscription => Value::from_json(&self.subscription),
            Variable::Attempt => Value::from_json(&self.attempt),
        }
    }

    /// Returns the value of a secret; `None` if it was not loaded.
    pub(super) fn secret(&self, name: &str) -> Option<&str> {
        self.secrets.get(name).map(String::as_str)
    }
}
