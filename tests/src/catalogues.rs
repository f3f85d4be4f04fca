//! Catalogues as `lastmile apply` writes them.

use std::convert::Infallible;
use std::future::ready;

use adapters::live_catalogue::entries::{DEPLOYMENT, entries_of, mark};
use adapters::live_catalogue::objects::CatalogueObjects;
use adapters::machine::Machine;
use adapters::storage::StoredObject;
use catalogue::{Changes, Namespace, NodeCache};
use delivery::manifest::{self, Source};

/// Adds the subscriptions of this text, or replaces those of the same names.
///
/// # Panics
/// When the text has errors, or the catalogue cannot be written.
pub async fn apply(folder: &StoredObject, text: &str) {
    let read = manifest::read(&[Source { name: "test", text }]);
    let read = read.into_result().expect("the file is right");
    let (objects, nodes) = (CatalogueObjects::below(folder), NodeCache::new(1_000_000));
    let mut all = entries_of("test", &read);
    all.entry(DEPLOYMENT.to_owned()).or_default().extend([mark()]);
    for (name, entries) in all {
        let mut changes = Changes::default();
        for (key, value) in entries {
            changes.put(key, value);
        }
        let change = |_| ready(Ok::<_, Infallible>(changes.clone()));
        let namespace = Namespace::new(&objects, &nodes, &name);
        namespace.commit(&Machine, "test", change).await.expect("a commit");
    }
}
