//! Replaces the addresses of references in stored entries.
//!
//! Separate because a mapping has one owner, but entries of any owner may use it. A new address is
//! applied to all these entries, and nothing else in them changes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use delivery::subscription::kinds::address::parsed;
use dialects::comparable;
use serde_json::{Map, Value};

use super::Object;

/// Pairs of JSON pointers into a stored entry: the first to an address, the second to the reference
/// of that address. The entry describes a subscription (with its defaults) or a topic.
const FIELDS: [[&str; 2]; 5] = [
    ["/spec/destination/url", "/spec/destination/reference"],
    ["/spec/reply", "/spec/replyReference"],
    ["/spec/deadLetter/sink", "/spec/deadLetter/reference"],
    ["/defaults/deadLetter/sink", "/defaults/deadLetter/reference"],
    ["/spec/delivery/deadLetter/sink", "/spec/delivery/deadLetter/reference"],
];

/// The address of each reference. The references are normalized, so that they can be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Addresses(BTreeMap<String, String>);

impl Addresses {
    /// Collects the addresses from entries of `Destinations`. Omits entries without a valid
    /// address.
    pub(super) fn from_entries(entries: &BTreeMap<String, String>) -> Self {
        let address = |(reference, entry): (&String, &String)| {
            let address = parsed(&written_address(reference, entry))?.ok()?;
            Some((comparable(reference).into_owned(), address.to_string()))
        };
        Self(entries.iter().filter_map(address).collect())
    }

    /// Replaces the addresses in the entries of a topic.
    pub(super) fn put_into(&self, object: &mut Object) {
        for entry in object.subscriptions.values_mut().chain(&mut object.topic) {
            if let Some(after) = self.applied_to(entry) {
                *entry = Cow::Owned(after);
            }
        }
    }

    /// Counts the entries of a topic whose addresses must be replaced.
    pub(super) fn missing_from(&self, object: &Object) -> usize {
        let entries = object.subscriptions.values().chain(&object.topic);
        entries.filter(|entry| self.applied_to(entry).is_some()).count()
    }

    /// Replaces the addresses in an entry. Returns `None` if nothing changes.
    fn applied_to(&self, entry: &str) -> Option<String> {
        // Parse only entries with a reference. Most have none, and parsing all would take most of
        // the run time.
        if self.0.is_empty() || !(entry.contains("reference") || entry.contains("Reference")) {
            return None;
        }
        let mut document: Value = serde_json::from_str(entry).ok()?;
        let mut is_changed = false;
        for [field, reference] in FIELDS {
            let address = document.pointer(reference).and_then(Value::as_str);
            let Some(address) = address.and_then(|key| self.0.get(&*comparable(key))) else {
                continue;
            };
            if let Some(Value::String(current)) = document.pointer_mut(field)
                && current != address
            {
                current.clone_from(address);
                is_changed = true;
            }
        }
        is_changed.then(|| document.to_string())
    }
}

/// Returns the address in an entry of `Destinations`. If the entry has no `url`, the reference
/// itself is the address.
fn written_address(reference: &str, entry: &str) -> String {
    let Ok(whole) = serde_json::from_str::<Map<String, Value>>(entry) else {
        return entry.to_owned();
    };
    whole.get("url").and_then(Value::as_str).unwrap_or(reference).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(entries: &[(&str, &str)]) -> Addresses {
        let entries = entries.iter().map(|(key, entry)| ((*key).to_owned(), (*entry).to_owned()));
        Addresses::from_entries(&entries.collect())
    }

    #[test]
    fn every_field_that_has_a_reference_gets_its_address_and_nothing_else_changes() {
        let mapped = addresses(&[
            ("crm", r#"{"url":"https://new.test","auth":{}}"#),
            ("bin", "s3://bucket/new"),
            ("/subscriptions/s/topics/t", "https://azure.test/"),
            ("broken", "nowhere"),
        ]);
        for (before, after) in [
            (
                r#"{"owner":"a","spec":{"destination":{"reference":"crm","url":"https://old.test/"},"reply":"https://old.test/"}}"#,
                Some(
                    r#"{"owner":"a","spec":{"destination":{"reference":"crm","url":"https://new.test/"},"reply":"https://old.test/"}}"#,
                ),
            ),
            (
                r#"{"spec":{"reply":"https://old.test/","replyReference":"crm"}}"#,
                Some(r#"{"spec":{"reply":"https://new.test/","replyReference":"crm"}}"#),
            ),
            (
                r#"{"spec":{"delivery":{"deadLetter":{"reference":"bin","sink":"s3://bucket/old"}}}}"#,
                Some(
                    r#"{"spec":{"delivery":{"deadLetter":{"reference":"bin","sink":"s3://bucket/new"}}}}"#,
                ),
            ),
            // Azure ignores the case of its ids.
            (
                r#"{"spec":{"destination":{"reference":"/Subscriptions/S/topics/T","url":"https://old.test/"}}}"#,
                Some(
                    r#"{"spec":{"destination":{"reference":"/Subscriptions/S/topics/T","url":"https://azure.test/"}}}"#,
                ),
            ),
            (r#"{"spec":{"destination":{"reference":"crm","url":"https://new.test/"}}}"#, None),
            (r#"{"spec":{"destination":{"reference":"other","url":"https://old.test/"}}}"#, None),
            (r#"{"spec":{"destination":{"reference":"broken","url":"https://old.test/"}}}"#, None),
            (r#"{"spec":{"destination":{"url":"https://crm.test/reference"}}}"#, None),
            ("damaged reference", None),
        ] {
            assert_eq!(mapped.applied_to(before).as_deref(), after, "{before}");
            assert_eq!(Addresses::default().applied_to(before), None);
        }
    }

    #[test]
    fn an_entry_without_an_address_has_its_reference_as_that() {
        let key = "https://crm.test/in";
        assert_eq!(written_address(key, r#"{"maxPerSecond":5}"#), key);
        assert_eq!(written_address("crm", key), key);
    }
}
