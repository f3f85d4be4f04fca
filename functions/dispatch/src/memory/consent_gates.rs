//! The validation state of each endpoint, in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use delivery::machine::consent::{ConsentKey, Pace};

/// The endpoints that this process validates.
#[derive(Debug)]
pub(crate) struct ConsentGates {
    /// How many functions share an allowed rate.
    pub(crate) functions: u32,
    // The inner lock is held during a request, the outer one only for a lookup.
    gates: Mutex<HashMap<ConsentKey, Arc<tokio::sync::Mutex<ConsentGate>>>>,
}

/// One endpoint.
#[derive(Debug, Default)]
pub(crate) struct ConsentGate {
    /// Until when it is not validated again, and how long that pause is.
    pub(crate) closed: Option<(u64, u64)>,
    /// Until when its stored consent is not read again, because the store failed.
    pub(crate) unknown_until_ms: u64,
    pub(crate) pace: Pace,
}

impl ConsentGates {
    /// No endpoint validated yet; so many functions share each rate.
    pub(crate) fn shared_by(functions: u32) -> Self {
        Self { functions, gates: Mutex::default() }
    }

    /// The gate of this endpoint, to be locked during a validation.
    pub(crate) fn gate(&self, key: &ConsentKey) -> Arc<tokio::sync::Mutex<ConsentGate>> {
        // A panic cannot leave the map half changed, so a poisoned lock is used as it is.
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(gates.entry(key.clone()).or_default())
    }
}
