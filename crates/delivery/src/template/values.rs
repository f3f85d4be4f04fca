//! The values of one request.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::budget::Budget;
use super::expression::Variable;
use super::value::Value;
use crate::time::moment::rfc3339;

/// The subscription that sends the request: `subscription.namespace`, `subscription.topic` and `subscription.name`.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// `subscription.namespace`.
    pub namespace: &'a str,
    /// `subscription.topic`.
    pub topic: &'a str,
    /// `subscription.name`.
    pub name: &'a str,
}

/// The attempt that sends the request: `attempt.number`, `attempt.deliveryid` and `attempt.time`.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// Its number, from 1.
    pub number: u32,
    /// The id of the delivery; of a batch its `webhook-id`.
    pub delivery_id: &'a str,
    /// When it begins; templates read it as RFC 3339.
    pub time_ms: u64,
}

/// The values that the expressions of one request read, and the fuel that all its templates share. Events are `CloudEvents`
/// in JSON.
pub struct Values {
    events: Json,
    is_batch: bool,
    subscription: Json,
    attempt: Json,
    secrets: BTreeMap<String, String>,
    budget: Budget,
}

impl Values {
    /// The values of a request with one event: `event` is that event, and `events` is a list of it.
    #[must_use]
    pub fn of_event(event: Json, origin: Origin<'_>, attempt: Attempt<'_>) -> Self {
        Self { is_batch: false, ..Self::of_batch(vec![event], origin, attempt) }
    }

    /// The values of a request of a subscription that batches: `events` is the list, and `event` does not exist, even if
    /// there is only one. Otherwise a template would work until the first larger batch.
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

    /// Adds the secrets by the names that templates use.
    #[must_use]
    pub fn with_secrets(mut self, secrets: BTreeMap<String, String>) -> Self {
        self.secrets = secrets;
        self
    }

    /// The fuel that is left for the request.
    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The value of a name.
    pub(super) fn variable(&self, variable: Variable) -> Value<'_> {
        match variable {
            Variable::Event if self.is_batch => Value::Undefined,
            Variable::Event => self.events.get(0).map_or(Value::Undefined, Value::of),
            Variable::Events => Value::of(&self.events),
            Variable::Subscription => Value::of(&self.subscription),
            Variable::Attempt => Value::of(&self.attempt),
        }
    }

    /// The text of a secret; `None` if it was not looked up.
    pub(super) fn secret(&self, name: &str) -> Option<&str> {
        self.secrets.get(name).map(String::as_str)
    }
}
