//! [`Addresses`]: the addresses of a delivery that the Knative format shows.
//!
//! This module is separate because the addresses are also part of version 1 of the wire format.

use serde::{Deserialize, Serialize};

/// The addresses of a delivery. They include queries, but neither user info nor the values of query
/// parameters. The field names are part of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "struct AddressesV1")]
pub struct Addresses {
    /// The address of the subscriber.
    pub subscriber: String,
    /// The address to which the failed request was sent, or would have been sent.
    pub failed: String,
}
