//! Provides the defaults of profiles as native documents.

use std::sync::LazyLock;

use serde_json::Value as Json;

use crate::document::record::Record as _;
use crate::subscription::DeliverySettings;
use crate::subscription::profile::Dialect;

/// Caches the document with the defaults of each profile.
static DEFAULTS: LazyLock<Vec<(Dialect, Json)>> =
    LazyLock::new(|| Dialect::ALL.map(|dialect| (dialect, defaults_of(dialect))).to_vec());

/// Returns the defaults of a profile as a document, without a destination address.
pub(super) fn written_defaults(dialect: Dialect) -> Json {
    let found = DEFAULTS.iter().find(|(listed, _)| *listed == dialect);
    found.map_or_else(|| defaults_of(dialect), |(_, defaults)| defaults.clone())
}

fn defaults_of(dialect: Dialect) -> Json {
    let address = url::Url::parse(NO_ADDRESS).expect("a URL");
    let mut written = Json::Object(DeliverySettings::new(dialect, address).write());
    if let Some(destination) = written["destination"].as_object_mut() {
        destination.remove("url");
    }
    written
}

/// Placeholder address for settings that have none.
pub(super) const NO_ADDRESS: &str = "https://subscriber.invalid/";
