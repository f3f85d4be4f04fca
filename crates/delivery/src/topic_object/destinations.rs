//! [`DestinationsObject`]: the stored object `_destinations/<owner>.json` with the addresses to
//! which an owner mapped references.
//!
//! This module is separate from the settings, because no Lambda function reads this object: a
//! stored subscription has its address beside its reference. Applied files may use the mappings of
//! other owners.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::settings::{DeploymentObject, VERSION};
use crate::native::API_VERSION;

/// The object with the addresses to which one owner mapped references.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DestinationsObject {
    v: u64,
    /// Addresses, keyed by the references that name them. An entry with fields besides the address
    /// is stored as JSON.
    #[serde(default)]
    pub destinations: BTreeMap<String, String>,
}

impl DestinationsObject {
    /// Returns the addresses as a Destinations document; `None` if there are none.
    #[must_use]
    pub fn document(&self) -> Option<Json> {
        let spec: Map<String, Json> =
            self.destinations.iter().map(|(key, text)| (key.clone(), entry(text))).collect();
        (!spec.is_empty())
            .then(|| json!({ "apiVersion": API_VERSION, "kind": "Destinations", "spec": spec }))
    }
}

/// Returns an entry as documents state it: an address, or a mapping with additional fields.
fn entry(text: &str) -> Json {
    let whole = serde_json::from_str::<Map<String, Json>>(text);
    whole.map_or_else(|_| Json::from(text), Json::Object)
}

impl Default for DestinationsObject {
    fn default() -> Self {
        Self { v: VERSION, destinations: BTreeMap::new() }
    }
}

impl DeploymentObject for DestinationsObject {
    fn version(&self) -> u64 {
        self.v
    }
}
