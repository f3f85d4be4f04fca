//! `SubscriptionSource` of a catalogue: topics are read when they are asked for, the last good ones stay in
//! use, and no name counts as missing unless the newest was read.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::path::PathBuf;
use std::sync::Arc;

use adapters::live_catalogue::LiveCatalogue;
use adapters::live_catalogue::objects::CatalogueObjects;
use adapters::storage::StoredObject;
use adapters::subscriptions::Location;
use catalogue::{Changes, Hint};
use delivery::event::envelope::Publisher;
use delivery::ports::SubscriptionSource as _;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use lastmile_tests::catalogues::apply;
use tempfile::TempDir;

use crate::cloud::{Cloud, s3_client};
use crate::manual_clock::ManualClock;
use crate::subscriptions::{CHECK_EVERY_MS, REREAD_EVERY_MS, names, one};

/// A catalogue in a folder or a bucket.
pub(crate) struct Fixture {
    pub(crate) folder: StoredObject,
    /// Where it is as files; `None` in a bucket.
    pub(crate) files: Option<PathBuf>,
    _folder: Option<TempDir>,
    _cloud: Option<Cloud>,
}

impl Fixture {
    pub(crate) fn in_folder() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let uri = format!("file://{}/catalogue/", folder.path().display());
        let location = Location::parse(&uri).expect("a location");
        assert!(location.is_catalogue());
        let object = location.object(s3_client("http://127.0.0.1:1"));
        let files = Some(folder.path().join("catalogue"));
        Self { folder: object, files, _folder: Some(folder), _cloud: None }
    }

    async fn in_bucket() -> Self {
        let cloud = Cloud::start().await;
        let location = Location::parse("s3://config/a/catalogue/").expect("a location");
        let folder = location.object(cloud.s3.clone());
        Self { folder, files: None, _folder: None, _cloud: Some(cloud) }
    }

    pub(crate) async fn both() -> [Self; 2] {
        [Self::in_folder(), Self::in_bucket().await]
    }

    pub(crate) async fn commit(&self, namespace: &str, changes: &Changes) {
        lastmile_tests::catalogues::commit(&self.folder, namespace, changes).await;
    }

    pub(crate) async fn apply(&self, text: &str) {
        apply(&self.folder, text).await;
    }

    pub(crate) fn reader(&self) -> Reader {
        let clock = ManualClock::default();
        let objects = CatalogueObjects::below(&self.folder);
        Reader { source: LiveCatalogue::new(objects, clock.clone()), clock }
    }

    /// What was written of a namespace, but for its pointer.
    pub(crate) fn objects(&self, namespace: &str) -> Vec<PathBuf> {
        let files = self.files.as_ref().expect("files");
        let objects = files.join("namespaces").join(namespace).join("objects");
        let objects = std::fs::read_dir(objects).expect("a folder");
        objects.map(|file| file.expect("a file").path()).collect()
    }

    /// Breaks what was written of a namespace, but for its pointer; returns how to repair it.
    pub(crate) fn damage(&self, namespace: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let damage = |path: PathBuf| {
            let whole = std::fs::read(&path).expect("a file");
            std::fs::write(&path, "damaged").expect("a file");
            (path, whole)
        };
        self.objects(namespace).into_iter().map(damage).collect()
    }

    fn lose_pointer(&self, namespace: &str) {
        let files = self.files.as_ref().expect("files");
        std::fs::remove_file(files.join("namespaces").join(namespace).join("pointer"))
            .expect("a file");
    }

    fn damage_pointer(&self, namespace: &str) {
        let files = self.files.as_ref().expect("files");
        let pointer = files.join("namespaces").join(namespace).join("pointer");
        std::fs::write(pointer, "damaged").expect("a file");
    }
}

pub(crate) fn repair(damaged: Vec<(PathBuf, Vec<u8>)>) {
    for (path, whole) in damaged {
        std::fs::write(path, whole).expect("a file");
    }
}

/// So many subscriptions that their tree has leaves of its own beside the pointer.
pub(crate) fn many() -> String {
    let many: Vec<String> = (0..200).map(|number| one(&format!("s{number:03}"))).collect();
    many.join("---\n")
}

/// A reader whose time a test moves.
pub(crate) struct Reader {
    pub(crate) source: LiveCatalogue<ManualClock>,
    pub(crate) clock: ManualClock,
}

