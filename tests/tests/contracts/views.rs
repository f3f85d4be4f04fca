//! Many processes converge to what the bucket has, whatever two writers do to it and however wrong the clocks are.
//!
//! Separate from the contract of one process: here the expectation is computed from the objects and from what a process saw
//! before. A change is in use at the first look after it that reads its page of the listing.

use std::collections::{BTreeMap, BTreeSet};

use adapters::live_topics::{FEW_TOPICS, LOOK_EVERY_MS};
use adapters::storage::{Fetched, Replaced};
use delivery::subscription::catalogue::{Catalogue, Found};
use delivery::subscription::name::TopicName;
use delivery::topic_object::{Content, tombstone};
use futures::future::join_all;
use futures::join;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};

use crate::live_topics::{Fixture, Reader, object, topic};

const PROCESSES: usize = 50;
/// The processes that get an event after a change of each writer. After some changes all do.
const AWAKE: usize = 4;
const ALL_AWAKE_EVERY: usize = 25;
const TOPICS: [&str; 6] = ["a/1", "a/2", "a/3", "b/1", "b/2", "c/1"];
/// No clock is off by more.
const CLOCK_OFF_MS: u64 = 5 * 60 * 1_000;
/// Objects of topics that nobody can use.
const INVALID: [&str; 4] = ["", "# nothing\n", r#"{"v":9}"#, r#"{"v":1,"subscriptions":{"a":"#];
const SEED: u64 = 20_261_120;

/// One topic, as a process uses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum View {
    /// There never was an object.
    #[default]
    Nothing,
    /// Nothing is known of it that can be used.
    Unreadable,
    Removed,
    /// The names of its subscriptions.
    Topic(BTreeSet<String>),
}

impl View {
    /// The view after a look at an object with this content; `None` if there is none.
    fn after(self, content: Option<&[u8]>) -> Self {
        match (content.map(Content::parse), self) {
            (Some(Ok(Content::Topic(found))), _) => {
                Self::Topic(found.subscriptions.into_keys().collect())
            }
            (Some(Ok(Content::Removed(_))), _) => Self::Removed,
            // The last good version stays in use.
            (Some(Err(_)) | None, last @ (Self::Topic(_) | Self::Removed)) => last,
            (Some(Err(_)), Self::Nothing | Self::Unreadable) => Self::Unreadable,
            (None, Self::Nothing | Self::Unreadable) => Self::Nothing,
        }
    }

    fn new(catalogue: &Catalogue, name: &TopicName) -> Self {
        match catalogue.found(name).expect("it was read") {
            Found::Topic => {
                let all = catalogue.subscriptions().filter(|each| each.name.topic == *name);
                Self::Topic(all.map(|each| each.name.name.clone()).collect())
            }
            Found::Removed => Self::Removed,
            Found::Nothing => Self::Nothing,
            Found::Unreadable(_) => Self::Unreadable,
        }
    }
}

/// A process, and what it has to use.
struct Process {
    reader: Reader,
    expected: BTreeMap<&'static str, View>,
}

impl Process {
    fn start(fixture: &Fixture, random: &mut StdRng) -> Self {
        let reader = fixture.reader();
        reader.clock.advance(random.random_range(0..=2 * CLOCK_OFF_MS));
        Self { reader, expected: BTreeMap::new() }
    }

    /// Handles an event of each topic, and compares what it uses with what the bucket has.
    async fn check(&mut self, objects: &BTreeMap<&'static str, Option<Vec<u8>>>) {
        let catalogue = self.reader.topics(&TOPICS).await;
        for (name, content) in objects {
            let expected = self.expected.remove(name).unwrap_or_default();
            let expected = expected.after(content.as_deref());
            let mut used = View::new(&catalogue, &topic(name));
            // Both end as "not found". A bucket without versions cannot tell them apart once the mark is gone.
            if (&expected, &used) == (&View::Removed, &View::Nothing) {
                used = View::Removed;
            }
            assert_eq!(used, expected, "{name}");
            self.expected.insert(name, expected);
        }
    }
}

/// A random content of an object; `None` deletes it.
fn content(random: &mut StdRng) -> Option<String> {
    match random.random_range(0..10) {
        0..5 => {
            let names: Vec<String> =
                (0..3).map(|_| format!("s{}", random.random_range(0..1_000))).collect();
            Some(object(&names.iter().map(String::as_str).collect::<Vec<_>>()))
        }
        5..7 => Some(tombstone("2026-11-20T07:00:00Z")),
        7 | 8 => Some(INVALID[random.random_range(0..INVALID.len())].to_owned()),
        _ => None,
    }
}

