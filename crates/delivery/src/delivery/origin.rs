//! [`Origin`]: the published record of a delivery, and the id that is derived from it.
//!
//! This module is separate because ids depend on no other part of a delivery. A record that is
//! processed twice has deliveries with the same ids.

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};
use uuid::{Builder, Uuid, uuid};

use crate::subscription::name::{SubscriptionName, TopicName};

/// UUIDv5 namespace of all delivery ids.
pub const DELIVERY_NAMESPACE: Uuid = uuid!("6f1c2a9e-5d0b-5c6e-9a53-1f0c6c8d7b42");

/// The published record that contains an event, and the index of the event in the record. The field
/// names are part of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "struct OriginV1")]
pub struct Origin {
    /// The SQS message id of the published record.
    pub message: String,
    /// The index of the event in the record's array; 0 for a single event.
    pub index: u32,
}

impl Origin {
    /// Returns the origin of an event that the delivery with this id caused. `cause` is the text of
    /// a reply, or a fixed name for a dead letter. The same delivery and cause always have the same
    /// origin, so a repetition has the same ids.
    #[must_use]
    pub fn made_by(delivery: Uuid, cause: &str) -> Self {
        Self { message: Uuid::new_v5(&delivery, cause.as_bytes()).to_string(), index: 0 }
    }
}

/// Returns the id of a delivery. It is the UUIDv5 of subscription, published record and index,
/// separated by line feeds, which names cannot contain.
#[must_use]
pub fn id_of(subscription: &SubscriptionName, origin: &Origin) -> Uuid {
    // Hashes the parts directly, because this runs for every event. `Uuid::new_v5` returns the same
    // id, but without the processor's SHA instructions, and formatting needs an allocation.
    let SubscriptionName { topic: TopicName { namespace, topic }, name } = subscription;
    let index = origin.index.to_string();
    let parts = [namespace, "/", topic, "/", name, "\n", &origin.message, "\n", &index];
    let of_namespace = Sha1::new_with_prefix(DELIVERY_NAMESPACE);
    let hash = parts.into_iter().fold(of_namespace, Sha1::chain_update).finalize();
    let first = std::array::from_fn(|index| hash[index]);
    Builder::from_sha1_bytes(first).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_a_name_based_uuid() {
        let subscription: SubscriptionName = "shop/orders/billing".parse().unwrap();
        for (message, index, text) in [
            ("m1", 0, "shop/orders/billing\nm1\n0".to_owned()),
            (
                &"m".repeat(200),
                u32::MAX,
                format!("shop/orders/billing\n{}\n{}", "m".repeat(200), u32::MAX),
            ),
        ] {
            let origin = Origin { message: message.to_owned(), index };
            let expected = Uuid::new_v5(&DELIVERY_NAMESPACE, text.as_bytes());
            assert_eq!(id_of(&subscription, &origin), expected);
        }
    }
}