impl Reader {
    pub(crate) async fn topics(&self, topics: &[&str]) -> Result<Arc<Catalogue>, String> {
        let topics = topics.iter().map(|topic| topic.parse().expect("a topic"));
        let topics: BTreeSet<TopicName> = topics.collect();
        let known = self.source.current().await?;
        self.source.with_topics(known, &topics).await
    }

    pub(crate) async fn orders(&self) -> Result<Vec<String>, String> {
        self.topics(&["shop/orders"]).await.map(|catalogue| names(&catalogue))
    }
}

pub(crate) fn topic(name: &str) -> TopicName {
    name.parse().expect("a topic")
}

#[tokio::test]
async fn only_the_topics_that_are_asked_for_are_known() {
    for fixture in Fixture::both().await {
        let others = one("b").replace("orders", "others");
        fixture.apply(&[one("a"), others].join("---\n")).await;
        let reader = fixture.reader();
        let none = reader.source.current().await.expect("a catalogue");
        assert!(!none.knows(&topic("shop/orders")) && names(&none).is_empty());
        let one = reader.topics(&["shop/orders"]).await.expect("a topic");
        assert_eq!(names(&one), ["a"]);
        assert!(one.knows(&topic("shop/orders")) && !one.knows(&topic("shop/others")));
        let both = reader.source.with_topics(one, &BTreeSet::from([topic("shop/others")])).await;
        assert_eq!(names(&both.expect("two topics")), ["a", "b"]);
        // What does not exist is known not to: a topic, and a whole namespace.
        for missing in ["shop/nothing", "nobody/nothing"] {
            let read = reader.topics(&[missing]).await.expect("nothing");
            assert!(read.knows(&topic(missing)) && read.topic(&topic(missing)).is_none());
        }
    }
}

