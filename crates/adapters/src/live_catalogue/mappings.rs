//! The addresses of references (`Destinations`) among the entries of the deployment: who applies files may use
//! references that others have mapped. Pure.
//!
//! Separate from the settings because no function reads them: what is stored of a subscription has its address.

use std::collections::BTreeMap;

use catalogue::Entry;
use serde::{Deserialize, Serialize};

use super::entries::{Entries, hashed, is_of_topic, owner_of, read, value};

/// Their topic within the namespace of the deployment.
pub const DESTINATIONS: &str = "destinations";

/// One mapping as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mapping {
    reference: String,
    address: String,
}

/// The address of a reference, and who applied it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// An address as files have it.
    pub address: String,
    /// Who applied it.
    pub owner: String,
}

/// The entries of these addresses by reference, as this owner applies them.
#[must_use]
pub fn mapping_entries(owner: &str, addresses: &BTreeMap<String, String>) -> Entries {
    let entry = |(reference, address): (&String, &String)| {
        let mapping = Mapping { reference: reference.clone(), address: address.clone() };
        let text = serde_json::to_string(&mapping).expect("two texts are JSON");
        (format!("{DESTINATIONS}/{}", hashed(reference)), value(owner, &text))
    };
    addresses.iter().map(entry).collect()
}

/// The mappings among these entries of the deployment, by reference.
///
/// # Errors
/// Which entry cannot be read, and why.
pub fn mappings_of(entries: &[Entry]) -> Result<BTreeMap<String, Mapped>, String> {
    let mapping = |entry: &Entry| {
        let Mapping { reference, address } =
            read(entry, |text| serde_json::from_str::<Mapping>(text))?;
        let owner = owner_of(&entry.value).unwrap_or_default();
        Ok((reference, Mapped { address, owner }))
    };
    entries.iter().filter(|entry| is_of_topic(entry, DESTINATIONS)).map(mapping).collect()
}

#[cfg(test)]
mod tests {
    use super::super::entries::settings_of;
    use super::*;

    #[test]
    fn mappings_are_read_back_and_are_no_settings() {
        let reference = "serving.knative.dev/v1/Service/shop/billing";
        let address = "https://billing.example.com/in?code=c";
        let addresses = BTreeMap::from([(reference.to_owned(), address.to_owned())]);
        let entries: Vec<Entry> = mapping_entries("platform", &addresses)
            .into_iter()
            .map(|(key, value)| Entry { key: key.into(), value: value.into() })
            .collect();
        let mapped = Mapped { address: address.to_owned(), owner: "platform".to_owned() };
        assert_eq!(mappings_of(&entries), Ok(BTreeMap::from([(reference.to_owned(), mapped)])));
        assert!(settings_of(&entries).is_ok_and(|settings| settings == Default::default()));
        let value = value("platform", r#"{"reference":"r","address":"a","more":1}"#).into();
        let unknown = Entry { key: "destinations/x".into(), value };
        assert!(mappings_of(&[unknown]).is_err());
    }
}
