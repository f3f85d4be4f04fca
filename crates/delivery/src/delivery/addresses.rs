//! The addresses of a delivery that the Knative format shows.
//!
//! Separate because they are also a part of version 1 of the wire format.

use serde::{Deserialize, Serialize};

/// The addresses of a delivery with their queries, without credentials.
///
/// Its fields are those of version 1 of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "struct AddressesV1")]
pub struct Addresses {
    /// The subscriber's.
    pub subscriber: String,
    /// Where the request went that failed, or would have gone.
    pub failed: String,
}
