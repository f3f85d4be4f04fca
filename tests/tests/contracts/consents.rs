//! `Consents`: a consent that was kept is found, by its keeper at once and by everybody else within
//! half a minute.

use adapters::consents::ConsentStore;
use adapters::live_topics::Location;
use adapters::machine::Machine;
use adapters::storage::Storage;
use delivery::machine::consent::{ConsentKey, Granted, Rate};
use delivery::ports::Consents as _;
use delivery::subscription::NoFields;
use delivery::subscription::{Consent, Destination};
use tempfile::TempDir;

use crate::cloud::Cloud;
use crate::manual_clock::ManualClock;

/// Slightly less than the time that a consent is used.
const FRESH_MS: u64 = 5 * 60 * 1_000 - 1;
/// Slightly less than the time that a missing one counts as missing.
const MISSING_FRESH_MS: u64 = 30_000 - 1;

/// A storage of consents, and changes to it by others.
trait Fixture {
    fn storage(&self) -> Storage;
    async fn remove(&self, key: &ConsentKey);
    async fn write(&self, key: &ConsentKey, text: &str);
}

impl Fixture for TempDir {
    fn storage(&self) -> Storage {
        Storage::folder(self.path())
    }

    async fn remove(&self, key: &ConsentKey) {
        std::fs::remove_file(self.path().join(key.as_str())).expect("it is there");
    }

    async fn write(&self, key: &ConsentKey, text: &str) {
        std::fs::write(self.path().join(key.as_str()), text).expect("the folder is there");
    }
}

impl Fixture for Cloud {
    fn storage(&self) -> Storage {
        Storage::bucket(self.s3.clone(), "config")
    }

    async fn remove(&self, key: &ConsentKey) {
        self.s3.delete_object().bucket("config").key(key.as_str()).send().await.expect("a delete");
    }

    async fn write(&self, key: &ConsentKey, text: &str) {
        let put = self.s3.put_object().bucket("config").key(key.as_str());
        put.body(text.as_bytes().to_vec().into()).send().await.expect("a put");
    }
}

fn key(url: &str) -> ConsentKey {
    ConsentKey::of(&url.parse().expect("a URL"), &Consent::EventGrid(NoFields))
}

fn granted(rate: &str) -> Granted {
    let url = "https://example.com/".parse().expect("a URL");
    Granted::new(
        &Destination::new(url, 1),
        &Consent::EventGrid(NoFields),
        Rate::parse(rate).expect("a rate"),
        1,
    )
}

async fn keeps_its_promise(of: &impl Fixture) {
    let clock = ManualClock::default();
    let store = || ConsentStore::new(of.storage(), clock.clone());
    let (keeper, other, key) = (store(), store(), key("https://example.com/"));
    assert_eq!(other.consent(&key).await, Ok(None));
    keeper.keep_consent(&key, &granted("7")).await.expect("kept");
    assert_eq!(keeper.consent(&key).await, Ok(Some(granted("7"))));
    // The other read it a moment ago, and reads it again within half a minute.
    assert_eq!(other.consent(&key).await, Ok(None));
    clock.advance(MISSING_FRESH_MS);
    assert_eq!(other.consent(&key).await, Ok(None));
    clock.advance(1);
    assert_eq!(other.consent(&key).await, Ok(Some(granted("7"))));
    assert_eq!(store().consent(&key).await, Ok(Some(granted("7"))));
    assert_eq!(store().consent(&self::key("https://example.com/other")).await, Ok(None));
    // The newest counts, and one that was removed is gone after five minutes.
    keeper.keep_consent(&key, &granted("*")).await.expect("kept");
    assert_eq!(store().consent(&key).await, Ok(Some(granted("*"))));
    of.remove(&key).await;
    assert_eq!(keeper.consent(&key).await, Ok(Some(granted("*"))));
    clock.advance(FRESH_MS);
    assert_eq!(keeper.consent(&key).await, Ok(Some(granted("*"))));
    clock.advance(1);
    assert_eq!(keeper.consent(&key).await, Ok(None));
}

async fn what_cannot_be_read_is_neither_a_consent_nor_none(of: &impl Fixture) {
    let clock = ManualClock::default();
    let store = ConsentStore::new(of.storage(), clock.clone());
    let key = key("https://example.com/");
    store.keep_consent(&key, &granted("7")).await.expect("kept");
    for broken in ["", "{}", r#"{"v":2}"#] {
        of.write(&key, broken).await;
        let fresh = ConsentStore::new(of.storage(), clock.clone());
        let error = fresh.consent(&key).await.expect_err(broken).to_string();
        assert!(error.contains(key.as_str()), "{error}");
        // A process that has read a good one keeps it.
        clock.advance(FRESH_MS + 1);
        assert_eq!(store.consent(&key).await, Ok(Some(granted("7"))), "{broken}");
    }
}

#[tokio::test]
async fn in_a_folder_a_consent_is_kept_until_it_is_removed() {
    keeps_its_promise(&tempfile::tempdir().expect("a folder")).await;
}

#[tokio::test]
async fn in_a_bucket_a_consent_is_kept_until_it_is_removed() {
    keeps_its_promise(&Cloud::start().await).await;
}

#[tokio::test]
async fn in_a_folder_what_cannot_be_read_is_neither_a_consent_nor_none() {
    what_cannot_be_read_is_neither_a_consent_nor_none(&tempfile::tempdir().expect("a folder"))
        .await;
}

#[tokio::test]
async fn in_a_bucket_what_cannot_be_read_is_neither_a_consent_nor_none() {
    what_cannot_be_read_is_neither_a_consent_nor_none(&Cloud::start().await).await;
}

#[tokio::test]
async fn what_cannot_be_kept_is_an_error_and_known_to_this_process_all_the_same() {
    let cloud = Cloud::start().await;
    let store = ConsentStore::new(Storage::bucket(cloud.s3.clone(), "nowhere"), Machine);
    let key = key("https://example.com/");
    assert!(store.keep_consent(&key, &granted("7")).await.is_err());
    assert_eq!(store.consent(&key).await, Ok(Some(granted("7"))));
}

#[tokio::test]
async fn consents_are_kept_where_the_subscriptions_are() {
    let cloud = Cloud::start().await;
    for (uri, storage) in [
        ("file:///etc/lastmile/subscriptions/", "/etc/lastmile"),
        ("s3://config/a/subscriptions/", "s3://config"),
    ] {
        let location = Location::parse(uri).expect("a location");
        assert_eq!(location.folder(cloud.s3.clone()).storage.to_string(), storage);
    }
}
