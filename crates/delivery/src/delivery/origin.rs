//! The published record that a delivery comes from, and the id that follows from it.
//!
//! Separate because ids depend on nothing else of a delivery: a record that is processed twice yields the same
//! ones.

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};
use uuid::{Builder, Uuid, uuid};

use crate::subscription::name::{SubscriptionName, TopicName};

/// The namespace of all ids of deliveries (UUIDv5).
pub const DELIVERY_NAMESPACE: Uuid = uuid!("6f1c2a9e-5d0b-5c6e-9a53-1f0c6c8d7b42");

/// The published record and the event's index in it.
///
/// Its fields are those of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "struct OriginV1")]
pub struct Origin {
    /// The SQS message id of the published record.
    pub message: String,
    /// The event's index in the record's array; 0 for a single event.
    pub index: u32,
}

impl Origin {
    /// The origin of a reply or a dead letter of a delivery. The same delivery and the same `cause` have the same origin, so a repetition
    /// leads to the same ids. The cause is the text of the reply, or a word for the dead letter.
    #[must_use]
    pub fn made_by(delivery: Uuid, cause: &str) -> Self {
        Self { message: Uuid::new_v5(&delivery, cause.as_bytes()).to_string(), index: 0 }
    }
}

/// The id of a delivery: UUIDv5 of subscription, published record and index, separated by line
/// feeds (which no name contains).
#[must_use]
pub fn id_of(subscription: &SubscriptionName, origin: &Origin) -> Uuid {
    // Not formatted, and not by `Uuid::new_v5`, which computes the same without the processor's
    // instructions for it: this runs for every event.
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
