//! Catalogues as `lastmile apply` writes them.

use std::convert::Infallible;
use std::future::ready;

use adapters::live_catalogue::entries::{DEPLOYMENT, entries_of, mark};
use adapters::live_catalogue::objects::CatalogueObjects;
use adapters::machine::Machine;
use adapters::storage::StoredObject;
use catalogue::{Changes, Namespace, NodeCache};
use dialects::Source;

/// Adds the subscriptions of this text, or replaces those of the same names.
///
/// # Panics
/// When the text has errors, or the catalogue cannot be written.
pub async fn apply(folder: &StoredObject, text: &str) {
    let read = dialects::read(&[Source { name: "test", text }]);
    let read = read.into_result().expect("the file is right");
    let mut all = entries_of("test", &read);
    all.entry(DEPLOYMENT.to_owned()).or_default().extend([mark()]);
    for (name, entries) in all {
        let mut changes = Changes::default();
        for (key, value) in entries {
            changes.put(key, value);
        }
        commit(folder, &name, &changes).await;
    }
}

/// Makes these changes of a namespace.
///
/// # Panics
/// When the catalogue cannot be written.
pub async fn commit(folder: &StoredObject, namespace: &str, changes: &Changes) {
    let (objects, nodes) = (CatalogueObjects::below(folder), NodeCache::new(1_000_000));
    let change = |_| ready(Ok::<_, Infallible>(changes.clone()));
    let namespace = Namespace::new(&objects, &nodes, namespace);
    namespace.commit(&Machine, "test", change).await.expect("a commit");
}

/// The value of the first entry of this text, in the order of the keys: of its topic, if it describes one.
///
/// # Panics
/// When the text has errors or no entry.
#[must_use]
pub fn value(text: &str) -> String {
    let read = dialects::read(&[Source { name: "test", text }]);
    let read = read.into_result().expect("the file is right");
    let all = entries_of("test", &read).into_values().flatten();
    all.map(|(_, value)| value).next().expect("an entry")
}
