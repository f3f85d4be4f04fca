//! Reads certificate authorities, as documents state them.

use serde_json::{Value as Json, json};

use crate::document::kind::Kind;
use crate::document::reader::Cursor;
use crate::subscription::tls::{CA_BUNDLE_MAX_BYTES, CaBundle};

/// The field type of bundles of certificates in PEM.
pub struct CaBundles;

impl Kind for CaBundles {
    type Value = CaBundle;

    fn read(&self, at: &Cursor<'_>) -> Option<CaBundle> {
        CaBundle::new(at.text()?).map_or_else(|problem| at.refuse(problem), Some)
    }

    fn write(&self, value: &CaBundle) -> Json {
        json!(value.pem())
    }

    fn schema(&self) -> Json {
        json!({ "type": "string", "maxLength": CA_BUNDLE_MAX_BYTES, "pattern": "-----BEGIN CERTIFICATE-----" })
    }

    /// Returns the number of certificates and the beginning of a digest, with which people can
    /// compare bundles.
    fn shown(&self, value: &CaBundle) -> Json {
        json!(value.to_string())
    }
}