/// Writes as `aws s3 cp` and `aws s3 rm` do.
async fn overwrite(fixture: &Fixture, name: &str, content: Option<String>) {
    let name = format!("{name}.json");
    match content {
        Some(text) => fixture.put(&name, &text).await,
        None => fixture.delete(&name).await,
    }
}

/// Writes as `apply` does: only in the place of what was read.
async fn replace(fixture: &Fixture, name: &str, content: Option<String>) {
    let Some(text) = content else { return overwrite(fixture, name, None).await };
    let key = fixture.objects.key(&format!("{name}.json"));
    loop {
        let etag = match fixture.storage.get_if_changed(&key, None).await.expect("a read") {
            Fetched::Changed { etag, .. } => Some(etag),
            Fetched::Missing | Fetched::Unchanged => None,
        };
        let replaced = fixture.storage.replace(&key, text.clone().into(), etag.as_deref()).await;
        if matches!(replaced.expect("a write"), Replaced::Written { .. }) {
            return;
        }
    }
}

async fn objects(fixture: &Fixture) -> BTreeMap<&'static str, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for name in TOPICS {
        let content = fixture.storage.get(&fixture.objects.key(&format!("{name}.json"))).await;
        found.insert(name, content.expect("a read"));
    }
    found
}

/// Lets two writers make so many changes together, and checks the processes that look after each pair.
async fn converge(fixture: &Fixture, changes: usize) {
    let mut random = StdRng::seed_from_u64(SEED);
    let mut processes: Vec<Process> =
        (0..PROCESSES).map(|_| Process::start(fixture, &mut random)).collect();
    for round in 1..=changes / 2 {
        let mut change = || (TOPICS[random.random_range(0..TOPICS.len())], content(&mut random));
        let ((topic, text), (other_topic, other_text)) = (change(), change());
        join!(replace(fixture, topic, text), overwrite(fixture, other_topic, other_text));
        let objects = objects(fixture).await;
        processes.iter().for_each(|process| process.reader.clock.advance(LOOK_EVERY_MS));
        processes.shuffle(&mut random);
        let is_last = round == changes / 2;
        let all = round % ALL_AWAKE_EVERY == 0 || is_last;
        let awake = processes.iter_mut().take(if all { PROCESSES } else { AWAKE });
        join_all(awake.map(|process| process.check(&objects))).await;
    }
}

#[tokio::test]
async fn every_process_uses_what_the_bucket_has_after_its_next_look() {
    for fixture in Fixture::both().await {
        converge(&fixture, 200).await;
    }
}

#[tokio::test]
#[ignore = "takes minutes: run by hand after a change of reading or of storage"]
async fn every_process_uses_what_the_bucket_has_after_ten_thousand_changes() {
    for fixture in Fixture::both().await {
        converge(&fixture, 10_000).await;
    }
}

/// The longest time, by the clock of a process with an event each second, from a change to its use, in a deployment with
/// this number of topics.
async fn latest_age_ms(fixture: &Fixture, topics: usize) -> u64 {
    const STEP_MS: u64 = 1_000;
    let name = |number: usize| format!("n{:03}/t{number:05}", number / 100);
    for number in 0..topics {
        fixture.topic(&name(number), &["a"]).await;
    }
    let mut random = StdRng::seed_from_u64(SEED);
    let reader = fixture.reader();
    // With fewer topics in use, the listing is not read.
    for number in 0..=FEW_TOPICS {
        reader.topics(&[&name(number + topics / 5)]).await;
    }
    let mut latest_ms = 0;
    for number in [0, topics - 1, topics / 2, topics / 3] {
        let name = name(number);
        let used = async || {
            reader.clock.advance(STEP_MS);
            let catalogue = reader.topics(&[&name]).await;
            View::new(&catalogue, &topic(&name))
        };
        for _ in 0..random.random_range(1..60) {
            assert_eq!(used().await, View::Topic(["a".to_owned()].into()));
        }
        fixture.topic(&name, &["changed"]).await;
        let mut age_ms = STEP_MS;
        while used().await != View::Topic(["changed".to_owned()].into()) {
            age_ms += STEP_MS;
        }
        latest_ms = latest_ms.max(age_ms);
    }
    latest_ms
}

#[tokio::test]
async fn a_change_is_in_use_within_35_seconds_in_a_deployment_of_a_thousand_topics() {
    for fixture in Fixture::both().await {
        let latest_ms = latest_age_ms(&fixture, 1_000).await;
        assert!(latest_ms <= 35_000, "{latest_ms}");
    }
}

#[tokio::test]
async fn a_change_is_in_use_within_five_minutes_in_a_deployment_of_ten_thousand_topics() {
    let [fixture, _] = Fixture::both().await;
    let latest_ms = latest_age_ms(&fixture, 10_000).await;
    assert!(latest_ms <= 5 * 60 * 1_000, "{latest_ms}");
}
