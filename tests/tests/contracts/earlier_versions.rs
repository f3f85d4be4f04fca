//! A process that starts on broken subscriptions uses the newest earlier version that can be read,
//! until the newest one is mended.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use adapters::storage::StoredObject;
use adapters::subscriptions::LiveSubscriptions;
use delivery::ports::SubscriptionSource;
use tempfile::TempDir;

use crate::manual_clock::ManualClock;
use crate::scripted_s3::VersionedObject;
use crate::subscriptions::{CHECK_EVERY_MS, REREAD_EVERY_MS, names, one};

const BROKEN: &str = "apiVersion: [";

/// Where the subscriptions are, with their versions.
trait Fixture {
    fn object(&self) -> StoredObject;
    async fn write(&self, text: &str);

    /// A process that starts.
    fn start(&self) -> (LiveSubscriptions<ManualClock>, ManualClock) {
        let clock = ManualClock::default();
        (LiveSubscriptions::new(self.object(), clock.clone()), clock)
    }
}

struct File(TempDir);

impl File {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("subscriptions.yaml")
    }
}

impl Fixture for File {
    fn object(&self) -> StoredObject {
        StoredObject::file(&self.path())
    }

    async fn write(&self, text: &str) {
        let StoredObject { storage, key } = self.object();
        storage.put_version(&key, text.into()).await.expect("a put");
    }
}

impl Fixture for VersionedObject {
    fn object(&self) -> StoredObject {
        StoredObject::in_bucket(self.client(), Self::BUCKET, Self::KEY)
    }

    async fn write(&self, text: &str) {
        VersionedObject::write(self, text);
    }
}

async fn current(source: &impl SubscriptionSource) -> Vec<String> {
    names(&source.current().await.expect("a catalogue"))
}

async fn starts_on_the_earlier_one_until_the_newest_is_mended(fixture: &impl Fixture) {
    fixture.write(&one("earlier")).await;
    fixture.write(BROKEN).await;
    let (source, clock) = fixture.start();
    assert_eq!(current(&source).await, ["earlier"]);
    clock.advance(CHECK_EVERY_MS);
    assert_eq!(current(&source).await, ["earlier"], "it is used as long as need be");
    fixture.write(&one("mended-and-longer")).await;
    clock.advance(CHECK_EVERY_MS);
    assert_eq!(current(&source).await, ["mended-and-longer"]);
    clock.advance(REREAD_EVERY_MS);
    let newest = source
        .reread(Arc::default(), &BTreeSet::new())
        .await
        .expect("the newest can be read again");
    assert_eq!(names(&newest), ["mended-and-longer"]);
}

/// A name may be in the broken one alone, so none counts as missing.
async fn does_not_take_the_earlier_one_for_the_newest(fixture: &impl Fixture) {
    fixture.write(&one("earlier")).await;
    fixture.write(BROKEN).await;
    let (source, clock) = fixture.start();
    for _ in 0..2 {
        let problem = source
            .reread(Arc::default(), &BTreeSet::new())
            .await
            .expect_err("the newest is broken");
        assert!(problem.contains(&fixture.object().to_string()), "{problem}");
        assert_eq!(current(&source).await, ["earlier"]);
        clock.advance(REREAD_EVERY_MS);
    }
}

#[tokio::test]
async fn of_a_file_the_earlier_one_is_used_until_the_newest_is_mended() {
    starts_on_the_earlier_one_until_the_newest_is_mended(&File::new()).await;
}

#[tokio::test]
async fn of_an_object_the_earlier_one_is_used_until_the_newest_is_mended() {
    let object = VersionedObject::start().await;
    starts_on_the_earlier_one_until_the_newest_is_mended(&object).await;
}

#[tokio::test]
async fn of_a_file_no_name_is_missing_while_the_newest_is_broken() {
    does_not_take_the_earlier_one_for_the_newest(&File::new()).await;
}

#[tokio::test]
async fn of_an_object_no_name_is_missing_while_the_newest_is_broken() {
    does_not_take_the_earlier_one_for_the_newest(&VersionedObject::start().await).await;
}

#[tokio::test]
async fn of_several_earlier_ones_the_newest_that_can_be_read_is_used() {
    let object = VersionedObject::start().await;
    for text in [&one("oldest"), &one("older"), BROKEN, "\u{0}", BROKEN] {
        object.write(text);
    }
    assert_eq!(current(&object.start().0).await, ["older"]);
}

#[tokio::test]
async fn the_versions_of_a_longer_key_are_not_its_own() {
    let object = VersionedObject::start().await;
    object.write(&one("earlier"));
    object.write(&one("newest"));
    let StoredObject { storage, key } = object.object();
    let versions = storage.versions(&key).await.expect("versions");
    let listed: Vec<_> = versions.iter().map(|it| (it.id.as_str(), it.is_current)).collect();
    assert_eq!(listed, [("1", true), ("0", false)]);
}

#[tokio::test]
async fn a_process_that_has_a_good_one_does_not_look_back() {
    let object = VersionedObject::start().await;
    object.write(&one("earlier"));
    object.write(&one("last-good"));
    let (source, clock) = object.start();
    assert_eq!(current(&source).await, ["last-good"]);
    object.write(BROKEN);
    clock.advance(CHECK_EVERY_MS);
    assert_eq!(current(&source).await, ["last-good"]);
    assert_eq!(object.listings(), 0);
}

#[tokio::test]
async fn where_no_earlier_one_can_be_read_they_are_looked_at_twice_a_minute() {
    let object = VersionedObject::start().await;
    object.write("\u{0}");
    object.write(BROKEN);
    let (source, clock) = object.start();
    for (advance_ms, listings) in [(0, 1), (REREAD_EVERY_MS, 1), (CHECK_EVERY_MS, 2)] {
        clock.advance(advance_ms);
        let problem = source.current().await.expect_err("there is no good one");
        assert!(problem.contains(VersionedObject::KEY), "{problem}");
        assert_eq!(object.listings(), listings, "after {advance_ms} ms");
    }
}

#[tokio::test]
async fn a_file_that_could_not_be_fetched_is_not_replaced_by_an_earlier_one() {
    let file = File::new();
    file.write(&one("a")).await;
    file.write(&one("b")).await;
    // A link to itself exists and cannot be read, like an object while S3 answers with 503.
    std::fs::remove_file(file.path()).expect("removed");
    std::os::unix::fs::symlink(file.path(), file.path()).expect("a link");
    let problem = file.start().0.current().await.expect_err("not known to be broken");
    assert!(problem.contains("cannot be read"), "{problem}");
}
