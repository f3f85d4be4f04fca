//! `SharedDocuments`: a document is read with its version, and replaced only if that is still the newest.

use adapters::shared_documents::DocumentStore;
use adapters::storage::Storage;
use delivery::ports::{SharedDocument, SharedDocuments as _};

use crate::cloud::Cloud;

const KEY: &str = "_destinations/d.json";

async fn replaces_only_what_it_has_seen(storage: Storage) {
    let store = DocumentStore(storage);
    let read = async || store.shared(KEY).await.expect("storage can be reached");
    let replace = async |text: &str, version: Option<&str>| {
        let replaced = store.replace_shared(KEY, text.as_bytes().to_vec(), version).await;
        replaced.expect("storage can be reached")
    };
    assert_eq!(read().await, None);
    assert!(replace("first", None).await);
    assert!(!replace("another first", None).await);
    let SharedDocument { bytes, version } = read().await.expect("it is there");
    assert_eq!(bytes, b"first");
    assert!(replace("second", Some(&version)).await);
    assert!(!replace("third", Some(&version)).await);
    assert_eq!(read().await.map(|document| document.bytes), Some(b"second".to_vec()));
}

#[tokio::test]
async fn of_a_folder_and_of_a_bucket_only_the_newest_version_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    replaces_only_what_it_has_seen(Storage::folder(folder.path())).await;
    let cloud = Cloud::start().await;
    replaces_only_what_it_has_seen(Storage::bucket(cloud.s3.clone(), "config")).await;
}
