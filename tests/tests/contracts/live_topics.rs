//! `SubscriptionSource` of topics that are objects, in a bucket and in a folder. Topics are read
//! when they are asked for, and the last good ones stay in use. No name counts as missing unless
//! its object was requested.

use std::collections::BTreeSet;
use std::sync::Arc;

use adapters::live_topics::{
    FEW_TOPICS, LOOK_EVERY_MS, LiveTopics, PUBLISHERS, SETTINGS, TopicObjects,
};
use adapters::storage::{Storage, StoredObject};
use delivery::event::envelope::Publisher;
use delivery::ports::SubscriptionSource as _;
use delivery::subscription::catalogue::{Catalogue, Found};
use delivery::subscription::name::TopicName;
use delivery::topic_object::{DeploymentObject as _, PublishersObject, SettingsObject, tombstone};
use lastmile_tests::logs::Logged;
use lastmile_tests::manual_clock::ManualClock;
use tempfile::TempDir;
use tracing::Level;

use crate::cloud::Cloud;
use crate::scripted_s3::VersionedObject;

/// Objects of topics in a folder or a bucket.
pub(crate) struct Fixture {
    pub(crate) objects: TopicObjects,
    pub(crate) storage: Storage,
    _folder: Option<TempDir>,
    _cloud: Option<Cloud>,
}

impl Fixture {
    pub(crate) async fn both() -> [Self; 2] {
        let folder = tempfile::tempdir().expect("a folder");
        let in_folder = Self::at(Storage::folder(folder.path()), Some(folder), None);
        let cloud = Cloud::start().await;
        let in_bucket = Self::at(Storage::bucket(cloud.s3.clone(), "config"), None, Some(cloud));
        let both = [in_folder, in_bucket];
        for fixture in &both {
            fixture.put(SETTINGS, &SettingsObject::default().to_text()).await;
        }
        both
    }

    fn at(storage: Storage, folder: Option<TempDir>, cloud: Option<Cloud>) -> Self {
        let key = "subscriptions/".to_owned();
        let objects = TopicObjects::below(&StoredObject { storage: storage.clone(), key });
        Self { objects, storage, _folder: folder, _cloud: cloud }
    }

    pub(crate) async fn put(&self, name: &str, text: &str) {
        self.storage.put(&self.objects.key(name), text.into()).await.expect("a put");
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.storage.delete(&[self.objects.key(name)]).await.expect("a deletion");
    }

    /// Writes a topic with subscriptions of these names.
    pub(crate) async fn topic(&self, topic: &str, names: &[&str]) {
        self.put(&format!("{topic}.json"), &object(names)).await;
    }

    pub(crate) fn reader(&self) -> Reader {
        let clock = ManualClock::default();
        Reader { source: LiveTopics::new(self.objects.clone(), clock.clone()), clock }
    }
}

