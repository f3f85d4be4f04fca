//! The id of a request, by which receivers recognise a repetition.

use uuid::Uuid;

use crate::delivery::DELIVERY_NAMESPACE;

/// The `webhook-id` of a request: the id of its delivery, or one that is made of the ids of several. The same in every attempt.
#[must_use]
pub fn webhook_id(deliveries: &[Uuid]) -> Uuid {
    if let [one] = deliveries {
        return *one;
    }
    let mut ids: Vec<String> = deliveries.iter().map(ToString::to_string).collect();
    // The order of a batch is that of arrival, and must not change its id.
    ids.sort_unstable();
    Uuid::new_v5(&DELIVERY_NAMESPACE, ids.join("\n").as_bytes())
}
