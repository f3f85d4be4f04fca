//! `_destinations/<owner>.json`: the addresses of references that an owner mapped.
//!
//! Separate from the settings because no function reads it: a subscription has its address beside its reference. Files that
//! are applied may use what others mapped.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::settings::{DeploymentObject, VERSION};

/// The addresses that one owner mapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DestinationsObject {
    v: u64,
    /// Addresses by reference, as files have them.
    #[serde(default)]
    pub destinations: BTreeMap<String, String>,
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
