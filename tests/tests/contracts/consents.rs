//! `Consents`: a consent that was kept is found, by its keeper at once and by everybody else within
//! half a minute.

use std::time::Duration;

use adapters::consents::ConsentStore;
use adapters::machine::Machine;
use adapters::table::DynamoTable;
use delivery::machine::consent::{ConsentKey, Granted, Rate};
use delivery::ports::Consents as _;
use delivery::subscription::NoFields;
use delivery::subscription::{Consent, Destination};
use delivery::table::{Entry, Expected, Table as _};
use lastmile_tests::manual_clock::ManualClock;
use local::aws::local_clients;

use crate::cloud::Cloud;

/// Slightly less than the time that a consent is used.
const FRESH_MS: u64 = 5 * 60 * 1_000 - 1;
/// Slightly less than the time that a missing one counts as missing.
const MISSING_FRESH_MS: u64 = 30_000 - 1;

/// Somebody else replaces what the table holds of a consent.
async fn write(cloud: &Cloud, key: &ConsentKey, text: &str, expires_ms: Option<u64>) {
    let entry = Entry { text: text.to_owned(), expires_ms };
    let written = cloud.table().replace(&key.item(), &entry, Expected::Anything, 0).await;
    assert_eq!(written, Ok(true));
}

fn key(url: &str) -> ConsentKey {
    ConsentKey::new("shop", &url.parse().expect("a URL"), &Consent::EventGrid(NoFields))
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

#[tokio::test]
async fn a_consent_is_kept_until_it_is_removed() {
    let (cloud, clock) = (Cloud::start().await, ManualClock::default());
    let store = || ConsentStore::new(cloud.table(), clock.clone());
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
    write(&cloud, &key, "", Some(1)).await;
    assert_eq!(keeper.consent(&key).await, Ok(Some(granted("*"))));
    clock.advance(FRESH_MS);
    assert_eq!(keeper.consent(&key).await, Ok(Some(granted("*"))));
    clock.advance(1);
    assert_eq!(keeper.consent(&key).await, Ok(None));
}

#[tokio::test]
async fn what_cannot_be_read_is_neither_a_consent_nor_none() {
    let (cloud, clock) = (Cloud::start().await, ManualClock::default());
    let store = ConsentStore::new(cloud.table(), clock.clone());
    let key = key("https://example.com/");
    store.keep_consent(&key, &granted("7")).await.expect("kept");
    for broken in ["", "{}", r#"{"v":2}"#] {
        write(&cloud, &key, broken, None).await;
        let fresh = ConsentStore::new(cloud.table(), clock.clone());
        let error = fresh.consent(&key).await.expect_err(broken).to_string();
        assert!(error.contains(&key.to_string()), "{error}");
        // A process that has read a good one keeps it.
        clock.advance(FRESH_MS + 1);
        assert_eq!(store.consent(&key).await, Ok(Some(granted("7"))), "{broken}");
    }
}

#[tokio::test]
async fn what_cannot_be_kept_is_an_error_and_known_to_this_process_all_the_same() {
    let cloud = Cloud::start().await;
    let nowhere = DynamoTable::new(&local_clients(&cloud.aws.endpoint()), "nowhere".to_owned());
    let store = ConsentStore::new(nowhere, Machine);
    let key = key("https://example.com/");
    assert!(store.keep_consent(&key, &granted("7")).await.is_err());
    assert_eq!(store.consent(&key).await, Ok(Some(granted("7"))));
}

#[tokio::test]
async fn while_the_table_hangs_the_consent_read_last_is_valid() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let endpoint = format!("http://{}", silent.local_addr().expect("an address"));
    let (hanging, clock) =
        (DynamoTable::new(&local_clients(&endpoint), "t".to_owned()), ManualClock::default());
    let store = ConsentStore::new(hanging, clock.clone());
    let key = key("https://example.com/");
    let wanted = granted("7");
    let kept = store.keep_consent(&key, &wanted);
    assert!(tokio::time::timeout(Duration::from_millis(50), kept).await.is_err());
    clock.advance(FRESH_MS + 1);
    // Long before the client gives up.
    let read = tokio::time::timeout(Duration::from_secs(60), store.consent(&key)).await;
    assert_eq!(read, Ok(Ok(Some(granted("7")))));
}
