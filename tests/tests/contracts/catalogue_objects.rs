//! `Objects`, the storage of a catalogue: what is listed is what is there, of this catalogue only.

use adapters::live_catalogue::objects::CatalogueObjects;
use catalogue::{Objects as _, StoreError};

use crate::by_need::Fixture;

async fn keys(of: &CatalogueObjects, prefix: &str, after: Option<&str>) -> Vec<String> {
    let listed = of.list(prefix, after).await.expect("a list");
    listed.into_iter().map(|one| one.key).collect()
}

#[tokio::test]
async fn objects_are_listed_by_prefix_and_after_a_key_until_they_are_deleted() {
    for fixture in Fixture::both().await {
        let objects = CatalogueObjects::below(&fixture.folder);
        assert_eq!(keys(&objects, "a/", None).await, [""; 0]);
        // Beside this catalogue, whose name its own begins with.
        let beside = format!("{}-2/a/9", fixture.folder.key.trim_end_matches('/'));
        fixture.folder.storage.put(&beside, Vec::new()).await.expect("an object");
        for key in ["a/1", "a/2", "a/3", "b/1"] {
            objects.put(key, key.as_bytes().to_vec()).await.expect("an object");
        }
        assert_eq!(keys(&objects, "a/", None).await, ["a/1", "a/2", "a/3"]);
        assert_eq!(keys(&objects, "a/", Some("a/1")).await, ["a/2", "a/3"]);
        assert_eq!(keys(&objects, "a/", Some("a/3")).await, [""; 0]);
        // One that does not exist counts as removed.
        let deleted = ["a/1", "a/3", "a/4"].map(str::to_owned);
        assert_eq!(objects.delete(&deleted).await, Ok::<_, StoreError>(()));
        assert_eq!(keys(&objects, "", None).await, ["a/2", "b/1"]);
    }
}

#[tokio::test]
async fn a_catalogue_may_have_more_namespaces_than_a_page_lists() {
    let fixture = Fixture::in_folder();
    let folder = fixture.files.as_ref().expect("files").join("namespaces");
    for number in 0..1_001 {
        let namespace = folder.join(format!("n{number:04}"));
        std::fs::create_dir_all(&namespace).expect("a folder");
        std::fs::write(namespace.join("pointer"), "").expect("a file");
    }
    let names = CatalogueObjects::below(&fixture.folder).namespaces().await.expect("a list");
    assert_eq!((names.len(), names.last().map(String::as_str)), (1_001, Some("n1000")));
}
