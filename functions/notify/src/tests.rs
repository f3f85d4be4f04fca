//! The flow of an invocation, over a folder of blobs and a scripted queue and topic.

use std::fs;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

const NOW_MS: u64 = 1_795_158_180_000;

/// A queue that returns each report once, and a topic that may refuse messages.
#[derive(Debug, Default)]
struct FakePorts {
    waiting: Mutex<Vec<Report>>,
    /// Refuses messages with this text.
    refuses: Option<&'static str>,
    published: Mutex<Vec<Value>>,
    deleted: Mutex<BTreeSet<String>>,
}

fn locked<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ports for FakePorts {
    fn now_ms(&self) -> u64 {
        NOW_MS
    }

    async fn receive(&self) -> Result<Vec<Report>, Refused> {
        let mut waiting = locked(&self.waiting);
        let left = waiting.len().saturating_sub(10);
        Ok(waiting.split_off(left))
    }

    async fn publish(&self, _: &str, text: &str) -> Result<(), Refused> {
        if self.refuses.is_some_and(|refused| text.contains(refused)) {
            return Err(Refused("Throttled".to_owned()));
        }
        locked(&self.published).push(serde_json::from_str(text).expect("a message is JSON"));
        Ok(())
    }

    async fn delete(&self, receipts: &[String]) -> Result<(), Refused> {
        assert!(receipts.len() <= DELETED_MAX);
        locked(&self.deleted).extend(receipts.iter().cloned());
        Ok(())
    }
}

/// A container with dead letters, and the function over it.
struct World {
    folder: TempDir,
    notify: Notify<FakePorts>,
}

impl World {
    fn new(refuses: Option<&'static str>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let container = Container { bucket: "letters".to_owned(), prefix: String::new() };
        let ports = FakePorts { refuses, ..FakePorts::default() };
        let notify = Notify::new(ports, Storage::folder(folder.path()), container);
        Self { folder, notify }
    }

    /// S3 reports a blob.
    fn report(&self, key: &str, receipt: &str) {
        let event = json!({"time": "2026-11-20T07:03:00Z", "detail": {"object": {"key": key}}});
        let report = Report { receipt: receipt.to_owned(), body: event.to_string() };
        locked(&self.notify.ports.waiting).push(report);
    }

    /// Stores a dead letter, and S3 reports it.
    fn store(&self, subscription: &str, number: u32, response: &str) {
        self.store_with(subscription, number, "MaxDeliveryAttemptsExceeded", response);
    }

    fn store_with(&self, subscription: &str, number: u32, reason: &str, response: &str) {
        let key =
            format!("{subscription}/2026/11/20/7/{number:08}-0000-0000-0000-000000000000.json");
        let path = self.folder.path().join(&key);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        let letter = json!({
            "event": {"id": "e1", "source": "/shop", "type": "t", "specversion": "1.0"},
            "customDeliveryProperties": {},
            "deadletterProperties": {
                "deadletterreason": reason,
                "deliveryattempts": 1,
                "deliveryresult": "BadRequest",
                "publishutc": "2026-11-20T07:02:00Z",
                "deliveryattemptutc": "2026-11-20T07:02:00Z",
                "lasthttpstatuscode": 422,
                "lastresponse": response,
            },
        });
        fs::write(path, letter.to_string()).expect("a blob");
        self.report(&key, &format!("r{number}"));
    }

    fn notify(&self) -> Result<(), NotifyError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(self.notify.notify())
    }

    /// Title, count and number of subscriptions of each message.
    fn published(&self) -> Vec<(String, u64, usize)> {
        let message = |message: &Value| {
            let subscriptions = message["subscriptions"].as_array().map_or(0, Vec::len);
            let title = message["title"].as_str().unwrap_or_default().to_owned();
            (title, message["count"].as_u64().unwrap_or_default(), subscriptions)
        };
        locked(&self.notify.ports.published).iter().map(message).collect()
    }

    fn deleted(&self) -> usize {
        locked(&self.notify.ports.deleted).len()
    }
}

