//! `_destinations/<owner>.json`: the addresses of references that an owner mapped.
//!
//! Separate from the settings because no function reads it: a subscription has its address beside its reference. Files that
//! are applied may use what others mapped.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::settings::{DeploymentObject, VERSION};
use crate::native::API_VERSION;

/// The addresses that one owner mapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DestinationsObject {
    v: u64,
    /// Addresses by reference, as files have them.
    #[serde(default)]
    pub destinations: BTreeMap<String, String>,
}

impl DestinationsObject {
    /// The addresses as a document that can be applied; `None` without any.
    #[must_use]
    pub fn document(&self) -> Option<Json> {
        let spec: Map<String, Json> =
            self.destinations.iter().map(|(key, text)| (key.clone(), entry(text))).collect();
        (!spec.is_empty())
            .then(|| json!({ "apiVersion": API_VERSION, "kind": "Destinations", "spec": spec }))
    }
}

/// An entry as files have it: an address, or JSON with more than that.
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
