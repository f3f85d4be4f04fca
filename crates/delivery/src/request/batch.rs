//! The key by which deliveries may share a request.
//!
//! Separate because this is asked of one delivery at a time, before any request is composed.

use std::sync::Arc;

use super::body::{Form, Part, part};
use crate::delivery::Delivery;
use crate::subscription::Subscription;
use crate::subscription::header::Value;
use crate::subscription::secret::Keyring;

/// What deliveries of a subscription need to have in common to share a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchKey {
    form: Form,
    headers: Vec<(String, String)>,
}

/// The key by which a delivery may share a request, and its bytes in the body; `None` when it
/// cannot share one.
#[must_use]
pub fn batch_key(subscription: &Subscription, delivery: &Delivery) -> Option<(BatchKey, u64)> {
    let (form, text) = if subscription.destination.has_body() {
        // A template makes the body, whatever form the events have.
        (Form::Json, Arc::clone(delivery.event.text()))
    } else {
        let Part::Element(form, text) = part(subscription, delivery).ok()? else { return None };
        (form, text)
    };
    let headers = subscription.destination.headers.iter();
    let dynamic = headers.filter(|header| matches!(header.value, Value::Path(_)));
    // Only values from the event are resolved here, and those need no secret.
    let (no_secrets, mut dynamic_headers) = (Keyring::default(), Vec::new());
    for header in dynamic {
        let value = header.value(&delivery.event, &no_secrets, None).ok()?;
        dynamic_headers.extend(value.map(|value| (header.name.clone(), value.into_owned())));
    }
    Some((BatchKey { form, headers: dynamic_headers }, text.len() as u64))
}
