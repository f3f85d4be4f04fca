//! Derives the `webhook-id` of a request, with which receivers detect duplicates.

use uuid::Uuid;

use crate::delivery::DELIVERY_NAMESPACE;

/// Returns the `webhook-id` of a request. It is the id of the only delivery, or an id that is
/// derived from the ids of several deliveries. Every attempt with the same deliveries has the same
/// id.
#[must_use]
pub fn webhook_id(deliveries: &[Uuid]) -> Uuid {
    if let [delivery] = deliveries {
        return *delivery;
    }
    let mut ids: Vec<String> = deliveries.iter().map(ToString::to_string).collect();
    // The ids are sorted, because the order in a batch is that of arrival and must not change the
    // result.
    ids.sort_unstable();
    Uuid::new_v5(&DELIVERY_NAMESPACE, ids.join("\n").as_bytes())
}