/// The object of a topic with subscriptions of these names.
pub(crate) fn object(names: &[&str]) -> String {
    let entry = |name: &&str| {
        format!(
            r#""{name}":{{"owner":"test","spec":{{"destination":{{"url":"https://{name}.test/"}}}}}}"#
        )
    };
    let entries: Vec<String> = names.iter().map(entry).collect();
    format!(r#"{{"v":1,"subscriptions":{{{}}}}}"#, entries.join(",\n"))
}

/// A process whose clock the test moves.
pub(crate) struct Reader {
    source: LiveTopics<ManualClock>,
    pub(crate) clock: ManualClock,
}

impl Reader {
    pub(crate) async fn topics(&self, topics: &[&str]) -> Arc<Catalogue> {
        let topics: BTreeSet<TopicName> = topics.iter().map(|name| topic(name)).collect();
        let known = self.source.current().await.expect("settings");
        self.source.with_topics(known, &topics).await
    }

    /// The names of the subscriptions of shop/orders that are in use.
    async fn orders(&self) -> Vec<String> {
        let known = self.topics(&["shop/orders"]).await;
        names(&known)
    }

    async fn found(&self, name: &str) -> Found {
        let catalogue = self.topics(&[name]).await;
        catalogue.found(&topic(name)).expect("it was read").clone()
    }

    async fn reread(&self, known: Arc<Catalogue>, name: &str) -> Result<Arc<Catalogue>, String> {
        self.source.reread(known, &BTreeSet::from([topic(name)])).await
    }
}

pub(crate) fn topic(name: &str) -> TopicName {
    name.parse().expect("a topic")
}

fn names(catalogue: &Catalogue) -> Vec<String> {
    catalogue.subscriptions().map(|subscription| subscription.name.name.clone()).collect()
}

#[tokio::test]
async fn only_the_topics_that_are_asked_for_are_read() {
    for fixture in Fixture::both().await {
        fixture.topic("shop/orders", &["a", "b"]).await;
        fixture.topic("shop/others", &["c"]).await;
        let reader = fixture.reader();
        let known = reader.topics(&["shop/orders"]).await;
        assert_eq!(names(&known), ["a", "b"]);
        assert!(known.knows(&topic("shop/orders")) && !known.knows(&topic("shop/others")));
        let both = reader.source.with_topics(known, &BTreeSet::from([topic("shop/others")])).await;
        assert_eq!(names(&both), ["a", "b", "c"]);
        for missing in ["shop/nothing", "nobody/nothing", "_settings/x"] {
            assert_eq!(reader.found(missing).await, Found::Nothing, "{missing}");
        }
    }
}

#[tokio::test]
async fn what_anybody_writes_is_in_use_after_the_next_look() {
    for fixture in Fixture::both().await {
        fixture.topic("shop/orders", &["a"]).await;
        let reader = fixture.reader();
        assert_eq!(reader.orders().await, ["a"]);
        fixture.topic("shop/orders", &["a", "bb"]).await;
        reader.clock.advance(LOOK_EVERY_MS - 1);
        assert_eq!(reader.orders().await, ["a"]);
        reader.clock.advance(1);
        assert_eq!(reader.orders().await, ["a", "bb"]);
        // A topic that was missing is requested whenever an event names it.
        assert_eq!(reader.found("shop/new").await, Found::Nothing);
        fixture.topic("shop/new", &["c"]).await;
        assert_eq!(reader.found("shop/new").await, Found::Topic);
        fixture.put("shop/new.json", &tombstone("2026-11-20T07:00:00Z")).await;
        reader.clock.advance(LOOK_EVERY_MS);
        assert_eq!(reader.found("shop/new").await, Found::Removed);
    }
}

#[tokio::test]
async fn of_very_many_topics_each_look_compares_a_thousand() {
    for fixture in Fixture::both().await {
        for number in 0..1_100 {
            fixture.topic(&format!("N{number:04}/t"), &["a"]).await;
        }
        // Capital letters come before the objects of the deployment, so the first page has a
        // thousand topics.
        let reader = fixture.reader();
        let [first, last] = ["N0000/t", "N1099/t"];
        let counts = async || {
            let known = reader.topics(&[first, last]).await;
            names(&known).len()
        };
        // With few topics in use, each of them is requested again.
        let more: Vec<String> = (1..FEW_TOPICS).map(|number| format!("N{number:04}/t")).collect();
        reader.topics(&more.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert_eq!(counts().await, 2);
        for name in [first, last] {
            fixture.topic(name, &["a", "bb"]).await;
        }
        for expected in [3, 4] {
            reader.clock.advance(LOOK_EVERY_MS);
            assert_eq!(counts().await, expected);
        }
        // The next look starts from the beginning again.
        fixture.topic(first, &["a"]).await;
        reader.clock.advance(LOOK_EVERY_MS);
        assert_eq!(counts().await, 3);
    }
}

#[tokio::test]
async fn a_name_is_missing_only_in_an_object_that_was_requested_since_the_invocation_began() {
    for fixture in Fixture::both().await {
        fixture.topic("shop/orders", &["a"]).await;
        let reader = fixture.reader();
        assert_eq!(reader.orders().await, ["a"]);
        fixture.topic("shop/orders", &["a", "bb"]).await;
        let known = reader.topics(&["shop/orders"]).await;
        let newest = reader.reread(known, "shop/orders").await.expect("the newest");
        assert_eq!(names(&newest), ["a", "bb"]);
        // The object is requested once for each invocation.
        fixture.topic("shop/orders", &["a", "bb", "ccc"]).await;
        let again = reader.reread(newest, "shop/orders").await.expect("the newest");
        assert_eq!(names(&again), ["a", "bb"]);
        let known = reader.topics(&["shop/orders"]).await;
        let newest = reader.reread(known, "shop/orders").await.expect("the newest");
        assert_eq!(names(&newest), ["a", "bb", "ccc"]);
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_used_replaces_nothing_and_concerns_no_other_topic() {
    let truncated = object(&["a"]).chars().take(40).collect::<String>();
    for broken in ["", " ", "# nothing\n", &truncated, "{}", r#"{"v":9}"#, r#"{"apiVersion":"v1"}"#]
    {
        for fixture in Fixture::both().await {
            fixture.topic("shop/orders", &["a"]).await;
            fixture.topic("shop/others", &["b"]).await;
            let warm = fixture.reader();
            assert_eq!(warm.orders().await, ["a"]);
            fixture.put("shop/orders.json", broken).await;
            warm.clock.advance(LOOK_EVERY_MS);
            let logged = Logged::at(Level::ERROR);
            let reports = || {
                logged
                    .messages()
                    .iter()
                    .filter(|message| *message == "subscriptions.broken")
                    .count()
            };
            assert_eq!(warm.orders().await, ["a"], "{broken}");
            assert_eq!(reports(), 1);
            // The broken object is not read again for each event.
            assert_eq!(warm.orders().await, ["a"], "{broken}");
            assert_eq!(reports(), 1);
            let known = warm.topics(&["shop/orders"]).await;
            let problem = warm.reread(known, "shop/orders").await.expect_err("it is broken");
            assert!(
                problem.contains("cannot be used") || problem.contains("shop/orders"),
                "{problem}"
            );
            // A process that starts now cannot use the broken topic, but it has the other one.
            let cold = fixture.reader();
            let known = cold.topics(&["shop/orders", "shop/others"]).await;
            let found = known.found(&topic("shop/orders")).expect("it was read");
            assert!(
                matches!(found, Found::Unreadable(why) if why.contains("shop/orders")),
                "{found:?}"
            );
            assert_eq!(names(&known), ["b"]);
            fixture.topic("shop/orders", &["mended"]).await;
            cold.clock.advance(1_000);
            assert_eq!(cold.orders().await, ["mended"]);
            warm.clock.advance(LOOK_EVERY_MS);
            assert_eq!(warm.orders().await, ["mended"]);
        }
    }
}

#[tokio::test]
async fn an_object_that_is_gone_without_a_mark_stays_in_use() {
    for fixture in Fixture::both().await {
        fixture.topic("shop/orders", &["a"]).await;
        let warm = fixture.reader();
        assert_eq!(warm.orders().await, ["a"]);
        fixture.delete("shop/orders.json").await;
        for _ in 0..3 {
            warm.clock.advance(LOOK_EVERY_MS);
            assert_eq!(warm.orders().await, ["a"]);
        }
        fixture.topic("shop/orders", &["again"]).await;
        warm.clock.advance(LOOK_EVERY_MS);
        assert_eq!(warm.orders().await, ["again"]);
    }
}

#[tokio::test]
async fn a_subscription_that_cannot_be_used_is_named_and_the_others_are_in_use() {
    for fixture in Fixture::both().await {
        let text = object(&["a", "b"]).replace("https://b.test/", "b.test");
        fixture.put("shop/orders.json", &text).await;
        let known = fixture.reader().topics(&["shop/orders"]).await;
        assert_eq!(names(&known), ["a"]);
        let name = "shop/orders/b".parse().expect("a name");
        assert!(known.unusable(&name).is_some_and(|why| why.contains("spec.destination.url")));
    }
}

/// The object of a topic with this many subscriptions, each with a long filter.
fn large_object(subscriptions: usize, conditions: usize) -> String {
    let condition = |number| format!(r#"{{"exact":{{"type":"t{number}"}}}}"#);
    let filter: Vec<String> = (0..conditions).map(condition).collect();
    let filter = format!(r#","filter":{{"any":[{}]}}"#, filter.join(","));
    let names: Vec<String> = (0..subscriptions).map(|number| format!("s{number:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    object(&names).replace(r#"test/"}"#, &format!(r#"test/"}}{filter}"#))
}

#[tokio::test]
async fn a_large_topic_waits_until_those_in_use_leave_memory_for_it() {
    for fixture in Fixture::both().await {
        let large = large_object(6, 1_100);
        for name in ["shop/large", "shop/larger", "shop/largest"] {
            fixture.put(&format!("{name}.json"), &large).await;
        }
        fixture.topic("shop/orders", &["a"]).await;
        // Each of the large topics takes about 1.5 MiB of memory.
        let Reader { source, clock } = fixture.reader();
        let reader = Reader { source: source.with_memory(4 * 1_024 * 1_024), clock };
        let all =
            reader.topics(&["shop/large", "shop/larger", "shop/largest", "shop/orders"]).await;
        let is_unreadable =
            |found: &Found| matches!(found, Found::Unreadable(why) if why.contains("memory"));
        let unreadable = |known: &Catalogue| {
            let topics = ["shop/large", "shop/larger", "shop/largest"].map(topic);
            topics
                .iter()
                .filter_map(|topic| known.found(topic))
                .filter(|found| is_unreadable(found))
                .count()
        };
        assert_eq!(unreadable(&all), 1);
        assert_eq!(all.found(&topic("shop/orders")), Some(&Found::Topic));
        // When the topics are no longer in use, each of them can be read.
        drop(all);
        reader.clock.advance(1_000);
        for name in ["shop/large", "shop/larger", "shop/largest"] {
            assert_eq!(reader.found(name).await, Found::Topic, "{name}");
        }
    }
}

#[tokio::test]
async fn a_topic_that_would_take_too_much_memory_cannot_be_used() {
    let [fixture, _] = Fixture::both().await;
    fixture.put("shop/orders.json", &large_object(11, 9_100)).await;
    fixture.put("shop/others.json", &"x".repeat(17 * 1_024 * 1_024)).await;
    let reader = fixture.reader();
    for (name, why) in [("shop/orders", "conditions"), ("shop/others", "bytes")] {
        let found = reader.found(name).await;
        assert!(matches!(&found, Found::Unreadable(problem) if problem.contains(why)), "{found:?}");
    }
}

#[tokio::test]
async fn with_few_events_a_change_is_in_use_after_five_minutes_however_many_topics_there_are() {
    for fixture in Fixture::both().await {
        // These objects fill the first page of the listing, so the topic is not on it.
        for number in 0..1_000 {
            fixture.put(&format!("A/{number:04}.json"), "{}").await;
        }
        fixture.topic("shop/orders", &["a"]).await;
        let reader = fixture.reader();
        for number in 0..FEW_TOPICS {
            fixture.topic(&format!("A/{number:04}"), &["a"]).await;
            assert_eq!(reader.found(&format!("A/{number:04}")).await, Found::Topic);
        }
        assert_eq!(reader.orders().await, ["a"]);
        fixture.topic("shop/orders", &["bb"]).await;
        reader.clock.advance(LOOK_EVERY_MS);
        assert_eq!(reader.orders().await, ["a"]);
        reader.clock.advance(5 * 60 * 1_000 - LOOK_EVERY_MS);
        assert_eq!(reader.orders().await, ["bb"]);
    }
}

#[tokio::test]
async fn without_settings_nothing_is_known_and_the_last_good_ones_stay() {
    for fixture in Fixture::both().await {
        fixture.topic("shop/orders", &["a"]).await;
        let warm = fixture.reader();
        assert_eq!(warm.orders().await, ["a"]);
        for broken in [None, Some(""), Some(r#"{"v":7}"#)] {
            match broken {
                None => fixture.delete(SETTINGS).await,
                Some(text) => fixture.put(SETTINGS, text).await,
            }
            warm.clock.advance(LOOK_EVERY_MS);
            assert_eq!(warm.orders().await, ["a"], "{broken:?}");
            let problem = fixture.reader().source.current().await.expect_err("nothing is known");
            assert!(problem.contains(SETTINGS), "{problem}");
        }
    }
}

#[tokio::test]
async fn publishers_and_policies_are_those_of_the_deployment_and_change_with_the_next_look() {
    let (secret, elsewhere) = ("env:A".parse().expect("a name"), "https://b.test/".parse());
    let elsewhere = elsewhere.expect("a URL");
    for fixture in Fixture::both().await {
        // A topic cannot grant itself a publisher.
        let claim = r#"{"v":1,"topic":{"owner":"x","spec":{"from":[{"bucket":"claimed"}]}}}"#;
        fixture.put("shop/orders.json", claim).await;
        let reader = fixture.reader();
        let known = reader.topics(&["shop/orders"]).await;
        let [claimed, pictures] =
            ["claimed", "pictures"].map(|name| Publisher::Bucket(name.to_owned()));
        assert_eq!(known.topic_from(&claimed), None);
        assert_eq!(known.settings().secrets.refusal(&secret, &elsewhere), None);
        fixture
            .put(
                PUBLISHERS,
                r#"{"v":1,"topics":{"shop/orders":{"owner":"p","from":[{"bucket":"pictures"}]}}}"#,
            )
            .await;
        fixture
            .put(
                SETTINGS,
                r#"{"v":1,"secretPolicies":{"p":{"secrets":[{"name":"env:A","hosts":["a.test"]}]}},"notifications":{"owner":"p","spec":{"topic":"ops/notices"}}}"#,
            )
            .await;
        reader.clock.advance(LOOK_EVERY_MS);
        let known = reader.source.current().await.expect("settings");
        assert_eq!(known.topic_from(&pictures), Some(&topic("shop/orders")));
        assert!(known.settings().secrets.refusal(&secret, &elsewhere).is_some());
        assert_eq!(known.topic_of_notices(), Some(&topic("ops/notices")));
        // An unusable object of publishers replaces no publisher.
        fixture.put(PUBLISHERS, &PublishersObject::default().to_text().replace('1', "9")).await;
        reader.clock.advance(LOOK_EVERY_MS);
        let known = reader.source.current().await.expect("settings");
        assert_eq!(known.topic_from(&pictures), Some(&topic("shop/orders")));
    }
}

#[tokio::test]
async fn what_is_there_again_as_it_was_is_the_newest_again() {
    for fixture in Fixture::both().await {
        fixture.topic("shop/orders", &["a"]).await;
        let settings = SettingsObject::default().to_text();
        let reader = fixture.reader();
        assert_eq!(reader.orders().await, ["a"]);
        for is_there in [false, true] {
            for name in ["shop/orders.json", SETTINGS] {
                match (is_there, name) {
                    (false, name) => fixture.delete(name).await,
                    (true, SETTINGS) => fixture.put(SETTINGS, &settings).await,
                    (true, _) => fixture.topic("shop/orders", &["a"]).await,
                }
            }
            reader.clock.advance(LOOK_EVERY_MS);
            let known = reader.topics(&["shop/orders"]).await;
            assert_eq!(names(&known), ["a"]);
            assert_eq!(reader.reread(known, "shop/orders").await.is_ok(), is_there);
        }
    }
}

#[tokio::test]
async fn a_good_version_that_is_restored_after_a_broken_one_is_the_newest_again() {
    for fixture in Fixture::both().await {
        fixture.topic("shop/orders", &["a"]).await;
        let reader = fixture.reader();
        assert_eq!(reader.orders().await, ["a"]);
        for is_good in [false, true] {
            match is_good {
                false => fixture.put("shop/orders.json", "{").await,
                // Storage gives the same content the same ETag as before.
                true => fixture.topic("shop/orders", &["a"]).await,
            }
            reader.clock.advance(LOOK_EVERY_MS);
            let known = reader.topics(&["shop/orders"]).await;
            assert_eq!(names(&known), ["a"]);
            assert_eq!(reader.reread(known, "shop/orders").await.is_ok(), is_good);
        }
    }
}

/// A process that starts on this object.
fn started(object: &VersionedObject) -> Reader {
    let storage = Storage::bucket(object.client(), VersionedObject::BUCKET);
    let folder = StoredObject { storage, key: "subscriptions/".to_owned() };
    let clock = ManualClock::default();
    let source = LiveTopics::new(TopicObjects::below(&folder), clock.clone());
    Reader { source, clock }
}

#[tokio::test]
async fn an_object_that_is_refused_may_be_right_so_no_earlier_version_takes_its_place() {
    let versioned = VersionedObject::start().await;
    versioned.write(&object(&["earlier"]));
    let warm = started(&versioned);
    assert_eq!(warm.orders().await, ["earlier"]);
    versioned.write(VersionedObject::REFUSED);
    warm.clock.advance(LOOK_EVERY_MS);
    assert_eq!(warm.orders().await, ["earlier"]);
    let cold = started(&versioned);
    let found = cold.found("shop/orders").await;
    assert!(matches!(&found, Found::Unreadable(why) if why.contains("shop/orders")), "{found:?}");
    versioned.write(&object(&["newest"]));
    for reader in [warm, cold] {
        reader.clock.advance(LOOK_EVERY_MS);
        assert_eq!(reader.orders().await, ["newest"]);
    }
}

#[tokio::test]
async fn a_process_that_starts_on_an_object_that_cannot_be_used_has_the_newest_version_that_can_be()
{
    let versioned = VersionedObject::start().await;
    versioned.write(&object(&["oldest"]));
    versioned.write(&object(&["earlier"]));
    for _ in 0..4 {
        versioned.write("# broken");
    }
    let reader = started(&versioned);
    assert_eq!(reader.orders().await, ["earlier"]);
    assert_eq!(versioned.listings(), 1);
    // The version stays in use, and the earlier versions are not listed again.
    reader.clock.advance(LOOK_EVERY_MS);
    assert_eq!(reader.orders().await, ["earlier"]);
    assert_eq!(versioned.listings(), 1);
    let known = reader.topics(&["shop/orders"]).await;
    let problem = reader.reread(known, "shop/orders").await.expect_err("the newest is broken");
    assert!(problem.contains("shop/orders"), "{problem}");
    versioned.write(&object(&["mended"]));
    reader.clock.advance(LOOK_EVERY_MS);
    assert_eq!(reader.orders().await, ["mended"]);
}

#[tokio::test]
async fn a_topic_whose_mark_expired_stays_removed_until_it_is_written_again() {
    let versioned = VersionedObject::start().await;
    versioned.write(&object(&["earlier"]));
    versioned.write(&tombstone("2026-11-20T07:00:00Z"));
    let warm = started(&versioned);
    assert_eq!(warm.found("shop/orders").await, Found::Removed);
    versioned.expire();
    let cold = started(&versioned);
    let logged = Logged::at(Level::ERROR);
    for _ in 0..3 {
        for reader in [&warm, &cold] {
            reader.clock.advance(LOOK_EVERY_MS);
            assert_eq!(reader.found("shop/orders").await, Found::Removed);
            // A subscription of the removed topic counts as missing, so its deliveries end.
            let known = reader.topics(&["shop/orders"]).await;
            assert!(reader.reread(known, "shop/orders").await.is_ok());
        }
    }
    assert_eq!(logged.messages(), [""; 0]);
    versioned.write(&object(&["again"]));
    for reader in [warm, cold] {
        reader.clock.advance(LOOK_EVERY_MS);
        assert_eq!(reader.orders().await, ["again"]);
    }
}

#[tokio::test]
async fn no_more_than_five_earlier_versions_are_tried() {
    let versioned = VersionedObject::start().await;
    versioned.write(&object(&["earlier"]));
    for _ in 0..7 {
        versioned.write("# broken");
    }
    let reader = started(&versioned);
    let found = reader.found("shop/orders").await;
    assert!(matches!(&found, Found::Unreadable(why) if why.contains("shop/orders")), "{found:?}");
}
