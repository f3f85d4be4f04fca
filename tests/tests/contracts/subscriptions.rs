//! `SubscriptionSource`: the last good catalogue. A broken newer one is reported and does not
//! replace it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use adapters::subscriptions::{LiveSubscriptions, Location};
use aws_sdk_s3::Client;
use delivery::ports::SubscriptionSource;
use delivery::subscription::catalogue::Catalogue;
use lastmile_tests::logs::Logged;
use tempfile::TempDir;
use tracing::Level;

use crate::cloud::{Cloud, s3_client};
use crate::manual_clock::ManualClock;

/// The source is checked again after this long.
pub(crate) const CHECK_EVERY_MS: u64 = 30_000;
/// Rereads happen at most once a second.
pub(crate) const REREAD_EVERY_MS: u64 = 1_000;

/// A reader whose time a test moves.
struct Reader {
    source: LiveSubscriptions<ManualClock>,
    clock: ManualClock,
}

impl Reader {
    /// One that has not read yet.
    fn of(location: &Location, client: Client) -> Self {
        let clock = ManualClock::default();
        let source = LiveSubscriptions::new(location.object(client), clock.clone());
        Self { source, clock }
    }

    async fn current(&self) -> Result<Arc<Catalogue>, String> {
        self.source.current().await
    }

    /// A reread that surely reads: the last check is a second ago.
    async fn reread(&self) -> Result<Arc<Catalogue>, String> {
        self.clock.advance(REREAD_EVERY_MS);
        self.source.reread(Arc::default(), &BTreeSet::new()).await
    }
}

/// A source of subscriptions, and new readers of it.
trait Fixture {
    /// Puts this text there.
    async fn write(&self, text: &str);
    /// A reader that has not read yet.
    fn reader(&self) -> Reader;
    /// What messages call the source.
    fn name(&self) -> String;
}

struct File {
    path: PathBuf,
    _folder: TempDir,
}

impl File {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { path: folder.path().join("subscriptions.yaml"), _folder: folder }
    }
}

impl Fixture for File {
    async fn write(&self, text: &str) {
        std::fs::write(&self.path, text).expect("a file");
    }