#[tokio::test]
async fn the_namespaces_of_a_catalogue_are_those_that_have_objects() {
    for fixture in Fixture::both().await {
        let namespaces = async || CatalogueObjects::below(&fixture.folder).namespaces().await;
        assert_eq!(namespaces().await, Ok(Vec::new()));
        let others = ["a b-ü", "other"]
            .map(|name| one("b").replace("namespace: shop", &format!("namespace: '{name}'")));
        fixture.apply(&[one("a"), others.join("---\n")].join("---\n")).await;
        let mut expected = ["_deployment", "a b-ü", "other", "shop"].map(str::to_owned);
        expected.sort();
        let mut found = namespaces().await.expect("a list");
        found.sort();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn what_is_applied_is_in_use_after_half_a_minute_and_a_reread_finds_it_after_a_second() {
    for fixture in Fixture::both().await {
        fixture.apply(&one("a")).await;
        let reader = fixture.reader();
        assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
        fixture.apply(&one("b")).await;
        reader.clock.advance(REREAD_EVERY_MS);
        assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
        let known = reader.topics(&["shop/orders"]).await.expect("a catalogue");
        let newest = reader
            .source
            .reread(known, &BTreeSet::from([topic("shop/orders")]))
            .await
            .expect("the newest");
        assert_eq!(names(&newest), ["a", "b"]);
        fixture.apply(&one("c")).await;
        reader.clock.advance(CHECK_EVERY_MS - REREAD_EVERY_MS - 1);
        assert_eq!(reader.orders().await.map(|all| all.len()), Ok(2));
        reader.clock.advance(1);
        assert_eq!(reader.orders().await.map(|all| all.len()), Ok(3));
    }
}

#[tokio::test]
async fn whatever_the_hint_says_a_change_is_in_use_after_five_minutes_and_without_one_after_half_a_minute()
 {
    const FIVE_MINUTES_MS: u64 = 300_000;
    for is_there in [true, false] {
        let fixture = Fixture::in_folder();
        fixture.apply(&one("a")).await;
        let hint = fixture.files.as_ref().expect("files").join("hint");
        let stale = std::fs::read(&hint).expect("a hint");
        let reader = fixture.reader();
        assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
        // The first hint is new whatever it says.
        reader.clock.advance(CHECK_EVERY_MS);
        assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
        // Who cannot write the hint, or forges it.
        fixture.apply(&one("b")).await;
        match is_there {
            true => std::fs::write(&hint, stale).expect("a file"),
            false => std::fs::remove_file(&hint).expect("a file"),
        }
        reader.clock.advance(CHECK_EVERY_MS);
        let in_use = if is_there { 1 } else { 2 };
        assert_eq!(reader.orders().await.map(|all| all.len()), Ok(in_use));
        reader.clock.advance(FIVE_MINUTES_MS - CHECK_EVERY_MS);
        assert_eq!(reader.orders().await.map(|all| all.len()), Ok(2));
    }
}

#[tokio::test]
async fn an_object_that_is_larger_than_any_of_a_catalogue_is_not_read() {
    for fixture in Fixture::both().await {
        fixture.apply(&one("a")).await;
        let reader = fixture.reader();
        assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
        let key = format!("{}/hint", fixture.folder.key.trim_end_matches('/'));
        fixture.folder.storage.put(&key, vec![b' '; 1_000_000]).await.expect("an object");
        let objects = CatalogueObjects::below(&fixture.folder);
        let problem = Hint::load(&objects, None).await.expect_err("it is too large");
        let problem = problem.source().expect("a cause").to_string();
        assert!(problem.contains("1000000 bytes"), "{problem}");
        reader.clock.advance(CHECK_EVERY_MS);
        assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
    }
}

#[tokio::test]
async fn the_settings_of_the_deployment_name_the_topics_of_publishers_and_of_notices() {
    for fixture in Fixture::both().await {
        let text = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: shop, name: orders}\n\
                    spec: {from: [{bucket: pictures}, {eventSource: com.example/a}, {snsTopic: 'arn:aws:sns:eu-central-1:123456789012:t'}]}\n\
                    ---\napiVersion: lastmile.dev/v1\nkind: Notifications\nspec: {topic: shop/orders}\n";
        fixture.apply(&[text, &one("a")].join("---\n")).await;
        let catalogue = fixture.reader().source.current().await.expect("settings");
        for publisher in [
            Publisher::Bucket("pictures".to_owned()),
            Publisher::EventSource("com.example/a".to_owned()),
            Publisher::SnsTopic("arn:aws:sns:eu-central-1:123456789012:t".to_owned()),
        ] {
            assert_eq!(catalogue.topic_from(&publisher), Some(&topic("shop/orders")));
        }
        assert_eq!(catalogue.topic_of_notices(), Some(&topic("shop/orders")));
    }
}

#[tokio::test]
async fn a_policy_of_secrets_counts_after_half_a_minute_and_one_that_cannot_be_read_keeps_all_from_a_start()
 {
    let policy = "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: [{name: 'env:A', hosts: [a.test]}]}\n";
    let (secret, elsewhere) = ("env:A".parse().expect("a name"), "https://b.test/".parse());
    let elsewhere = elsewhere.expect("a URL");
    for fixture in Fixture::both().await {
        fixture.apply(&one("a")).await;
        let reader = fixture.reader();
        let refusal = async || {
            let current = reader.source.current().await.expect("settings");
            current.settings().secrets.refusal(&secret, &elsewhere)
        };
        assert_eq!(refusal().await, None);
        fixture.apply(policy).await;
        reader.clock.advance(CHECK_EVERY_MS - 1);
        assert_eq!(refusal().await, None);
        reader.clock.advance(1);
        assert!(refusal().await.is_some());
        if fixture.files.is_some() {
            fixture.damage_pointer("_deployment");
            reader.clock.advance(CHECK_EVERY_MS);
            assert!(refusal().await.is_some(), "the last one stays");
            let problem = fixture.reader().source.current().await.expect_err("a start");
            assert!(problem.contains("cannot be read"), "{problem}");
        }
    }
}

#[tokio::test]
async fn while_something_newer_cannot_be_read_the_last_good_stays_and_no_name_is_missing() {
    let objects = |fixture: &Fixture, of: &str| drop(fixture.damage(of));
    for damage in [objects, Fixture::damage_pointer] {
        let fixture = Fixture::in_folder();
        fixture.apply(&one("a")).await;
        let reader = fixture.reader();
        assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
        let known = reader.topics(&["shop/orders", "shop/other"]).await.expect("a catalogue");
        fixture.apply(&many()).await;
        damage(&fixture, "shop");
        reader.clock.advance(CHECK_EVERY_MS);
        assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
        let problem = reader
            .source
            .reread(known, &BTreeSet::from([topic("shop/orders")]))
            .await
            .expect_err("the newest is damaged");
        assert!(problem.contains("cannot be read"), "{problem}");
        // A process that starts now knows nothing of it.
        let problem = fixture.reader().orders().await.expect_err("nothing good is known");
        assert!(problem.contains("cannot be read"), "{problem}");
    }
}

#[tokio::test]
async fn a_topic_of_which_nothing_is_known_is_read_again_after_a_second() {
    let fixture = Fixture::in_folder();
    fixture.apply(&many()).await;
    let damaged = fixture.damage("shop");
    let reader = fixture.reader();
    let problem = reader.orders().await.expect_err("it is damaged");
    let begin = "the topic shop/orders cannot be read: ";
    assert!(problem.strip_prefix(begin).is_some_and(|why| why.contains("objects/")), "{problem}");
    repair(damaged);
    assert_eq!(reader.orders().await, Err(problem.clone()));
    reader.clock.advance(REREAD_EVERY_MS - 1);
    assert_eq!(reader.orders().await, Err(problem));
    reader.clock.advance(1);
    assert_eq!(reader.orders().await.map(|all| all.len()), Ok(200));
}

#[tokio::test]
async fn a_topic_that_was_read_before_is_read_again_after_half_a_minute() {
    let fixture = Fixture::in_folder();
    fixture.apply(&one("a")).await;
    let reader = fixture.reader();
    assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
    fixture.apply(&many()).await;
    let damaged = fixture.damage("shop");
    reader.clock.advance(CHECK_EVERY_MS);
    assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
    repair(damaged);
    reader.clock.advance(CHECK_EVERY_MS - 1);
    assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
    reader.clock.advance(1);
    assert_eq!(reader.orders().await.map(|all| all.len()), Ok(201));
}

#[tokio::test]
async fn settings_that_cannot_be_read_are_read_again_after_a_second() {
    let fixture = Fixture::in_folder();
    fixture.apply(&one("a")).await;
    let reader = fixture.reader();
    let known = reader.source.current().await.expect("settings");
    // So many that they have leaves of their own beside the pointer.
    let topics = (0..20).map(|topic| {
        let sources: Vec<_> =
            (0..50).map(|of| format!("{{eventSource: com.example/{topic}-{of}}}")).collect();
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: orders-{topic}}}\n\
             spec: {{from: [{}]}}\n",
            sources.join(", ")
        )
    });
    fixture.apply(&topics.collect::<Vec<_>>().join("---\n")).await;
    let damaged = fixture.damage("_deployment");
    reader.clock.advance(CHECK_EVERY_MS);
    let publisher = Publisher::EventSource("com.example/7-7".to_owned());
    let current = async || {
        let settings = reader.source.current().await.expect("the last good ones");
        settings.topic_from(&publisher).is_some()
    };
    assert!(!current().await, "the last good ones stay");
    let problem = reader.source.reread(known, &BTreeSet::new()).await.expect_err("the newest");
    let begin = "the settings of the deployment cannot be read: ";
    assert!(problem.strip_prefix(begin).is_some_and(|why| why.contains("objects/")), "{problem}");
    repair(damaged);
    assert!(!current().await, "nobody asks for a second");
    reader.clock.advance(REREAD_EVERY_MS - 1);
    assert!(!current().await, "nor before it ends");
    reader.clock.advance(1);
    assert!(current().await);
}

