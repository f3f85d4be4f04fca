//! [`Values`]: the values that the templates of one request use.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::budget::Budget;
use super::expression::Variable;
use super::value::Value;
use crate::time::moment::rfc3339;

/// The subscription that sends the request; the variable `subscription` in templates.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The member `subscription.namespace`.
    pub namespace: &'a str,
    /// The member `subscription.topic`.
    pub topic: &'a str,
    /// The member `subscription.name`.
    pub name: &'a str,
}

/// The attempt that sends the request; the variable `attempt` in templates.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The member `attempt.number`, from 1.
    pub number: u32,
    /// The member `attempt.deliveryid`: the id of the delivery, or the `webhook-id` of a batch.
    pub delivery_id: &'a str,
    /// The member `attempt.time`: the start of the attempt, which templates read in RFC 3339.
    pub time_ms: u64,
}

/// The values that expressions of one request use, and the fuel that all its templates share.
/// Events are CloudEvents in JSON.
pub struct Values {
    events: Json,
    is_batch: bool,
    subscription: Json,
    attempt: Json,
    secrets: BTreeMap<String, String>,
    budget: Budget,
}

impl Values {
    /// Returns the values of a request with one event. `event` is that event, and `events` is a
    /// list with it.
    #[must_use]
    pub fn of_event(event: Json, origin: Origin<'_>, attempt: Attempt<'_>) -> Self {
        Self { is_batch: false, ..Self::of_batch(vec![event], origin, attempt) }
    }

    /// Returns the values of a request whose subscription batches. `events` is the list. `event`
    /// does not exist, even for a batch of one: otherwise, a template would fail only with the
    /// first larger batch.
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

    /// Adds the secrets by the names in templates.
    #[must_use]
    pub fn with_secrets(mut self, secrets: BTreeMap<String, String>) -> Self {
        self.secrets = secrets;
        self
    }

    /// Returns the remaining fuel of the request.
    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns the value of a variable.
    pub(super) fn variable(&self, variable: Variable) -> Value<'_> {
        match variable {
            Variable::Event if self.is_batch => Value::Undefined,
            Variable::Event => self.events.get(0).map_or(Value::Undefined, Value::of),
            Variable::Events => Value::of(&self.events),
            Variable::Subscription => Value::of(&self.subscription),
            Variable::Attempt => Value::of(&self.attempt),
        }
    }

    /// Returns the text of a secret; `None` if it was not looked up.
    pub(super) fn secret(&self, name: &str) -> Option<&str> {
        self.secrets.get(name).map(String::as_str)
    }
}
