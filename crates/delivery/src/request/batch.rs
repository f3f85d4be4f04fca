//! [`BatchKey`]: the properties that deliveries must share to be sent in one request.
//!
//! This module is separate because the key is computed for each delivery before any request is
//! composed.

use std::sync::Arc;

use super::body::{Form, Part, part};
use crate::delivery::Delivery;
use crate::subscription::Subscription;
use crate::subscription::header::Value;
use crate::subscription::secret::Keyring;

/// The properties that deliveries of a subscription must share to be sent in one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchKey {
    form: Form,
    headers: Vec<(String, String)>,
}

/// Returns the batch key of a delivery, and the size of its event in a request body. Returns `None`
/// if the delivery cannot share a request.
#[must_use]
pub fn batch_key(subscription: &Subscription, delivery: &Delivery) -> Option<(BatchKey, u64)> {
    let (form, text) = if subscription.destination.has_body() {
        // A template builds the body, so the form of the events does not matter.
        (Form::Json, Arc::clone(delivery.event.text()))
    } else {
        let Part::Element(form, text) = part(subscription, delivery).ok()? else { return None };
        (form, text)
    };
    let headers = subscription.destination.headers.iter();
    let dynamic = headers.filter(|header| matches!(header.value, Value::Path(_)));
    // Only values from the event are resolved, which need no secret.
    let (no_secrets, mut dynamic_headers) = (Keyring::default(), Vec::new());
    for header in dynamic {
        let value = header.value(&delivery.event, &no_secrets, None).ok()?;
        dynamic_headers.extend(value.map(|value| (header.name.clone(), value.into_owned())));
    }
    Some((BatchKey { form, headers: dynamic_headers }, text.len() as u64))
}
