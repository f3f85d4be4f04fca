//! The public keys of subscriptions as JSON Web Key Sets, beside the subscriptions of a deployment: what receivers
//! verify asymmetric signatures with, once somebody publishes them.
//!
//! Separate from the subscriptions, which only the functions read. Written before a change is in use, so that no request
//! is signed with a key that nobody can find. A subscription that has lost its keys has an empty set. Does not read a
//! secret: the files state the keys.

use std::collections::BTreeMap;

use adapters::storage::Storage;
use anyhow::Context as _;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::public_key::{PublicKey, key_set, key_set_path};

use crate::output::out;
use crate::text;

/// Writes the key sets that change.
pub(crate) async fn write(
    storage: &Storage,
    before: &Catalogue,
    after: &Catalogue,
) -> anyhow::Result<()> {
    let (before, mut after) = (of(before), of(after));
    for name in before.keys() {
        after.entry(name).or_default();
    }
    for (name, keys) in after.into_iter().filter(|(name, keys)| before.get(name) != Some(keys)) {
        let path = key_set_path(name);
        let written = storage.put(&path, key_set(keys).into_bytes()).await;
        written.with_context(|| format!("{path}, the public keys of {name}, cannot be written"))?;
        let count = text::counted(keys.len() as u64, "public key");
        out(&format!("{path}: {count} of {}\n", text::line(&name.to_string())))?;
    }
    Ok(())
}

/// The subscriptions that have public keys.
fn of(catalogue: &Catalogue) -> BTreeMap<&SubscriptionName, &[PublicKey]> {
    let all = catalogue.subscriptions().map(|of| (&of.name, of.destination.public_keys()));
    all.filter(|(_, keys)| !keys.is_empty()).collect()
}