#[tokio::test]
async fn a_pointer_that_is_gone_makes_no_name_missing_and_without_any_there_is_no_catalogue() {
    let fixture = Fixture::in_folder();
    let problem = fixture.reader().source.current().await.expect_err("nothing was applied");
    assert!(problem.contains("no catalogue yet"), "{problem}");
    fixture.apply(&one("a")).await;
    let reader = fixture.reader();
    let known = reader.topics(&["shop/orders"]).await.expect("a topic");
    fixture.lose_pointer("shop");
    reader.clock.advance(CHECK_EVERY_MS);
    assert_eq!(reader.orders().await, Ok(vec!["a".to_owned()]));
    let problem = reader.source.reread(known, &BTreeSet::from([topic("shop/other")])).await;
    assert!(problem.is_err_and(|problem| problem.contains("its pointer is gone")));
}

#[tokio::test]
async fn what_is_broken_in_one_topic_does_not_hinder_a_look_at_another() {
    let fixture = Fixture::in_folder();
    let others = one("b").replace("namespace: shop", "namespace: other");
    fixture.apply(&[one("a"), others].join("---\n")).await;
    let reader = fixture.reader();
    let known = reader.topics(&["shop/orders", "other/orders"]).await.expect("topics");
    fixture.damage_pointer("shop");
    reader.clock.advance(CHECK_EVERY_MS);
    let newest = reader.source.reread(known, &BTreeSet::from([topic("other/orders")])).await;
    assert_eq!(names(&newest.expect("the other topic")), ["b", "a"]);
}