    fn reader(&self) -> Reader {
        let location =
            Location::parse(&format!("file://{}", self.path.display())).expect("a location");
        Reader::of(&location, s3_client("http://127.0.0.1:1"))
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

struct Object(Cloud);

impl Fixture for Object {
    async fn write(&self, text: &str) {
        let put = self.0.s3.put_object().bucket("config").key("a/subscriptions.yaml");
        put.body(text.as_bytes().to_vec().into()).send().await.expect("a put");
    }

    fn reader(&self) -> Reader {
        let location = Location::parse("s3://config/a/subscriptions.yaml").expect("a location");
        Reader::of(&location, self.0.s3.clone())
    }

    fn name(&self) -> String {
        "s3://config/a/subscriptions.yaml".to_owned()
    }
}

/// A file with one subscription of this name.
pub(crate) fn one(name: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://{name}.example.com/'}}}}\n"
    )
}

pub(crate) fn names(catalogue: &Catalogue) -> Vec<String> {
    catalogue.subscriptions().map(|subscription| subscription.name.name.clone()).collect()
}

/// A newer version is seen on the next check.
async fn sees_a_newer_version_on_a_reread(fixture: &impl Fixture) {
    fixture.write(&one("first")).await;
    let source = fixture.reader();
    assert_eq!(names(&source.current().await.expect("a catalogue")), ["first"]);
    fixture.write(&one("second-is-longer")).await;
    assert_eq!(names(&source.reread().await.expect("a catalogue")), ["second-is-longer"]);
    assert_eq!(names(&source.current().await.expect("a catalogue")), ["second-is-longer"]);
}

/// The source is asked every 30 seconds, and not more often.
async fn sees_a_newer_version_within_half_a_minute(fixture: &impl Fixture) {
    fixture.write(&one("first")).await;
    let reader = fixture.reader();
    let current = async || names(&reader.current().await.expect("a catalogue"));
    assert_eq!(current().await, ["first"]);
    fixture.write(&one("second-is-longer")).await;
    reader.clock.advance(CHECK_EVERY_MS - 1);
    assert_eq!(current().await, ["first"]);
    reader.clock.advance(1);
    assert_eq!(current().await, ["second-is-longer"]);
}

/// A name that is missing causes a check, but at most one a second.
async fn rereads_once_a_second(fixture: &impl Fixture) {
    fixture.write(&one("first")).await;
    let Reader { source, clock } = fixture.reader();
    let reread = async || {
        names(&source.reread(Arc::default(), &BTreeSet::new()).await.expect("a catalogue"))
    };
    assert_eq!(reread().await, ["first"]);
    fixture.write(&one("second-is-longer")).await;
    clock.advance(REREAD_EVERY_MS - 1);
    assert_eq!(reread().await, ["first"]);
    clock.advance(1);
    assert_eq!(reread().await, ["second-is-longer"]);
}

/// A broken version, or none at all, leaves the last good one in place until a good one comes.
async fn keeps_the_last_good_one_while_a_newer_one_is_broken(fixture: &impl Fixture) {
    fixture.write(&one("good")).await;
    let source = fixture.reader();
    assert_eq!(names(&source.current().await.expect("a catalogue")), ["good"]);
    for broken in ["apiVersion: [", "apiVersion: lastmile.dev/v1\nkind: Subscription\n", "\u{0}"] {
        fixture.write(broken).await;
        assert!(fixture.reader().current().await.is_err(), "{broken:?} is broken");
        let newest = source.reread().await.expect_err("nobody can say what is the newest");
        assert!(newest.contains(&fixture.name()), "{newest}");
        assert_eq!(
            names(&source.current().await.expect("the last good one")),
            ["good"],
            "{broken:?}"
        );
    }
    fixture.write(&one("repaired")).await;
    assert_eq!(names(&source.reread().await.expect("a catalogue")), ["repaired"]);
}

/// What is missing or broken from the start is an error for people, until it is there.
async fn says_what_is_wrong_with_the_only_one_there_is(fixture: &impl Fixture) {
    let source = fixture.reader();
    let missing = source.current().await.expect_err("nothing is there");
    assert!(missing.contains(&fixture.name()), "{missing}");
    fixture.write(&one("good").replace("url", "urn")).await;
    let broken = source.reread().await.expect_err("the only one is broken");
    assert!(broken.contains(&fixture.name()) && broken.contains("urn"), "{broken}");
    assert_eq!(source.current().await.expect_err("still broken"), broken);
    fixture.write(&one("good")).await;
    assert_eq!(names(&source.reread().await.expect("a catalogue")), ["good"]);
}

/// Many readers at the same time get the same catalogue.
async fn gives_everyone_the_same_catalogue(fixture: &impl Fixture) {
    fixture.write(&one("good")).await;
    let source = fixture.reader();
    let all = futures::future::join_all((0..20).map(|_| source.current())).await;
    let first = all[0].as_ref().expect("a catalogue");
    assert!(
        all.iter().all(|catalogue| catalogue
            .as_ref()
            .is_ok_and(|catalogue| Arc::ptr_eq(catalogue, first)))
    );
}

#[tokio::test]
async fn of_a_file_a_newer_version_is_seen_on_a_reread() {
    sees_a_newer_version_on_a_reread(&File::new()).await;
}

#[tokio::test]
async fn of_a_file_a_newer_version_is_seen_within_half_a_minute() {
    sees_a_newer_version_within_half_a_minute(&File::new()).await;
}

#[tokio::test]
async fn a_file_is_reread_once_a_second() {
    rereads_once_a_second(&File::new()).await;
}

#[tokio::test]
async fn of_a_file_the_last_good_version_is_kept_while_a_newer_one_is_broken() {
    keeps_the_last_good_one_while_a_newer_one_is_broken(&File::new()).await;
}

#[tokio::test]
async fn an_invalid_first_version_is_reported_for_a_file() {
    says_what_is_wrong_with_the_only_one_there_is(&File::new()).await;
}

#[tokio::test]
async fn of_a_file_everyone_gets_the_same_catalogue() {
    gives_everyone_the_same_catalogue(&File::new()).await;
}

#[tokio::test]
async fn of_an_object_a_newer_version_is_seen_on_a_reread() {
    sees_a_newer_version_on_a_reread(&Object(Cloud::start().await)).await;
}

#[tokio::test]
async fn of_an_object_a_newer_version_is_seen_within_half_a_minute() {
    sees_a_newer_version_within_half_a_minute(&Object(Cloud::start().await)).await;
}

#[tokio::test]
async fn an_object_is_reread_once_a_second() {
    rereads_once_a_second(&Object(Cloud::start().await)).await;
}

#[tokio::test]
async fn of_an_object_the_last_good_version_is_kept_while_a_newer_one_is_broken() {
    keeps_the_last_good_one_while_a_newer_one_is_broken(&Object(Cloud::start().await)).await;
}

#[tokio::test]
async fn an_invalid_first_version_is_reported_for_an_object() {
    says_what_is_wrong_with_the_only_one_there_is(&Object(Cloud::start().await)).await;
}

#[tokio::test]
async fn of_an_object_everyone_gets_the_same_catalogue() {
    gives_everyone_the_same_catalogue(&Object(Cloud::start().await)).await;
}

#[tokio::test]
async fn an_object_that_was_removed_leaves_the_last_good_version() {
    let fixture = Object(Cloud::start().await);
    fixture.write(&one("good")).await;
    let source = fixture.reader();
    assert_eq!(names(&source.current().await.expect("a catalogue")), ["good"]);
    fixture
        .0
        .s3
        .delete_object()
        .bucket("config")
        .key("a/subscriptions.yaml")
        .send()
        .await
        .expect("a delete");
    assert!(source.reread().await.is_err(), "nobody can say what is the newest");
    assert_eq!(names(&source.current().await.expect("the last good one")), ["good"]);
}

#[tokio::test]
async fn that_nothing_was_ever_written_is_said_once_and_is_no_error() {
    let fixture = File::new();
    let Reader { source, clock } = fixture.reader();
    let logged = Logged::at(Level::INFO);
    for _ in 0..3 {
        let missing = source.current().await.expect_err("nothing is there");
        assert!(missing.contains("write it with lastmile apply"), "{missing}");
        clock.advance(CHECK_EVERY_MS);
    }
    assert_eq!(logged.messages(), ["subscriptions.missing"]);
    fixture.write(&one("good")).await;
    source.current().await.expect("a catalogue");
    std::fs::remove_file(&fixture.path).expect("it is there");
    clock.advance(CHECK_EVERY_MS);
    assert_eq!(names(&source.current().await.expect("the last good one")), ["good"]);
    let said = ["subscriptions.missing", "subscriptions.loaded", "subscriptions.broken"];
    assert_eq!(logged.messages(), said);
}

#[tokio::test]
async fn what_is_broken_is_not_missing() {
    let fixture = File::new();
    fixture.write("apiVersion: [").await;
    let logged = Logged::at(Level::INFO);
    let source = fixture.reader();
    assert!(source.current().await.is_err(), "it is broken");
    assert_eq!(logged.messages(), ["subscriptions.broken"]);
}

#[tokio::test]
async fn a_file_that_a_person_edits_may_be_empty_for_a_moment() {
    let fixture = File::new();
    fixture.write(&one("good")).await;
    let Reader { source, clock } = fixture.reader();
    let (every_ms, current) = (100, async |source: &LiveSubscriptions<ManualClock>| {
        source.current().await.map(|catalogue| names(&catalogue))
    });
    let source = source.refusing_blank().checked_every(every_ms);
    assert_eq!(current(&source).await, Ok(vec!["good".to_owned()]));
    for (text, subscriptions) in [("", "good"), ("# later\n", "good"), (&one("next"), "next")] {
        fixture.write(text).await;
        clock.advance(every_ms);
        assert_eq!(current(&source).await, Ok(vec![subscriptions.to_owned()]), "{text:?}");
    }
    // For one that a deployment wrote, an empty file is one without subscriptions.
    fixture.write("").await;
    assert_eq!(current(&fixture.reader().source).await, Ok(Vec::new()));
}