#[test]
fn a_cause_has_one_message_however_many_letters_and_subscriptions_it_has() {
    let world = World::new(None);
    for number in 0..40 {
        world.store(["n/t/a", "n/t/b"][number as usize % 2], number, "first problem");
    }
    world.store("n/t/a", 41, "another problem");
    assert_eq!(world.notify(), Ok(()));
    let published = world.published();
    let counts: Vec<(u64, usize)> =
        published.iter().map(|message| (message.1, message.2)).collect();
    assert_eq!(counts, [(40, 2), (1, 1)], "{published:?}");
    assert!(published[0].0.contains("first problem"), "{published:?}");
    assert_eq!(world.deleted(), 41);
}

#[test]
fn a_message_that_the_topic_refuses_keeps_its_reports_and_no_others() {
    let world = World::new(Some("first problem"));
    world.store("n/t/a", 1, "first problem");
    world.store("n/t/a", 2, "another problem");
    let why = Refused("Throttled".to_owned());
    assert_eq!(world.notify(), Err(NotifyError::Publish { failed: 1, all: 2, why }));
    assert_eq!(*locked(&world.notify.ports.deleted), BTreeSet::from(["r2".to_owned()]));
}

#[test]
fn a_blob_that_cannot_be_read_is_counted_with_the_reason() {
    let world = World::new(None);
    world.report("n/t/a/2026/11/20/7/gone.json", "r1");
    fs::create_dir_all(world.folder.path().join("n/t/a/2026/11/20/7")).expect("folders");
    fs::write(world.folder.path().join("n/t/a/2026/11/20/7/x.json"), "no JSON").expect("a blob");
    world.report("n/t/a/2026/11/20/7/x.json", "r2");
    locked(&world.notify.ports.waiting)
        .push(Report { receipt: "r3".to_owned(), body: "no JSON".to_owned() });
    assert_eq!(world.notify(), Ok(()));
    let titles: BTreeSet<String> = world.published().into_iter().map(|message| message.0).collect();
    let expected = [
        "cause unknown: the object is not a dead letter",
        "cause unknown: the object was deleted before it was read",
        "cause unknown: the report does not name an object",
    ];
    assert_eq!(titles, expected.map(ToOwned::to_owned).into());
    assert_eq!(world.deleted(), 3);
    let subscription = &locked(&world.notify.ports.published)[0]["subscriptions"][0]["name"];
    assert_eq!(subscription, "n/t/a");
}

#[test]
fn what_is_set_aside_has_no_message() {
    let world = World::new(None);
    world.store_with("n/t/a", 1, "Paused", "");
    world.store_with("n/t/a", 2, "DestinationDisabled", "");
    assert_eq!(world.notify(), Ok(()));
    assert_eq!((world.published().len(), world.deleted()), (0, 2));
}

#[test]
fn a_blob_that_is_reported_twice_counts_once() {
    let world = World::new(None);
    world.store("n/t/a", 1, "first problem");
    world.report("n/t/a/2026/11/20/7/00000001-0000-0000-0000-000000000000.json", "again");
    assert_eq!(world.notify(), Ok(()));
    assert_eq!((world.published()[0].1, world.deleted()), (1, 2));
}

#[test]
fn blobs_beyond_the_limit_are_counted_by_their_keys() {
    let world = World::new(None);
    let key = |number: usize| format!("n/t/a/2026/11/20/7/{number}.json");
    (0..read::BLOBS_MAX + 7).for_each(|number| world.report(&key(number), &format!("r{number}")));
    assert_eq!(world.notify(), Ok(()));
    let counts: Vec<u64> = world.published().iter().map(|message| message.1).collect();
    assert_eq!(counts, [read::BLOBS_MAX as u64, 7]);
}

#[test]
fn nothing_new_is_one_request_and_no_message() {
    let world = World::new(None);
    assert_eq!(world.notify(), Ok(()));
    assert_eq!((world.published().len(), world.deleted()), (0, 0));
}
